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
from prefmh_web.console.forms.usual import Fold, fold_of
from prefmh_web.console.unstored import Sample, Unstored

_PEOPLE = ("layout", "lease_seconds", "suspend_after_skips", "suspend_after_reports")
_LENGTH = ("max_chains", "burn_in", "seed")
_CAPS = ("cost_cap", "request_cap")
_DETAILS = "How far apart the two objects are, and other details"


@dataclass(frozen=True)
class Kind:
    """A kind of object to choose, as a card."""

    radio: forms.boundfield.BoundWidget
    name: str
    title: str
    about: str
    samples: tuple[Sample | Unstored, ...]


@dataclass(frozen=True)
class SpaceSection:
    """The fields of a kind.

    Args:
        form: all of them.
        carded: the one whose choices are cards, if there is one.
        cards: these.
        main: what everybody fills in.
        rest: the others.
    """

    form: SpaceForm
    carded: BoundField | None
    cards: list[Kind]
    main: list[BoundField]
    rest: Fold


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
        radios = [(radio, found[str(radio.data["value"])]) for radio in self._forms.campaign["space"]]
        return [Kind(radio, form.kind, form.title, form.about, form.samples) for radio, form in radios]

    @property
    def spaces(self) -> list[SpaceSection]:
        """Each kind with its fields."""
        return [_section_of(form) for form in self._forms.spaces]

    @property
    def decides_otherwise(self) -> bool:
        """Whether something else than votes decides, or what is chosen of it is wrong."""
        return self._forms.rule["kind"].value() != VOTES or bool(self._forms.rule.errors)

    @property
    def people(self) -> Fold:
        """More about the people."""
        return self._of_campaign("The layout, the time to answer, and pairs that nobody answers", _PEOPLE)

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
        return fold_of(title, [self._forms.campaign[name] for name in names])


def _section_of(form: SpaceForm) -> SpaceSection:
    carded = form[form.carded] if form.carded else None
    shown = (form.carded, *form.main)
    rest = fold_of(_DETAILS, [field for field in form if field.name not in shown])
    return SpaceSection(form, carded, _cards_of(carded), [form[name] for name in form.main], rest)


def _cards_of(field: BoundField | None) -> list[Kind]:
    """Return the choices of a field as cards: each is named by a kind of object, and says more after a colon."""
    cards = []
    for radio in field or ():
        name, (title, _, about) = str(radio.data["value"]), str(radio.data["label"]).partition(": ")
        cards.append(Kind(radio, name, title, f"{about[:1].upper()}{about[1:]}", (Sample(name),)))
    return cards
