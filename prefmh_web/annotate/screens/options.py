"""The two objects that a person chooses from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext_lazy as _

from prefmh_web.campaigns.models import Side
from prefmh_web.objects import ObjectKind

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise as StrPromise


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


def options_of(kind: ObjectKind, left: str, right: str, address: Callable[[Side], StrPromise]) -> tuple[Option, Option]:
    """Return the two objects, left and right.

    Args:
        left: the content of the object on the left.
        right: of the other one.
        address: returns where the picture of a side is.
    """
    of_left, of_right = kind.options(left, right)
    return (
        Option(Side.LEFT, _("Left"), left, of_left, address(Side.LEFT)),
        Option(Side.RIGHT, _("Right"), right, of_right, address(Side.RIGHT)),
    )
