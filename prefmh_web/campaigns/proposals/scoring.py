"""Scores of the objects that steps have proposed, a batch at a time.

The sweep looks for objects without one, so nothing on a vote's path knows of scores, and a batch that was lost with its
worker is asked again. While a scorer is asked, no lock is held and no transaction is open: a claim in its row, renewed
meanwhile, keeps others from asking the same. A scorer that fails stops no chain, unless its numbers decide: then the
steps that lack them wait until somebody has seen to it.

Numbers come to objects and not to steps, and one object may be in the steps of many chains. So whoever has stored
numbers, or has nothing to ask any more, looks through the open steps of the campaign: at most one a chain.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from datetime import datetime

from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone

import sampler
from prefmh_web.campaigns import dispatch, frozen, objects
from prefmh_web.campaigns.engine import reading, transitions
from prefmh_web.campaigns.engine.claims import claim_end, held
from prefmh_web.campaigns.frozen import started_campaign
from prefmh_web.campaigns.models import Campaign, CampaignScorer, Chain, Comparison, Score, State
from prefmh_web.campaigns.objects import scores_of
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
        until = claim_end()
        if not _take(scorer, until):
            continue
        with held(CampaignScorer, [scorer.pk], "claimed_until", until):
            has_scored = _score_batch(campaign, scorer)
        # Once it is free: whoever brought an object while it was held has gone away again.
        is_more |= has_scored and unscored(campaign, scorer).exists()
    _go_on(campaign)
    if is_more:
        dispatch.score(campaign)


def waiting() -> list[Campaign]:
    """Return the campaigns that have objects without a score, or steps that scores decide now."""
    found: dict[int, Campaign] = {}
    for scorer in CampaignScorer.objects.filter(is_complete=False).select_related("campaign"):
        campaign = scorer.campaign
        if campaign.pk in found:
            continue
        if _has_work(campaign, scorer) or _are_steps_ready(campaign):
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


def _take(scorer: CampaignScorer, until: datetime) -> bool:
    # A guarded update: of two processes that see it free, one gets it.
    free = CampaignScorer.objects.filter(_is_free(), pk=scorer.pk, stopped_because="")
    return bool(free.update(claimed_until=until))


def _is_free() -> Q:
    return Q(claimed_until__isnull=True) | Q(claimed_until__lte=timezone.now())


def _go_on(campaign: Campaign) -> None:
    """Decide every open step of a campaign whose objects have all their numbers, or have it judged where numbers are
    only shown; nothing where no step waits for any.
    """
    keys = list(_steps_ready(campaign))
    if keys and started_campaign(campaign).config.estimate:
        for comparison in Comparison.objects.filter(pk__in=keys).select_related("chain__campaign"):
            dispatch.judge(comparison)
        return
    if keys:
        frozen.prepare(campaign)
    for key in keys:
        with reading.locked(key) as comparison:
            transitions.decide_by_scores(comparison)


def _steps_ready(campaign: Campaign) -> Iterator[int]:
    """Yield the keys of a campaign's open steps whose objects have all their numbers."""
    scorers = started_campaign(campaign).config.awaited_scorers
    if not scorers:
        return
    open_ones = Comparison.objects.filter(chain__campaign=campaign, verdict__isnull=True, chain__ended_at=None)
    pairs = list(open_ones.order_by("pk").values_list("pk", "current_id", "proposal_id"))
    given = scores_of(campaign, {key for _, *pair in pairs for key in pair})
    for key, *pair in pairs:
        if all(len(given[state]) == len(scorers) for state in pair):
            yield key


def _are_steps_ready(campaign: Campaign) -> bool:
    """Return whether a campaign has steps to decide. Of those to be judged, the sweep finds the turns."""
    return bool(started_campaign(campaign).config.rule.scorers) and next(_steps_ready(campaign), None) is not None
