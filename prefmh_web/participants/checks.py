"""Trials between two pairs that are no votes: made, answered and counted here only.

    instructed   a pair that the person has voted on, with the side to choose written above it
    gold         a pair of the researcher's own, with a right answer; it looks like any other
    repeat       a decided pair that the person has voted on, once more; neither right nor wrong

A trial comes while the person holds no lease; its answer is never a vote. Too many failed ones end the part, where the
protocol says so: then no further pair is leased, and what was voted stays.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_noop as _

from prefmh_web.campaigns.engine import reading
from prefmh_web.campaigns.lifecycle import access
from prefmh_web.campaigns.models import Annotator, Campaign, Lease, Side, State
from prefmh_web.campaigns.started import context_of, contexts_by_content, objects, started_campaign
from prefmh_web.campaigns.voters import number_of
from prefmh_web.config import Outcome
from prefmh_web.objects import StoredObject
from prefmh_web.participants import budget, completion, own_pairs, repeats
from prefmh_web.participants.models import Check, Participation, Stage
from prefmh_web.participants.recruiting import terms_of
from sampler.judges import Context, Trial, check_after

TOLD = {
    Side.FIRST: _("Attention check: choose object 1"),
    Side.SECOND: _("Attention check: choose object 2"),
}
"""What an attention check says."""


@dataclass(frozen=True)
class ShownPair:
    """What a trial shows: the question, and the objects as they stand, each with its columns that are shown."""

    question: str
    first: StoredObject
    second: StoredObject
    of_first: Context = ()
    of_second: Context = ()

    @classmethod
    def of(cls, question: str, first: State, second: State, campaign: Campaign) -> ShownPair:
        """Return a pair of objects of a campaign."""
        contexts = (context_of(state, started_campaign(campaign).config) for state in (first, second))
        return cls(question, objects.stored(first), objects.stored(second), *contexts)

    def swapped(self) -> ShownPair:
        """Return the pair with the objects in each other's place."""
        return ShownPair(self.question, self.second, self.first, self.of_second, self.of_first)


def due(annotator: Annotator, campaign: Campaign) -> Check | None:
    """Return the trial that somebody must answer before their next pair; None if there is none.

    Two pages of theirs show the same one.
    """
    terms, votes = terms_of(campaign), annotator.votes_cast
    seed = started_campaign(campaign).seed
    if not terms.shares.total or not campaign.is_running or annotator.removed_at:
        return None
    trial = check_after(seed, number_of(annotator), votes, terms.shares, len(terms.gold))
    if trial is None:
        return None
    check = _check(annotator, votes, trial)
    return None if check is None or check.answered_at else check


def _check(annotator: Annotator, votes: int, trial: Trial) -> Check | None:
    part = Participation.objects.filter(annotator=annotator).first()
    if part is None:
        return None
    # What they were given stays, even if it could not be chosen any more.
    if given := _whole().filter(participation=part, after_votes=votes).first():
        return given
    found = _MAKERS[trial.kind](annotator, trial)
    if found is None:
        return None
    found = {"kind": trial.kind, "shown_at": timezone.now()} | found
    if terms_of(annotator.campaign).budget is None:
        return _given(part, votes, found)
    with transaction.atomic():
        return _given(part, votes, found) if budget.takes_one_more(annotator.campaign) else None


def _given(part: Participation, votes: int, fields: dict[str, Any]) -> Check:
    check, _ = _whole().get_or_create(participation=part, after_votes=votes, defaults=fields)
    return check


def _instructed(annotator: Annotator, trial: Trial) -> dict[str, Any] | None:
    # Which objects they are does not matter: the pair that they voted on last.
    voted = Lease.objects.filter(annotator=annotator, ending=Lease.Ending.VOTED).order_by("-ended_at", "key")
    last = voted.values_list("key", flat=True).first()
    return None if last is None else {"lease_id": last, "expected_side": Side(trial.side)}


