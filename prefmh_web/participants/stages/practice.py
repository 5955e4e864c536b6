"""Pairs of the researcher's own to practise on, one at a time: the pair, what to learn from the answer, the next one.

Nobody fails here: the first answer to each pair holds, and its feedback was written before the start.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from django import forms
from django.utils import timezone
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from prefmh_web.campaigns.models import Side
from prefmh_web.config import PracticePair, Protocol
from prefmh_web.participants.models import Participation, Stage
from prefmh_web.participants.stages.stage import PREFIX, Result


@dataclass(frozen=True)
class Exercise:
    """Where somebody is in their practice.

    Args:
        number: of the pair, from 0.
        pairs: how many there are.
        chosen: the side they chose; None before that.
    """

    pair: PracticePair
    number: int
    pairs: int
    chosen: Side | None

    @property
    def step(self) -> str:
        """The pair, and whether it is answered: by this a page that is sent twice is told from the next one."""
        return f"{self.number}-answered" if self.chosen else str(self.number)

    @property
    def is_right(self) -> bool:
        """True if the right side was chosen."""
        return self.chosen == self.pair.answer

    @property
    def feedback(self) -> str:
        """What is said about the answer."""
        said = self.pair.if_right if self.is_right else self.pair.if_wrong
        return said or str(_("That is right."))

    @property
    def is_last(self) -> bool:
        """True if no pair comes after it."""
        return self.number + 1 == self.pairs


class PracticeForm(forms.Form):
    """The answer to a pair, or going on from what was said about it. Its buttons are the two objects."""

    step = forms.CharField(widget=forms.HiddenInput)
    choice = forms.ChoiceField(choices=Side, required=False)

    def __init__(self, exercise: Exercise, posted: Mapping[str, str] | None = None) -> None:
        super().__init__(posted, prefix=PREFIX, initial={"step": exercise.step})
        self.exercise = exercise


class Practice:
    """Pairs with feedback."""

    name = Stage.PRACTICE
    title = _("Practice")
    button = _("Continue")

    def is_asked(self, protocol: Protocol) -> bool:
        """True if there is a pair."""
        return bool(protocol.practice)

    def text(self, protocol: Protocol) -> SafeString:
        """Return nothing."""
        return SafeString()

    def form(self, protocol: Protocol, part: Participation, posted: Mapping[str, str] | None = None) -> PracticeForm:
        """Return the form of the first pair from which they have not gone on."""
        return PracticeForm(_exercise(protocol, part), posted)

    def result(self, part: Participation, protocol: Protocol, form: forms.Form) -> Result:
        """Store the answer, or that they go on from it."""
        now = _exercise(protocol, part)
        if form.cleaned_data["step"] != now.step:
            # Sent twice, or from a second page.
            return Result(stays=True)
        at = timezone.now().isoformat()
        if now.chosen:
            part.practice[now.number]["read_at"] = at
        elif form.cleaned_data["choice"]:
            part.practice.append({"chosen_side": form.cleaned_data["choice"], "answered_at": at, "read_at": None})
        else:
            return Result(again=str(_("Choose one of the two.")))
        part.save(update_fields=["practice"])
        return Result(stays=not (now.chosen and now.is_last))


def _exercise(protocol: Protocol, part: Participation) -> Exercise:
    number = sum(answer["read_at"] is not None for answer in part.practice)
    chosen = [Side(answer["chosen_side"]) for answer in part.practice[number:]]
    return Exercise(protocol.practice[number], number, len(protocol.practice), chosen[0] if chosen else None)
