"""What every stage offers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from django import forms
from django.utils.safestring import SafeString

from prefmh_web import config as configs
from prefmh_web.config import Outcome
from prefmh_web.participants import models

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise as StrPromise

PREFIX = "answer"
"""Of the names of all fields, so that none is taken for one of the page's own."""


@dataclass(frozen=True)
class Result:
    """What became of somebody's answers on a page.

    Args:
        outcome: their part ends so; None if it goes on.
        again: the page is shown once more with this sentence; empty if it is passed.
        stays: the stage is not passed yet: its next page is shown.
    """

    outcome: Outcome | None = None
    again: str = ""
    stays: bool = False


class AStage(Protocol):
    """A page between arrival and end. It is shown to those whose protocol has something for it."""

    @property
    def name(self) -> models.Stage:
        """Where somebody is who sees it."""

    @property
    def title(self) -> StrPromise:
        """Its first heading."""

    @property
    def button(self) -> StrPromise:
        """What its button says."""

    def is_asked(self, protocol: configs.Protocol) -> bool:
        """Say whether the protocol has something for it."""

    def text(self, protocol: configs.Protocol) -> SafeString:
        """Return what stands above the form, as HTML; perhaps nothing."""

    def form(
        self,
        protocol: configs.Protocol,
        part: models.Participation,
        posted: Mapping[str, str] | None = None,
    ) -> forms.Form:
        """Return the form, filled in if something was posted. What is chosen is sent in the protocol's own words."""

    def result(self, part: models.Participation, protocol: configs.Protocol, form: forms.Form) -> Result:
        """Store the answers of a form without errors, and say what comes of them. Under the lock of the part."""
