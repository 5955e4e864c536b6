"""Somebody's way through the stages: where they are, and the one door through which they go on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from django import forms
from django.db import transaction
from django.utils import timezone
from django.utils.safestring import SafeString

from prefmh_web.campaigns.models import Annotator, Campaign
from prefmh_web.config import Outcome, Study
from prefmh_web.participants import completion, limits
from prefmh_web.participants.models import Participation, Stage
from prefmh_web.participants.recruiting import locked_study, terms_of
from prefmh_web.participants.stages import AStage, needs_place, next_stage, page_of

_ASKED_AFTER = (Outcome.COMPLETED, Outcome.NOTHING_LEFT, Outcome.TIME_OVER)
"""Whose part ended so after their votes is asked the last questions."""
_BETWEEN = (Stage.INSTRUCTIONS, Stage.PRACTICE, Stage.COMPREHENSION)
"""After the questions that say who is eligible, and before the votes."""


@dataclass(frozen=True)
class Page:
    """The page of a stage.

    Args:
        stage: what it is.
        form: its fields, with errors if something was refused.
        text: what stands above them, as HTML.
        message: why it is shown again; empty at first.
    """

    stage: AStage
    form: forms.Form
    text: SafeString
    message: str = ""


def arrive(annotator: Annotator) -> Stage:
    """Note that somebody opens a page of theirs, and return their stage.

    Somebody who has just joined comes to the first stage. Who has lost their place takes it again if one is free; else
    nothing is left for them. Nor is there on the way to the votes of a campaign that is finished.
    """
    part = Participation.objects.filter(annotator=annotator).first()
    if part is None:
        return Stage.VOTES
    Participation.objects.filter(pk=part.pk, outcome="").update(seen_at=timezone.now())
    study = annotator.campaign.config.study
    # At the votes, the pair on the screen may still be answered.
    if part.outcome == "" and part.stage != Stage.VOTES and completion.is_time_over(annotator):
        _end(part, Outcome.TIME_OVER)
    is_to_move = (
        part.stage == Stage.ARRIVAL or _is_without_place(part, study) or _comes_too_late(part, annotator.campaign)
    )
    if part.outcome == "" and is_to_move:
        return _set_out(part)
    return Stage(part.stage)


def _comes_too_late(part: Participation, campaign: Campaign) -> bool:
    """True for somebody who is eligible and finds the campaign finished on the way to the votes."""
    return campaign.status == Campaign.Status.FINISHED and part.stage in _BETWEEN


def _is_without_place(part: Participation, study: Study) -> bool:
    if part.placed_at or not limits.are_limited(study):
        return False
    return needs_place(Stage(part.stage), study.protocol)


def has_come_to_votes(annotator: Annotator) -> bool:
    """True if somebody may answer a pair: they have come to the votes and are not beyond them."""
    elsewhere = Participation.objects.filter(annotator=annotator).exclude(stage=Stage.VOTES)
    return not terms_of(annotator.campaign).recruiter.knows_people or not elsewhere.exists()


def leave(annotator: Annotator) -> None:
    """Note that a page of somebody's has closed: until now they were there."""
    if terms_of(annotator.campaign).recruiter.knows_people:
        Participation.objects.filter(annotator=annotator, outcome="").update(seen_at=timezone.now())


def page(annotator: Annotator) -> Page | None:
    """Return the page at which somebody is; None if they are at the votes or at the end."""
    part = Participation.objects.filter(annotator=annotator).first()
    stage = page_of(part.stage) if part else None
    if part is None or stage is None:
        return None
    protocol = annotator.campaign.config.study.protocol
    return Page(stage, stage.form(protocol, part), stage.text(protocol))


def ask_last_questions(annotator: Annotator, outcome: Outcome) -> bool:
    """Bring somebody whose votes are done to the last questions, if there are some that they have not answered; return
    whether they are there.
    """
    if outcome not in _ASKED_AFTER:
        return False
    part = Participation.objects.filter(annotator=annotator).first()
    if part is None:
        return False
    return _after_votes(part, annotator.campaign.config.study) == Stage.LAST_QUESTIONS


