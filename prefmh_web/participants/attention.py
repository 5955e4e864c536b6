"""Trials between two pairs that are no votes: made, answered and counted here only.

    instructed   a pair that the person has voted on, with the side to choose written above it
    gold         a pair of the researcher's own, with a right answer; it looks like any other
    repeat       a decided pair that the person has voted on, once more; neither right nor wrong

A trial comes while the person holds no lease; its answer is never a vote. Too many failed ones end the part, where the
protocol says so: then no further pair is leased, and what was voted stays.

A pair that somebody may still vote on, in whatever chain, is not repeated (rule E3 of `docs/exactness.md`).
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_noop as _

import sampler
from prefmh_web.campaigns.engine import locks
from prefmh_web.campaigns.frozen import started_campaign
from prefmh_web.campaigns.lifecycle import access
from prefmh_web.campaigns.models import Campaign, Comparison, Lease, Side, Voter, number_of
from prefmh_web.campaigns.objects import Pair, leased_pair, own_pair
from prefmh_web.config import Outcome, OwnPair, Protocol, questions_of
from prefmh_web.participants import completion, limits
from prefmh_web.participants.models import AttentionCheck, Participation, Stage
from sampler.judges import InsertedTrial, check_after

TOLD = {
    Side.FIRST: _("Attention check: choose object 1"),
    Side.SECOND: _("Attention check: choose object 2"),
}
"""What an attention check says."""


def due(voter: Voter) -> AttentionCheck | None:
    """Return the trial that somebody must answer before their next pair; None if there is none. Only of a campaign that
    has trials.

    Two pages of theirs show the same one.
    """
    campaign, votes = voter.campaign, voter.votes_cast
    if not campaign.is_running or voter.removed_at:
        return None
    started = started_campaign(campaign)
    golds = len(started.config.study.protocol.gold)
    trial = check_after(started.seed, number_of(voter), votes, started.limits.shares, golds)
    check = None if trial is None else _check(voter, trial)
    return None if check is None or check.answered_at else check


def _check(voter: Voter, trial: InsertedTrial) -> AttentionCheck | None:
    participation, votes = Participation.objects.filter(voter=voter).first(), voter.votes_cast
    if participation is None:
        return None
    # What they were given stays, even if it could not be chosen any more.
    if given := _whole().filter(participation=participation, after_votes=votes).first():
        return given
    found = _shown_in(voter, trial)
    if found is None:
        return None
    found |= {"kind": trial.kind, "shown_at": timezone.now()}
    with transaction.atomic():
        if started_campaign(voter.campaign).limits.has_budget and not limits.takes_one_more(voter.campaign):
            return None
        return _whole().get_or_create(participation=participation, after_votes=votes, defaults=found)[0]


def _shown_in(voter: Voter, trial: InsertedTrial) -> dict[str, Any] | None:
    """Return what a trial shows and what is right, as columns of `AttentionCheck`; None without such a pair."""
    if trial.gold is not None:
        gold = started_campaign(voter.campaign).config.study.protocol.gold[trial.gold]
        right, is_swapped = Side(gold.answer), trial.side == "second"
        return {"gold": trial.gold, "is_swapped": is_swapped, "expected_side": right.other if is_swapped else right}
    if trial.kind == "repeat":
        found = possible(voter)
        lease = found[int(trial.which * len(found))] if found else None
        return None if lease is None else {"lease_id": lease, "is_swapped": trial.side == "second"}
    # Which objects they are does not matter: the pair that they voted on last.
    last = _voted(voter).values_list("key", flat=True).last()
    return None if last is None else {"lease_id": last, "expected_side": Side(trial.side)}


def _voted(voter: Voter) -> QuerySet[Lease]:
    return Lease.objects.filter(voter=voter, ending=Lease.Ending.VOTED).order_by("ended_at", "key")


def _whole() -> QuerySet[AttentionCheck]:
    return AttentionCheck.objects.select_related(
        "lease__comparison__current__campaign", "lease__comparison__proposal__campaign"
    )


def shown_pair(check: AttentionCheck, campaign: Campaign) -> Pair:
    """Return what a trial shows."""
    if check.lease is None:
        pair = own_pair(started_campaign(campaign).config.study.protocol.gold[check.gold or 0], campaign)
    else:
        told = gettext(TOLD[Side(check.expected_side)]) if check.kind == AttentionCheck.Kind.INSTRUCTED else ""
        pair = leased_pair(check.lease, campaign, told)
    return pair.swapped() if check.is_swapped else pair


def by_key(key: uuid.UUID) -> AttentionCheck | None:
    """Return the trial of a key, if it is that of one."""
    return _whole().select_related("participation__voter__campaign").filter(key=key).first()


def has(key: uuid.UUID, voter: Voter) -> bool:
    """True if a key is that of a trial that this person was shown."""
    return AttentionCheck.objects.filter(key=key, participation__voter=voter).exists()


def answer(key: uuid.UUID, voter: Voter, choice: Side | None, elapsed_ms: int | None) -> None:
    """Store what somebody chose, or that they skipped it; the first answer holds. Who fails too often is shown out.

    What says which side to choose cannot be skipped: it is shown again.

    Args:
        voter: is brought up to date.
    """
    with transaction.atomic():
        participation = Participation.objects.select_for_update(no_key=True).get(voter=voter)
        now = {"chosen_side": choice or "", "elapsed_ms": elapsed_ms, "answered_at": timezone.now()}
        checks = participation.checks.filter(key=key, answered_at=None)
        (checks if choice else checks.exclude(kind=AttentionCheck.Kind.INSTRUCTED)).update(**now)
        if participation.outcome == "" and _has_failed(participation):
            Participation.objects.filter(pk=participation.pk).update(stage=Stage.END)
            completion.end_participation(voter, Outcome.CHECKS_FAILED)
            access.remove(voter)
    locks.refresh(voter)


def _has_failed(participation: Participation) -> bool:
    protocol = participation.campaign.config.study.protocol
    failed = [check for check in participation.checks.all() if check.is_passed is False]
    return protocol.checks_end and len(failed) > protocol.checks_may_fail


def possible(voter: Voter) -> Sequence[uuid.UUID]:
    """Return the leases of pairs that can be repeated, in the order of the answers: each decided pair once, and not the
    one that the person has just answered.

    Two chains may make the same object under two numbers, so pairs are told apart by their contents.
    """
    contents = ("current__content", "proposal__content")
    pairs = _voted(voter).values_list("key", "comparison__verdict", *(f"comparison__{each}" for each in contents))
    repeats = AttentionCheck.objects.filter(participation__voter=voter, kind=AttentionCheck.Kind.REPEAT)
    repeated = set(repeats.values_list("lease", flat=True))
    asked = Comparison.objects.filter(chain__campaign=voter.campaign_id, verdict=None)
    undecided = {frozenset(pair) for pair in asked.values_list(*contents)}
    return [
        key
        for key, verdict, *pair in list(pairs)[:-1]
        if verdict and key not in repeated and frozenset(pair) not in undecided
    ]


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
    """What was answered to one gold pair, which everybody of a campaign meets in one order.

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
    """Return what was answered to each gold pair of a campaign, in the protocol's order. Of somebody who has met a pair
    several times, the first answer counts.
    """
    config = campaign.config
    chose_first: dict[tuple[int, int], bool] = {}
    answered = AttentionCheck.objects.filter(participation__campaign=campaign, kind=AttentionCheck.Kind.GOLD).exclude(
        chosen_side=""
    )
    columns = ("participation", "gold", "chosen_side", "is_swapped")
    for participation, gold, side, is_swapped in answered.order_by("after_votes").values_list(*columns):
        chose_first.setdefault((participation, gold), (side == Side.FIRST) != is_swapped)
    found = []
    for number, pair in enumerate(config.study.protocol.gold):
        said = [is_first for (_, gold), is_first in chose_first.items() if gold == number]
        question = questions_of(config)[pair.question - 1]
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