def _gold(annotator: Annotator, trial: Trial) -> dict[str, Any]:
    if trial.gold is None:
        raise ValueError("a gold check has a pair")
    right, is_swapped = Side(terms_of(annotator.campaign).gold[trial.gold].answer), trial.side == "second"
    return {"gold": trial.gold, "is_swapped": is_swapped, "expected_side": right.other if is_swapped else right}


def _repeat(annotator: Annotator, trial: Trial) -> dict[str, Any] | None:
    lease = repeats.choose(annotator, trial.which)
    return None if lease is None else {"lease_id": lease, "is_swapped": trial.side == "second"}


_MAKERS: dict[str, Callable[[Annotator, Trial], dict[str, Any] | None]] = {
    Check.Kind.INSTRUCTED: _instructed,
    Check.Kind.GOLD: _gold,
    Check.Kind.REPEAT: _repeat,
}


def _whole() -> QuerySet[Check]:
    return Check.objects.select_related("lease__comparison__current__campaign", "lease__comparison__proposal__campaign")


def shown_pair(check: Check, campaign: Campaign) -> ShownPair:
    """Return what a trial shows."""
    pair = _pair(check, campaign)
    return pair.swapped() if check.is_swapped else pair


def _pair(check: Check, campaign: Campaign) -> ShownPair:
    if check.lease is None:
        gold = terms_of(campaign).gold[check.gold or 0]
        question = own_pairs.question_of(gold, campaign.config)
        contexts = contexts_by_content(campaign, started_campaign(campaign).config, gold.first, gold.second)
        return ShownPair(question, StoredObject(gold.first), StoredObject(gold.second), *contexts)
    if check.kind == Check.Kind.REPEAT:
        question = started_campaign(campaign).judge(check.lease.judge_id).question
    else:
        question = gettext(TOLD[Side(check.expected_side)])
    return ShownPair.of(question, check.lease.first, check.lease.second, campaign)


def by_key(key: uuid.UUID) -> Check | None:
    """Return the trial of a key, if it is that of one."""
    return _whole().select_related("participation__annotator__campaign").filter(key=key).first()


def has(key: uuid.UUID, annotator: Annotator) -> bool:
    """True if a key is that of a trial that this person was shown."""
    if not terms_of(annotator.campaign).has_trials:
        return False
    return Check.objects.filter(key=key, participation__annotator=annotator).exists()


def answer(key: uuid.UUID, annotator: Annotator, choice: Side | None, elapsed_ms: int | None) -> None:
    """Store what somebody chose, or that they skipped it; the first answer holds. Who fails too often is shown out.

    What says which side to choose cannot be skipped: it is shown again.

    Args:
        annotator: is brought up to date.
    """
    with transaction.atomic():
        part = Participation.objects.select_for_update(no_key=True).get(annotator=annotator)
        now = {"chosen_side": choice or "", "elapsed_ms": elapsed_ms, "answered_at": timezone.now()}
        checks = part.checks.filter(key=key, answered_at=None)
        (checks if choice else checks.exclude(kind=Check.Kind.INSTRUCTED)).update(**now)
        if part.outcome == "" and _has_failed(part):
            _show_out(part, annotator)
    reading.refresh(annotator)


def counts_of(part: Participation) -> tuple[int, int]:
    """Return how many checks somebody passed, and how many they failed."""
    answered = [check.is_passed for check in part.checks.all()]
    return answered.count(True), answered.count(False)


def _has_failed(part: Participation) -> bool:
    protocol = part.campaign.config.study.protocol
    return protocol.checks_end and counts_of(part)[1] > protocol.checks_may_fail


def _show_out(part: Participation, annotator: Annotator) -> None:
    Participation.objects.filter(pk=part.pk).update(stage=Stage.END)
    completion.end_of(annotator, annotator.campaign, Outcome.CHECKS_FAILED)
    access.remove(annotator)
