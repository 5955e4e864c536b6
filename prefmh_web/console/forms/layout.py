"""Where the fields of a setup stand on its page: what everybody fills in, and what is folded because it is mostly left
as it is.

A fold is open where something in it needs a look: an error, or a value that is not the usual one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from django import forms
from django.forms.boundfield import BoundField

from prefmh_web.console.forms.rule import VOTES
from prefmh_web.console.forms.setup import SetupForms
from prefmh_web.console.forms.spaces import SpaceForm
from prefmh_web.console.forms.usual import needs_a_look
from prefmh_web.console.unstored import Unstored, samples_of

_PEOPLE = ("more_languages", "lease_seconds", "park_after_skips", "park_after_reports")
_LENGTH = ("most_chains", "burn_in", "further_steps", "seed")
_CAPS = ("cost_cap", "request_cap")


@dataclass(frozen=True)
class Fold:
    """Fields behind a title."""

    title: str
    fields: tuple[BoundField, ...]
    is_open: bool


@dataclass(frozen=True)
class Kind:
    """A kind of object to choose, as a card."""

    radio: forms.boundfield.BoundWidget
    name: str
    title: str
    about: str
    samples: tuple[Unstored, ...]


class SetupLayout:
    """The sections of the page of a setup.

    Args:
        forms: its fields.
    """

    def __init__(self, forms: SetupForms):
        self._forms = forms

    @property
    def kinds(self) -> list[Kind]:
        """What can be compared."""
        found = {form.kind: form for form in self._forms.spaces}
        radios = [(radio, str(radio.data["value"])) for radio in self._forms.campaign["space"]]
        return [Kind(radio, kind, found[kind].title, found[kind].about, samples_of(kind)) for radio, kind in radios]

    @property
    def spaces(self) -> list[tuple[SpaceForm, list[BoundField], Fold]]:
        """Each kind with the fields that everybody fills in, and the others."""
        return [(form, [form[name] for name in form.main], _rest_of(form)) for form in self._forms.spaces]

    @property
    def decides_otherwise(self) -> bool:
        """Whether something else than votes decides, or what is chosen of it is wrong."""
        return self._forms.rule["kind"].value() != VOTES or bool(self._forms.rule.errors)

    @property
    def people(self) -> Fold:
        """More about the people."""
        return self._of_campaign("More languages, the time to answer, and pairs that nobody answers", _PEOPLE)

    @property
    def length(self) -> Fold:
        """More about the chains."""
        return self._of_campaign("More chains while people come, what is left out, and the seed", _LENGTH)

    @property
    def caps(self) -> Fold:
        """What models may cost."""
        return self._of_campaign("Caps on what models may cost", _CAPS)

    @property
    def scores(self) -> Fold:
        """What is measured by scorers."""
        return self._of_campaign("Scores that the record keeps of each object", ("scorer_names",))

    def _of_campaign(self, title: str, names: Iterable[str]) -> Fold:
        return _fold(title, [self._forms.campaign[name] for name in names])


def _rest_of(form: SpaceForm) -> Fold:
    title = "How far apart the two objects are, and other details"
    return _fold(title, [field for field in form if field.name not in form.main])


def _fold(title: str, fields: Iterable[BoundField]) -> Fold:
    found = tuple(fields)
    return Fold(title, found, any(map(needs_a_look, found)))
