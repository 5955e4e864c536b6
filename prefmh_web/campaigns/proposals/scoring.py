"""Numbers of objects, a batch at a time: what scorers of a campaign say, and what the program measures for its pages.

    score      ask the scorers of a campaign about the objects that chains have started at or proposed
    waiting    the campaigns where that is to be done
    measure    measure the objects that chains have been at

The sweep looks for objects without a score, so nothing on a vote's path knows of scores, and a batch that was lost with
its worker is asked again. While a scorer is asked, no lock is held and no transaction is open: a claim in its row,
renewed meanwhile, keeps others from asking the same. A scorer that fails stops no chain, unless its numbers decide:
then the steps that lack them wait until somebody has seen to it.

Numbers come to objects and not to steps, and one object may be in the steps of many chains. So whoever has stored
numbers, or has nothing to ask any more, looks through the open steps of the campaign: at most one a chain.

A measure is a function of its object alone, so it does not matter who stores it first, or that two measure the same.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Iterator

from django.db.models import Exists, OuterRef, QuerySet

import sampler
from prefmh_web.campaigns import dispatch, frozen, objects
from prefmh_web.campaigns.engine import locks, transitions
from prefmh_web.campaigns.engine.locks import claim_end, held, unclaimed
from prefmh_web.campaigns.frozen import started_campaign
from prefmh_web.campaigns.models import Campaign, CampaignScorer, Chain, Comparison, Measured, Score, State
from prefmh_web.campaigns.objects import scores_of
from prefmh_web.scorers import Answer, NoScore, ScorerError, ScorerInterrupted, found_again
from prefmh_web.transport import sockets

logger = logging.getLogger(__name__)

# What a worker loses at most, and how long other campaigns wait for their turn.
BATCH = 32
# Of measures, which are quick: as many as are lost with a process, and as many as one task takes.
_MEASURED_AT_ONCE, _MEASURED_A_TASK = 100, 2_000
# The campaigns that this process measures for.
_measuring: set[int] = set()


def score(campaign_id: int) -> None:
    """Ask each scorer of a campaign about a batch of objects, and go on with the steps that waited for their numbers;
    hint that there may be more.
    """
    campaign = Campaign.objects.get(pk=campaign_id)
    has_scored = False
    for scorer in _to_ask().filter(campaign=campaign):
        until = claim_end()
        # A guarded update: of two processes that see it free, one gets it.
        if _to_ask().filter(pk=scorer.pk).update(claimed_until=until):
            with held(CampaignScorer, [scorer.pk], until):
                has_scored |= _score_batch(campaign, scorer)
    _go_on(campaign)
    if has_scored:
        dispatch.score(campaign)


def waiting() -> list[Campaign]:
    """Return the campaigns that have objects without a score, or steps that scores decide now."""
    free = set(_to_ask().values_list("pk", flat=True))
    found: set[Campaign] = set()
    for scorer in CampaignScorer.objects.filter(is_complete=False).select_related("campaign"):
        campaign = scorer.campaign
        if campaign in found:
            continue
        # The end of a finished one is noted in its turn, so that nobody looks again.
        is_to_ask = scorer.pk in free and (
            campaign.status == Campaign.Status.FINISHED or _unscored(campaign, scorer).exists()
        )
        # Of steps to be judged, the sweep finds the turns.
        decides = bool(started_campaign(campaign).config.rule.scorers)
        if is_to_ask or (decides and next(_steps_ready(campaign), None) is not None):
            found.add(campaign)
    return list(found)


def measure(campaign_id: int) -> None:
    """Measure some objects of a campaign unless this process does so already; hint that there may be more."""
    campaign = Campaign.objects.filter(pk=campaign_id).first()
    if campaign is None or campaign.is_draft or campaign_id in _measuring:
        return
    _measuring.add(campaign_id)
    try:
        keys = list(_unmeasured(campaign).values_list("pk", flat=True)[:_MEASURED_A_TASK])
        # Another process may be at the same work: in an order of its own, it seldom is at the same objects.
        random.shuffle(keys)
        for first in range(0, len(keys), _MEASURED_AT_ONCE):
            # Asked again: what another one has stored since is not measured twice.
            states = _unmeasured(campaign).filter(pk__in=keys[first : first + _MEASURED_AT_ONCE])
            rows = [Measured(state=state, numbers=objects.numbers_of(campaign, state)) for state in states]
            Measured.objects.bulk_create(rows, ignore_conflicts=True)
            sockets.notify(sockets.watchers(campaign.pk))
    finally:
        _measuring.discard(campaign_id)
    if len(keys) == _MEASURED_A_TASK:
        dispatch.measure(campaign)


def _to_ask() -> QuerySet[CampaignScorer]:
    return CampaignScorer.objects.filter(unclaimed(), stopped_because="", is_complete=False)


def _unscored(campaign: Campaign, scorer: CampaignScorer) -> QuerySet[State]:
    """Return the objects that chains have started at or proposed, and that the scorer was not asked about."""
    # Of a catalog, most may never be proposed.
    found = _states(campaign) if campaign.config.generates else _visited(campaign)
    return found.filter(~Exists(Score.objects.filter(scorer=scorer, state=OuterRef("pk"))))


def _unmeasured(campaign: Campaign) -> QuerySet[State]:
    """Return the objects that chains have been at and that nobody has measured."""
    found = _visited(campaign, verdict=Comparison.Verdict.ACCEPT)
    return found.filter(~Exists(Measured.objects.filter(state=OuterRef("pk"))))


def _visited(campaign: Campaign, **proposed_so: object) -> QuerySet[State]:
    """Return the objects that chains have started at or proposed."""
    started = Chain.objects.filter(campaign=campaign, start=OuterRef("pk"))
    proposed = Comparison.objects.filter(chain__campaign=campaign, proposal=OuterRef("pk"), **proposed_so)
    return _states(campaign).filter(Exists(started) | Exists(proposed))


def _states(campaign: Campaign) -> QuerySet[State]:
    found = State.objects.filter(campaign=campaign).select_related("campaign")
    return found.defer("campaign__tuning").order_by("pk")


def _score_batch(campaign: Campaign, scorer: CampaignScorer) -> bool:
    """Ask about a batch and store what comes; True where something came."""
    states = list(_unscored(campaign, scorer)[:BATCH])
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
        sockets.notify(sockets.watchers(campaign.pk))
        return False
    # Somebody whose claim ran out may have stored the same ones.
    rows = [_row(campaign, state, scorer, answer) for state, answer in zip(states, answers, strict=True)]
    Score.objects.bulk_create(rows, ignore_conflicts=True)
    sockets.notify(sockets.watchers(campaign.pk))
    return True


def _row(campaign: Campaign, state: State, scorer: CampaignScorer, answer: Answer) -> Score:
    rule = campaign.config.rule
    if isinstance(rule, sampler.ScoredConfig) and scorer.name in rule.scorers and not isinstance(answer, NoScore):
        reason = rule.unusable(scorer.name, answer)
        answer = NoScore(f"it wrote {answer:g}; {reason}") if reason else answer
    if isinstance(answer, NoScore):
        return Score(state=state, scorer=scorer, reason=answer.reason[:300])
    return Score(state=state, scorer=scorer, value=answer)


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
        with locks.locked(key) as comparison:
            transitions.decide_by_numbers(comparison)


def _steps_ready(campaign: Campaign) -> Iterator[int]:
    """Yield the keys of a campaign's open steps whose objects have all their numbers."""
    scorers = started_campaign(campaign).config.needed_scorers
    if not scorers:
        return
    open_ones = Comparison.objects.filter(chain__campaign=campaign, verdict__isnull=True, chain__ended_at=None)
    pairs = list(open_ones.order_by("pk").values_list("pk", "current_id", "proposal_id"))
    given = scores_of(campaign, {key for _, *pair in pairs for key in pair})
    for key, *pair in pairs:
        if all(len(given[state]) == len(scorers) for state in pair):
            yield key