def go_on(annotator: Annotator, stage: str, posted: Mapping[str, str]) -> Page | None:
    """Take what somebody answered on the page of a stage. Safe to repeat.

    Returns:
        The same page, if something was refused or it must be tried again; None otherwise: they are somewhere else now.
    """
    with transaction.atomic():
        study = locked_study(annotator.campaign_id)
        locked = Participation.objects.select_for_update(no_key=True, of=("self",)).select_related(
            "annotator", "campaign"
        )
        part = locked.filter(annotator=annotator).first()
        at = page_of(part.stage) if part else None
        # From a second page, or sent again: they have gone on since.
        if part is None or at is None or at.name != stage or (part.outcome and stage != Stage.LAST_QUESTIONS):
            return None
        if part.participant_id is None:
            # Forgotten in this moment: nothing is stored of them any more.
            return None
        asked_again = _answered(part, study, at, posted)
    # Outside the transaction: a long text takes its time.
    if asked_again is None:
        return None
    text = at.text(study.protocol)
    return Page(at, asked_again.form, text, asked_again.message)


@dataclass(frozen=True)
class _AskedAgain:
    form: forms.Form
    message: str = ""


def _answered(part: Participation, study: Study, stage: AStage, posted: Mapping[str, str]) -> _AskedAgain | None:
    protocol = study.protocol
    form = stage.form(protocol, part, posted)
    if not form.is_valid():
        return _AskedAgain(form)
    result = stage.result(part, protocol, form)
    if result.again:
        return _AskedAgain(stage.form(protocol, part), result.again)
    if result.outcome:
        _end(part, result.outcome)
    elif not result.stays:
        _move(part, study, next_stage(stage.name, protocol))
    return None


def _move(part: Participation, study: Study, stage: Stage) -> None:
    is_to_take = part.placed_at is None and needs_place(stage, study.protocol)
    if is_to_take and not limits.take(part, study):
        _end(part, Outcome.FULL)
        return
    _put(part, stage)


def _set_out(part: Participation) -> Stage:
    with transaction.atomic():
        study = locked_study(part.campaign_id)
        locked = Participation.objects.select_for_update(no_key=True, of=("self",)).select_related(
            "annotator", "campaign"
        )
        now = locked.filter(pk=part.pk).first()
        if now is None:
            # They have had who they are deleted, on another device.
            return Stage.END
        if now.outcome == "" and now.stage == Stage.ARRIVAL:
            _move(now, study, next_stage(Stage.ARRIVAL, study.protocol))
        elif now.outcome == "" and now.placed_at is None and not limits.take(now, study):
            _end_without_place(now, study)
        elif now.outcome == "" and _comes_too_late(now, now.campaign):
            _end(now, Outcome.NOTHING_LEFT)
        return Stage(now.stage)


def _end_without_place(part: Participation, study: Study) -> None:
    if not part.annotator.votes_cast:
        _end(part, Outcome.FULL)
        return
    completion.end_of(part.annotator, part.campaign, Outcome.NOTHING_LEFT)
    _put(part, next_stage(Stage.VOTES, study.protocol))


def _after_votes(part: Participation, study: Study) -> Stage:
    """Bring somebody from the votes, in which they took part, to what comes after them."""
    stage = next_stage(Stage.VOTES, study.protocol)
    if stage == Stage.LAST_QUESTIONS:
        Participation.objects.filter(pk=part.pk, stage=Stage.VOTES).update(stage=stage)
        part.refresh_from_db(fields=["stage"])
    return Stage(part.stage)


def _end(part: Participation, outcome: Outcome) -> None:
    completion.end_of(part.annotator, part.campaign, outcome)
    _put(part, Stage.END)


def _put(part: Participation, stage: Stage) -> None:
    part.stage, part.seen_at = stage, timezone.now()
    Participation.objects.filter(pk=part.pk).update(stage=stage, seen_at=part.seen_at)
