"""The stages between arrival and end, where somebody is, and the one door through which they go on. Each stage is shown
where the protocol has something for it, in this order:

    stage            passed by                              or the part ends as
    arrival          joining, and agreeing where that is asked
    questions        answering what is required             not eligible
    instructions     a button
    practice         an answer to each pair, right or wrong
    comprehension    the right answers                      not understood, after the last try
    votes            the last vote asked of the person      completed, nothing left, time over
    last-questions   answering what is required
    end

Whoever would come to practice, or where there is none to the votes, takes a place first; if none is free, the part ends
as full. Consent is asked before anything is stored, and again when its text changes: see `joining.py`. From every stage
a part can end as withdrawn, ended by the researcher, or time over.

To add a stage: a name in `models.Stage`, at its place, and a class like `Instructions`, in `STAGES`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from django import forms
from django.db import transaction
from django.utils import timezone
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from prefmh_web.campaigns.frozen import limits_of
from prefmh_web.campaigns.models import Campaign, Side, Voter
from prefmh_web.config import GREATEST_NUMBER, LONGEST_ANSWER, Outcome, PracticePair, Protocol, Study, SurveyQuestion
from prefmh_web.objects.texts import rendered
from prefmh_web.participants import completion, limits
from prefmh_web.participants.limits import locked_study
from prefmh_web.participants.models import Participation, Stage

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise as StrPromise

PREFIX = "answer"
"""Of the names of all fields, so that none is taken for one of the page's own."""
_TRY = "try"
_ASKED_AFTER = (Outcome.COMPLETED, Outcome.NOTHING_LEFT, Outcome.TIME_OVER)
"""Whose part ended so after their votes is asked the last questions."""
_BETWEEN = (Stage.INSTRUCTIONS, Stage.PRACTICE, Stage.COMPREHENSION)
"""After the questions that say who is eligible, and before the votes."""


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


class StagePage:
    """A page between arrival and end. As it stands here, it is a button to go on."""

    name: Stage
    """Where somebody is who sees it."""
    title: StrPromise
    """Its first heading."""
    button: StrPromise = _("Continue")

    def is_asked(self, protocol: Protocol) -> bool:
        """Say whether the protocol has something for it: what has the name of the stage."""
        return bool(getattr(protocol, self.name))

    def text(self, protocol: Protocol) -> SafeString:
        """Return what stands above the form, as HTML; perhaps nothing."""
        return SafeString()

    def form(
        self, protocol: Protocol, participation: Participation, posted: Mapping[str, str] | None = None
    ) -> forms.Form:
        """Return the form, filled in if something was posted. What is chosen is sent in the protocol's own words."""
        return forms.Form(posted, prefix=PREFIX)

    def result(self, participation: Participation, protocol: Protocol, form: forms.Form) -> Result:
        """Note the answers of a form without errors in the part, and say what comes of them. The caller stores it."""
        return Result()


@dataclass(frozen=True)
class Questions(StagePage):
    """Questions about the person that the researcher has declared. By the answers to those before the votes, some
    cannot take part.
    """

    name: Stage
    title: StrPromise
    is_last: bool

    def is_asked(self, protocol: Protocol) -> bool:
        """True if there is one."""
        return bool(self._questions(protocol))

    def form(
        self, protocol: Protocol, participation: Participation, posted: Mapping[str, str] | None = None
    ) -> forms.Form:
        """Return a field for each question, by its name."""
        form = forms.Form(posted, prefix=PREFIX)
        form.fields.update({question.name: _field(question) for question in self._questions(protocol)})
        return form

    def result(self, participation: Participation, protocol: Protocol, form: forms.Form) -> Result:
        """Note the answers; whoever is not eligible by one of them cannot take part."""
        given = {name: str(answer) for name, answer in form.cleaned_data.items() if answer not in (None, "")}
        at = timezone.now().isoformat()
        # Repeated after a page was lost, the first answers hold.
        participation.answers = {
            name: {"answer": answer, "at": at} for name, answer in given.items()
        } | participation.answers
        screening = [question for question in self._questions(protocol) if question.is_screening]
        is_eligible = all(question.admits(given[question.name]) for question in screening)
        return Result() if is_eligible else Result(Outcome.NOT_ELIGIBLE)

    def _questions(self, protocol: Protocol) -> Sequence[SurveyQuestion]:
        return protocol.asked(last=self.is_last)


