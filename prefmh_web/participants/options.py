"""The two objects that a person chooses from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from django.template.loader import render_to_string
from django.utils.translation import gettext_lazy as _

from prefmh_web.campaigns.models import Side
from prefmh_web.objects import ObjectKind
from sampler.judges import Context, SharedContext

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise as StrPromise

NO_CONTEXT = SharedContext((), ((), ()))
NAMES = {Side.FIRST: _("Object 1"), Side.SECOND: _("Object 2")}
"""What each object of a pair is called, in whatever layout."""
MARKS = {Side.FIRST: "1", Side.SECOND: "2"}
_LONGEST_SHORT = 80


@dataclass(frozen=True)
class Option:
    """One of the two objects to choose from, and what its kind's template shows of it."""

    kind: str
    side: Side
    content: str
    shown: Mapping[str, Any]
    address: StrPromise | str
    """Where its picture is, for the kinds that have one: worked out only if the template shows it."""
    own: Context | None = None
    """What columns of the list say of this object and not of the other one; None where none does."""
    is_short: bool = False
    """True where both objects are short texts: by the longer one, so that the size of the type tells nothing."""

    @property
    def name(self) -> StrPromise:
        """What the object is called."""
        return NAMES[self.side]

    @property
    def mark(self) -> str:
        """What stands on the object, and the key that chooses it."""
        return MARKS[self.side]

    @cached_property
    def html(self) -> str:
        """The object, as the template of its kind shows it."""
        return render_to_string(f"objects/{self.kind}/option.html", {"option": self.shown, "address": self.address})


def options_of(
    kind: ObjectKind,
    first: str,
    second: str,
    address: Callable[[Side], StrPromise | str],
    context: SharedContext = NO_CONTEXT,
) -> tuple[Option, Option]:
    """Return the two objects, in the order of the document.

    Args:
        first: the content of the first object.
        second: of the other one.
        address: returns where the picture of a side is.
        context: of the two.
    """
    of_first, of_second = kind.options(first, second)
    own_of_first, own_of_second = context.own if any(context.own) else (None, None)
    is_short = max(len(first), len(second)) <= _LONGEST_SHORT
    return (
        Option(kind.name, Side.FIRST, first, of_first, address(Side.FIRST), own_of_first, is_short),
        Option(kind.name, Side.SECOND, second, of_second, address(Side.SECOND), own_of_second, is_short),
    )
