"""The two objects that a person chooses from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext_lazy as _

from prefmh_web.campaigns.models import Side
from prefmh_web.campaigns.started import Words
from prefmh_web.objects import ObjectKind
from sampler.judges import Context, SharedContext, shared_context

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise as StrPromise

NO_CONTEXT = SharedContext((), ((), ()))


@dataclass(frozen=True)
class Option:
    """One of the two objects to choose from, and what its kind's template shows of it."""

    side: Side
    name: StrPromise
    """What the side is called."""
    content: str
    shown: Mapping[str, Any]
    address: StrPromise
    """Where its picture is, for the kinds that have one: worked out only if the template shows it."""
    own: Context | None = None
    """What columns of the list say of this object and not of the other one; None where none does."""


def options_of(
    kind: ObjectKind,
    left: str,
    right: str,
    address: Callable[[Side], StrPromise],
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
        Option(Side.LEFT, _("Left"), left, of_left, address(Side.LEFT), own_of_left),
        Option(Side.RIGHT, _("Right"), right, of_right, address(Side.RIGHT), own_of_right),
    )


def context_shown(left: Context, right: Context, words: Words) -> SharedContext:
    """Return what stands above two objects and with each, in the words of the person who sees them.

    Args:
        left: of the object on the left.
        right: of the other one.
    """
    context = shared_context(left, right)
    return SharedContext(_in(words, context.shared), tuple(_in(words, own) for own in context.own))


def _in(words: Words, lines: Context) -> Context:
    return tuple(replace(line, label=words(line.label)) for line in lines)