class Instructions(StagePage):
    """The researcher's instructions, to read."""

    name = Stage.INSTRUCTIONS
    title = _("Instructions")
    button = _("I have read this")

    def text(self, protocol: Protocol) -> SafeString:
        """Return the text."""
        return rendered(protocol.instructions)


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


class Practice(StagePage):
    """Pairs of the researcher's own, one at a time: the pair, what to learn from the answer, the next one.

    Nobody fails here: the first answer to each pair holds, and its feedback was written before the start.
    """

    name = Stage.PRACTICE
    title = _("Practice")

    def form(
        self, protocol: Protocol, participation: Participation, posted: Mapping[str, str] | None = None
    ) -> PracticeForm:
        """Return the form of the first pair from which they have not gone on."""
        return PracticeForm(_exercise(protocol, participation), posted)

    def result(self, participation: Participation, protocol: Protocol, form: forms.Form) -> Result:
        """Note the answer, or that they go on from it."""
        now = _exercise(protocol, participation)
        if form.cleaned_data["step"] != now.step:
            # Sent twice, or from a second page.
            return Result(stays=True)
        at = timezone.now().isoformat()
        if now.chosen:
            participation.practice[now.number]["read_at"] = at
        elif form.cleaned_data["choice"]:
            participation.practice.append(
                {"chosen_side": form.cleaned_data["choice"], "answered_at": at, "read_at": None}
            )
        else:
            return Result(again=str(_("Choose one of the two.")))
        return Result(stays=not (now.chosen and now.is_last))


class Comprehension(StagePage):
    """Questions about the instructions, below them. Whoever answers them wrongly too often cannot take part."""

    name = Stage.COMPREHENSION
    title = _("Did you understand the task?")
    button = _("Check my answers")

    def text(self, protocol: Protocol) -> SafeString:
        """Return the instructions, to read again."""
        return rendered(protocol.instructions)

    def form(
        self, protocol: Protocol, participation: Participation, posted: Mapping[str, str] | None = None
    ) -> forms.Form:
        """Return a field for each question, by its number."""
        form = forms.Form(posted, prefix=PREFIX)
        form.fields[_TRY] = forms.IntegerField(initial=participation.tries, required=False, widget=forms.HiddenInput)
        for number, check in enumerate(protocol.comprehension):
            form.fields[f"check_{number}"] = _one_of(check.options, label=check.text)
        return form

    def result(self, participation: Participation, protocol: Protocol, form: forms.Form) -> Result:
        """Count the try. Which answer is wrong is not said: the rest could be guessed."""
        if form.cleaned_data.pop(_TRY) == participation.tries:
            if list(form.cleaned_data.values()) == [check.right for check in protocol.comprehension]:
                return Result()
            participation.tries += 1
        # Sent twice, a page is one try; the second is not even looked at, so nobody can guess on.
        left = protocol.tries - participation.tries
        if left <= 0:
            return Result(Outcome.NOT_UNDERSTOOD)
        again = ngettext(
            "Not all answers are right. Read the instructions again. You may try once more.",
            "Not all answers are right. Read the instructions again. You may try %(left)s more times.",
            left,
        )
        return Result(again=again % {"left": left})


STAGES: tuple[StagePage, ...] = (
    Questions(Stage.QUESTIONS, _("About you"), is_last=False),
    Instructions(),
    Practice(),
    Comprehension(),
    Questions(Stage.LAST_QUESTIONS, _("A few last questions"), is_last=True),
)
"""The stages that are a page of their own."""
_ORDER = tuple(Stage)
_PAGES = {stage.name: stage for stage in STAGES}


def page_of(stage: str) -> StagePage | None:
    """Return the page of a stage; None for the votes and the end."""
    return _PAGES.get(Stage(stage))


def next_stage(stage: Stage, protocol: Protocol) -> Stage:
    """Return what comes after a stage that is not the last."""
    rest = _ORDER[_ORDER.index(stage) + 1 :]
    return next(each for each in rest if each not in _PAGES or _PAGES[each].is_asked(protocol))


def needs_place(stage: Stage, protocol: Protocol) -> bool:
    """True if nobody is at a stage without a place: at the votes, and from practice on where there is some, so that
    nobody practises for nothing.
    """
    first = Stage.PRACTICE if protocol.practice else Stage.VOTES
    return stage in _ORDER[_ORDER.index(first) : _ORDER.index(Stage.VOTES) + 1]


