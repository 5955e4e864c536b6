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
NAMES = {Side.LEFT: _("Left"), Side.RIGHT: _("Right")}
"""What each side is called."""


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

    @property
    def name(self) -> StrPromise:
        """What the side is called."""
        return NAMES[self.side]

    @cached_property
    def html(self) -> str:
        """The object, as the template of its kind shows it."""
        return render_to_string(f"objects/{self.kind}/option.html", {"option": self.shown, "address": self.address})


def options_of(
    kind: ObjectKind,
    left: str,
    right: str,
    address: Callable[[Side], StrPromise | str],
    context: SharedContext = NO_CONTEXT,
) -> tuple[Option, Option]:
    """Return the two objects, left and right.

    Args:
        left: the content of the object on the left.
        right: of the other one.
        address: returns where the picture of a side is.
        context: of the two, left and right.
    """
    of_left, of_right = kind.options(left, right)
    own_of_left, own_of_right = context.own if any(context.own) else (None, None)
    return (
        Option(kind.name, Side.LEFT, left, of_left, address(Side.LEFT), own_of_left),
        Option(kind.name, Side.RIGHT, right, of_right, address(Side.RIGHT), own_of_right),
    )
