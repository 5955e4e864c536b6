"""Trials between two pairs that are no votes: made, answered and counted here only.

    instructed   a pair that the person has voted on, with the side to choose written above it
    gold         a pair of the researcher's own, with a right answer; it looks like any other
    repeat       a decided pair that the person has voted on, once more; neither right nor wrong

A trial comes while the person holds no lease; its answer is never a vote. Too many failed ones end the part, where the
protocol says so: then no further pair is leased, and what was voted stays.

Which of a person's own earlier pairs can be shown once more: a repeat describes them, and is never a vote.

Only decided pairs that are open in no chain: a pair that somebody may still vote on is not asked in any other way
(rule E3 of `docs/exactness.md`).

The researcher's own pairs beside the campaign's objects and questions: do they fit, and which objects are states.

What people answered to the gold pairs, which everybody of a campaign meets in one order: how far they agree.

These answers are no votes. Of somebody who has met a pair several times, the first answer counts.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_noop as _

import sampler
from prefmh_web.campaigns import objects
from prefmh_web.campaigns.engine import reading
from prefmh_web.campaigns.frozen import started_campaign
from prefmh_web.campaigns.lifecycle import access
from prefmh_web.campaigns.models import Annotator, Campaign, Comparison, Lease, Side, State
from prefmh_web.campaigns.objects import context_of, contexts_by_content
from prefmh_web.campaigns.voters import number_of
from prefmh_web.config import Outcome, OwnPair, Protocol
from prefmh_web.config.misfits import questions_of
from prefmh_web.objects import StoredObject
from prefmh_web.participants import completion, limits
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
        return _given(part, votes, found) if limits.takes_one_more(annotator.campaign) else None


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
    lease = choose(annotator, trial.which)
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
        question = question_of(gold, campaign.config)
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


Pair = frozenset[str]
"""The contents of two objects: two chains may make the same object under two numbers."""


def choose(annotator: Annotator, which: float) -> uuid.UUID | None:
    """Return the lease of the pair to repeat; None if there is none.

    Args:
        which: uniform on [0, 1): the place among those that can be repeated.
    """
    found = possible(annotator)
    return found[int(which * len(found))] if found else None


def possible(annotator: Annotator) -> Sequence[uuid.UUID]:
    """Return the leases of pairs that can be repeated, in the order of the answers: each pair once, and not the one
    that the person has just answered.
    """
    voted = Lease.objects.filter(annotator=annotator, ending=Lease.Ending.VOTED).order_by("ended_at", "key")
    pairs = voted.values_list(
        "key", "comparison__verdict", "comparison__current__content", "comparison__proposal__content"
    )
    repeats = Check.objects.filter(participation__annotator=annotator, kind=Check.Kind.REPEAT)
    repeated, undecided = set(repeats.values_list("lease", flat=True)), open_pairs(annotator.campaign_id)
    return [
        key
        for key, verdict, *pair in list(pairs)[:-1]
        if verdict and key not in repeated and frozenset(pair) not in undecided
    ]


def open_pairs(campaign_id: int) -> set[Pair]:
    """Return the pairs that somebody may still vote on."""
    asked = Comparison.objects.filter(chain__campaign=campaign_id, verdict=None)
    return {frozenset(pair) for pair in asked.values_list("current__content", "proposal__content")}


def question_of(pair: OwnPair, config: sampler.ChainConfig) -> str:
    """Return the question that stands above a pair."""
    return questions_of(config)[pair.question - 1]


def states_among(protocol: Protocol, campaign: Campaign) -> Sequence[str] | None:
    """Return the states of the campaign's space that look like an object of the protocol's pairs: feedback on them
    teaches the judge. None where that is not known, because the chains make their objects.
    """
    if campaign.config.generates:
        return None
    contents = {sampler.shown_alike(content) for pair in protocol.own_pairs for content in (pair.first, pair.second)}
    states = campaign.states.values_list("content", flat=True) if contents else ()
    return sorted(content for content in states if sampler.shown_alike(content) in contents)


@dataclass(frozen=True)
class GoldAnswers:
    """What was answered to one gold pair.

    Args:
        number: of the pair in the protocol, from 0.
        question: that stands above it.
        first, second: how many people chose each object, by its order in the protocol.
    """

    number: int
    question: str
    pair: OwnPair
    first: int
    second: int

    @property
    def people(self) -> int:
        """How many people answered."""
        return self.first + self.second

    @property
    def first_percent(self) -> float | None:
        """How often the first object was chosen; None without an answer."""
        return 100 * self.first / self.people if self.people else None

    @property
    def second_percent(self) -> float | None:
        """How often the second object was chosen; None without an answer."""
        return 100 * self.second / self.people if self.people else None


def answers_in(campaign: Campaign) -> list[GoldAnswers]:
    """Return what was answered to each gold pair of a campaign, in the protocol's order."""
    pairs, config = terms_of(campaign).gold, campaign.config
    chose_first: dict[tuple[int, int], bool] = {}
    answered = Check.objects.filter(participation__campaign=campaign, kind=Check.Kind.GOLD).exclude(chosen_side="")
    columns = ("participation", "gold", "chosen_side", "is_swapped")
    for part, gold, side, is_swapped in answered.order_by("after_votes").values_list(*columns):
        chose_first.setdefault((part, gold), (side == Side.FIRST) != is_swapped)
    found = []
    for number, pair in enumerate(pairs):
        said = [is_first for (_, gold), is_first in chose_first.items() if gold == number]
        question = question_of(pair, config)
        found.append(GoldAnswers(number, question, pair, sum(said), len(said) - sum(said)))
    return found


def share_alike(answers: Iterable[GoldAnswers]) -> float | None:
    """Return how often two people who answered the same pair chose the same object; None if no two did. People who flip
    coins do so half of the time.
    """
    found = list(answers)
    alike = sum(each.first * (each.first - 1) + each.second * (each.second - 1) for each in found)
    pairs = sum(each.people * (each.people - 1) for each in found)
    return alike / pairs if pairs else None