@dataclass(frozen=True)
class Page:
    """The page of a stage as somebody sees it.

    Args:
        form: its fields, with errors if something was refused.
        message: why it is shown again; empty at first.
    """

    stage: StagePage
    form: forms.Form
    protocol: Protocol
    message: str = ""

    @cached_property
    def text(self) -> SafeString:
        """What stands above the form, as HTML. Made when it is shown, under no lock: a long text takes its time."""
        return self.stage.text(self.protocol)


def arrive(voter: Voter) -> Stage:
    """Note that somebody opens a page of theirs, and return their stage.

    Somebody who has just joined comes to the first stage. Who has lost their place takes it again if one is free; else
    nothing is left for them. Nor is there on the way to the votes of a campaign that is finished.
    """
    participation = Participation.objects.filter(voter=voter).first()
    if participation is None:
        return Stage.VOTES
    Participation.objects.filter(pk=participation.pk, outcome="").update(seen_at=timezone.now())
    if participation.outcome:
        return Stage(participation.stage)
    participation.voter, study = voter, voter.campaign.config.study
    # At the votes, the pair on the screen may still be answered.
    if participation.stage != Stage.VOTES and limits.is_time_over(voter):
        _end(participation, Outcome.TIME_OVER)
        return Stage.END
    is_limited = participation.placed_at is None and limits.are_limited(study)
    lacks_place = is_limited and needs_place(Stage(participation.stage), study.protocol)
    if participation.stage == Stage.ARRIVAL or lacks_place or _comes_too_late(participation):
        return _set_out(participation)
    return Stage(participation.stage)


def _comes_too_late(participation: Participation) -> bool:
    """True for somebody who is eligible and finds the campaign finished on the way to the votes."""
    return participation.voter.campaign.status == Campaign.Status.FINISHED and participation.stage in _BETWEEN


def has_come_to_votes(voter: Voter) -> bool:
    """True if somebody may answer a pair: they have come to the votes and are not beyond them."""
    elsewhere = Participation.objects.filter(voter=voter).exclude(stage=Stage.VOTES)
    return not limits_of(voter.campaign).recruiter.knows_people or not elsewhere.exists()


def leave(voter: Voter) -> None:
    """Note that a page of somebody's has closed: until now they were there."""
    if limits_of(voter.campaign).recruiter.knows_people:
        Participation.objects.filter(voter=voter, outcome="").update(seen_at=timezone.now())


def page(voter: Voter) -> Page | None:
    """Return the page at which somebody is; None if they are at the votes or at the end."""
    participation = Participation.objects.filter(voter=voter).first()
    stage = page_of(participation.stage) if participation else None
    if participation is None or stage is None:
        return None
    protocol = voter.campaign.config.study.protocol
    return Page(stage, stage.form(protocol, participation), protocol)


def ask_last_questions(voter: Voter, outcome: Outcome) -> bool:
    """Bring somebody whose votes are done to the last questions, if there are some that they have not answered; return
    whether they are there.
    """
    if outcome not in _ASKED_AFTER:
        return False
    participations = Participation.objects.filter(voter=voter)
    if next_stage(Stage.VOTES, voter.campaign.config.study.protocol) == Stage.LAST_QUESTIONS:
        participations.filter(stage=Stage.VOTES).update(stage=Stage.LAST_QUESTIONS)
    return participations.filter(stage=Stage.LAST_QUESTIONS).exists()


def go_on(voter: Voter, stage: str, posted: Mapping[str, str]) -> Page | None:
    """Take what somebody answered on the page of a stage. Safe to repeat.

    Returns:
        The same page, if something was refused or it must be tried again; None otherwise: they are somewhere else now.
    """
    with transaction.atomic():
        study = locked_study(voter.campaign_id)
        participation = _locked(voter=voter)
        at = page_of(participation.stage) if participation else None
        # From a second page, or sent again: they have gone on since.
        if (
            participation is None
            or at is None
            or at.name != stage
            or (participation.outcome and stage != Stage.LAST_QUESTIONS)
        ):
            return None
        if participation.participant_id is None:
            # Forgotten in this moment: nothing is stored of them any more.
            return None
        return _answered(participation, study, at, posted)


