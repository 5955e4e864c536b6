"""Scores of the objects that steps have proposed, a batch at a time.

The sweep looks for objects without one, so nothing on a vote's path knows of scores, and a batch that was lost with its
worker is asked again. While a scorer is asked, no lock is held and no transaction is open: a claim in its row, renewed
meanwhile, keeps others from asking the same. A scorer that fails stops no chain, unless its numbers decide: then the
steps that lack them wait until somebody has seen to it (`scored_steps.py`).
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone

import sampler
from prefmh_web.campaigns import dispatch
from prefmh_web.campaigns.engine.renewal import claim_end, renewed
from prefmh_web.campaigns.models import Campaign, CampaignScorer, Chain, Comparison, Score, State
from prefmh_web.campaigns.proposals import scored_steps
from prefmh_web.campaigns.started import objects
from prefmh_web.scorers import Answer, NoScore, ScorerError, ScorerInterrupted, found_again
from prefmh_web.transport import sockets

logger = logging.getLogger(__name__)

# What a worker loses at most, and how long other campaigns wait for their turn.
BATCH = 32


def score(campaign_id: int) -> None:
    """Ask each scorer of a campaign about a batch of objects, and go on with the steps that waited for their numbers;
    hint that there is more, if there is.
    """
    campaign = Campaign.objects.get(pk=campaign_id)
    is_more = False
    for scorer in _to_ask().filter(campaign=campaign):
        with _held(scorer) as is_mine:
            has_scored = is_mine and _score_batch(campaign, scorer)
        # Once it is free: whoever brought an object while it was held has gone away again.
        is_more |= has_scored and unscored(campaign, scorer).exists()
    scored_steps.go_on(campaign)
    if is_more:
        dispatch.score(campaign)


def waiting() -> list[Campaign]:
    """Return the campaigns that have objects without a score, or steps that scores decide now."""
    found: dict[int, Campaign] = {}
    for scorer in CampaignScorer.objects.filter(is_complete=False).select_related("campaign"):
        campaign = scorer.campaign
        if campaign.pk in found:
            continue
        if _has_work(campaign, scorer) or scored_steps.are_ready(campaign):
            found[campaign.pk] = campaign
    return list(found.values())


def _has_work(campaign: Campaign, scorer: CampaignScorer) -> bool:
    is_free = scorer.claimed_until is None or scorer.claimed_until <= timezone.now()
    if scorer.stopped_because or not is_free:
        return False
    # The end of a finished one is noted in its turn, so that nobody looks again.
    return campaign.status == Campaign.Status.FINISHED or unscored(campaign, scorer).exists()


def unscored(campaign: Campaign, scorer: CampaignScorer) -> QuerySet[State]:
    """Return the objects that chains have started at or proposed, and that the scorer was not asked about."""
    found = State.objects.filter(~Exists(Score.objects.filter(scorer=scorer, state=OuterRef("pk"))), campaign=campaign)
    if campaign.config.generates:
        return found
    # Of a catalog, most may never be proposed.
    started = Chain.objects.filter(campaign=campaign, start=OuterRef("pk"))
    proposed = Comparison.objects.filter(chain__campaign=campaign, proposal=OuterRef("pk"))
    return found.filter(Exists(started) | Exists(proposed))


def _to_ask() -> QuerySet[CampaignScorer]:
    return CampaignScorer.objects.filter(_is_free(), stopped_because="", is_complete=False)


def _score_batch(campaign: Campaign, scorer: CampaignScorer) -> bool:
    """Ask about a batch and store what comes; True where something came."""
    states = list(
        unscored(campaign, scorer).select_related("campaign").defer("campaign__tuning").order_by("pk")[:BATCH]
    )
    if not states:
        if campaign.status == Campaign.Status.FINISHED:
            CampaignScorer.objects.filter(pk=scorer.pk).update(is_complete=True)
        return False
    try:
        found_scorer = found_again(campaign.object_kind.name, scorer.frozen)
        answers = found_scorer.scores(campaign.object_kind, [objects.stored(state) for state in states])
    except ScorerInterrupted:
        # The sweep of the next process finds them.
        return False
    except ScorerError as error:
        logger.warning("a scorer fails: %s", error, extra={"campaign": campaign.pk})
        CampaignScorer.objects.filter(pk=scorer.pk).update(stopped_because=str(error)[:500])
        sockets.nudge(sockets.watchers(campaign.pk))
        return False
    # Somebody whose claim ran out may have stored the same ones.
    rows = [_row(campaign, state, scorer, answer) for state, answer in zip(states, answers, strict=True)]
    Score.objects.bulk_create(rows, ignore_conflicts=True)
    sockets.nudge(sockets.watchers(campaign.pk))
    return True


def _row(campaign: Campaign, state: State, scorer: CampaignScorer, answer: Answer) -> Score:
    rule = campaign.config.rule
    if isinstance(rule, sampler.ScoredConfig) and scorer.name in rule.scorers and not isinstance(answer, NoScore):
        reason = rule.unusable(scorer.name, answer)
        answer = NoScore(f"it wrote {answer:g}; {reason}") if reason else answer
    if isinstance(answer, NoScore):
        return Score(state=state, scorer=scorer, reason=answer.reason[:300])
    return Score(state=state, scorer=scorer, value=answer)


@contextmanager
def _held(scorer: CampaignScorer) -> Iterator[bool]:
    """Claim a scorer of a campaign, if it is free, and free it at the end; yield whether it is ours."""
    claim = _Claim(scorer.pk, claim_end())
    if not claim.take():
        yield False
        return
    try:
        with renewed(claim):
            yield True
    finally:
        claim.free()


class _Claim:
    def __init__(self, scorer: int, until: datetime) -> None:
        self._scorer, self._until = scorer, until

    def __str__(self) -> str:
        return f"scorer {self._scorer}"

    def take(self) -> bool:
        # A guarded update: of two processes that see it free, one gets it.
        free = CampaignScorer.objects.filter(_is_free(), pk=self._scorer, stopped_because="")
        return bool(free.update(claimed_until=self._until))

    def renew(self) -> None:
        until = claim_end()
        self._mine().update(claimed_until=until)
        self._until = until

    def free(self) -> None:
        self._mine().update(claimed_until=None)

    def _mine(self) -> QuerySet[CampaignScorer]:
        return CampaignScorer.objects.filter(pk=self._scorer, claimed_until=self._until)


def _is_free() -> Q:
    return Q(claimed_until__isnull=True) | Q(claimed_until__lte=timezone.now())