def answered(
    participation: Participation, protocol: Protocol, stage: StagePage, posted: Mapping[str, str]
) -> Page | Result:
    """Note in a part what was answered on the page of a stage, and say what comes of it, or return the page again.

    Nothing is stored: the caller does it, for people who are there.
    """
    form = stage.form(protocol, participation, posted)
    if not form.is_valid():
        return Page(stage, form, protocol)
    result = stage.result(participation, protocol, form)
    return Page(stage, stage.form(protocol, participation), protocol, result.again) if result.again else result


def _answered(participation: Participation, study: Study, stage: StagePage, posted: Mapping[str, str]) -> Page | None:
    result = answered(participation, study.protocol, stage, posted)
    participation.save(update_fields=["answers", "practice", "tries"])
    if isinstance(result, Page):
        return result
    if result.outcome:
        _end(participation, result.outcome)
    elif not result.stays:
        _move(participation, study, next_stage(stage.name, study.protocol))
    return None


def _move(participation: Participation, study: Study, stage: Stage) -> None:
    is_to_take = participation.placed_at is None and needs_place(stage, study.protocol)
    if is_to_take and not limits.take(participation, study):
        _end(participation, Outcome.FULL)
        return
    _put(participation, stage)


def _set_out(participation: Participation) -> Stage:
    with transaction.atomic():
        study = locked_study(participation.campaign_id)
        now = _locked(pk=participation.pk)
        if now is None:
            # They have had who they are deleted, on another device.
            return Stage.END
        if now.outcome:
            return Stage(now.stage)
        if now.stage == Stage.ARRIVAL:
            _move(now, study, next_stage(Stage.ARRIVAL, study.protocol))
        elif now.placed_at is None and not limits.take(now, study):
            if now.voter.votes_cast:
                completion.end_participation(now.voter, Outcome.NOTHING_LEFT)
                _put(now, next_stage(Stage.VOTES, study.protocol))
            else:
                _end(now, Outcome.FULL)
        elif _comes_too_late(now):
            _end(now, Outcome.NOTHING_LEFT)
        return Stage(now.stage)


def _end(participation: Participation, outcome: Outcome) -> None:
    completion.end_participation(participation.voter, outcome)
    _put(participation, Stage.END)


def _put(participation: Participation, stage: Stage) -> None:
    participation.stage, participation.seen_at = stage, timezone.now()
    Participation.objects.filter(pk=participation.pk).update(stage=stage, seen_at=participation.seen_at)


def _locked(**which: Any) -> Participation | None:
    whole = Participation.objects.select_related("voter", "campaign").filter(**which)
    participation = whole.select_for_update(no_key=True, of=("self",)).first()
    if participation is not None:
        participation.voter.campaign = participation.campaign
    return participation


def _field(question: SurveyQuestion) -> forms.Field:
    shown: Any = {"label": question.text, "required": question.is_required}
    if question.kind == "choice":
        return _one_of(question.options, **shown)
    if question.kind == "number":
        least = -GREATEST_NUMBER if question.least is None else question.least
        most = GREATEST_NUMBER if question.most is None else question.most
        return forms.IntegerField(min_value=least, max_value=most, **shown)
    if question.kind == "scale":
        return forms.ChoiceField(choices=_points(question), widget=forms.RadioSelect, **shown)
    return forms.CharField(max_length=LONGEST_ANSWER, widget=forms.Textarea(attrs={"rows": 4}), **shown)


def _one_of(options: Sequence[str], **shown: Any) -> forms.Field:
    return forms.ChoiceField(choices=[(each, each) for each in options], widget=forms.RadioSelect, **shown)


def _points(question: SurveyQuestion) -> list[tuple[str, str]]:
    least, most = question.least or 0, question.most or 0
    ends = dict(zip((least, most), question.options, strict=False))
    return [
        (str(point), f"{point} · {ends[point]}" if point in ends else str(point)) for point in range(least, most + 1)
    ]


def _exercise(protocol: Protocol, participation: Participation) -> Exercise:
    number = sum(answer["read_at"] is not None for answer in participation.practice)
    chosen = [Side(answer["chosen_side"]) for answer in participation.practice[number:]]
    return Exercise(protocol.practice[number], number, len(protocol.practice), chosen[0] if chosen else None)
