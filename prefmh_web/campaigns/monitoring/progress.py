"""What a researcher watches: chains, rates, people, recent steps, walks and their warm-up. Reads only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, TypedDict

from django.db.models import Count, Exists, F, FilteredRelation, OuterRef, Q, QuerySet, Sum
from django.utils import timezone

import sampler
from prefmh_web.campaigns import objects
from prefmh_web.campaigns.model_judges.judges import model_source, uses_log_probabilities
from prefmh_web.campaigns.models import OF_THE_START, Campaign, Chain, Comparison, Judge, Rating, Score, Turn, Vote
from prefmh_web.campaigns.monitoring.judging import Share, Wait, unanswered_in, waits_in
from prefmh_web.campaigns.monitoring.steps import StepRow, recent_steps, suspended_in

if TYPE_CHECKING:
    from django_stubs_ext import WithAnnotations

    class _Counts(TypedDict):
        all_votes: int
        all_votes_for: int

    ShownChain = WithAnnotations[Chain, _Counts]

Acceptance = sampler.diagnostics.Acceptance
RECENT_STEPS = 10
WAITING_SHOWN = 20
RATE_WINDOW = timedelta(minutes=5)
# A rate over less time than this says nothing.
_MIN_MINUTES = 0.5


@dataclass(frozen=True)
class Progress:
    """Everything the live page shows."""

    campaign: Campaign
    judges: list[Judge]
    chains: Sequence[ShownChain]
    unopened: list[str]
    """Of the chains that are to open, why their model has failed to make their starts; empty where it has not."""
    recent: list[StepRow]
    answers: int
    """Votes that counted, or count on the steps that are open; or ratings or scores where these decide; steps where
    nothing is asked."""
    lately: int
    """How many of them came within the window of `minutes`: the last five, or since the start if that is less."""
    minutes: float
    people_online: int
    people_joined: int
    models: dict[str, Any] | None
    walks: dict[str, Any] | None
    suspended: list[tuple[Comparison, int]]
    """Steps that wait for the researcher."""
    unanswered: dict[str, Any] | None
    held_up: dict[int, list[Wait]]
    """Of a panel: the chains that have waited for a panelist for longer than it has time to answer."""

    @property
    def steps_decided(self) -> int:
        return sum(chain.step for chain in self.chains)

    @property
    def steps(self) -> int:
        return sum(chain.length for chain in self.chains)

    @property
    def steps_left(self) -> int:
        """Without those of chains that were ended."""
        return sum(chain.length - chain.step for chain in self.chains if chain.ended_at is None)

    @property
    def answers_per_minute(self) -> float:
        return self.lately / self.minutes

    @property
    def minutes_left(self) -> float | None:
        """How long the steps that are left take, if each takes as many answers as those before, at the present rate;
        None where nothing tells.

        A step whose proposal is the current object takes none, so steps alone tell no rate.
        """
        if not (self.lately and self.steps_decided) or self.minutes < _MIN_MINUTES:
            return None
        return self.steps_left * self.answers / self.steps_decided / self.answers_per_minute

    @property
    def percent(self) -> int:
        return 100 * self.steps_decided // self.steps if self.steps else 0

    @property
    def acceptance(self) -> Acceptance:
        """Of all chains together."""
        return Acceptance(sum(chain.accepted for chain in self.chains), sum(chain.moves for chain in self.chains))

    @property
    def prefetched_percent(self) -> int | None:
        """How many of the steps found their proposal drawn already; None where none is drawn ahead."""
        served = (sampler.ServedTextsConfig, sampler.ServedImagesConfig)
        if not (isinstance(self.campaign.config.space, served) and self.steps_decided):
            return None
        return round(100 * sum(chain.prefetched for chain in self.chains) / self.steps_decided)

    @property
    def waits(self) -> list[tuple[str, int]]:
        """Why chains wait for their model, each reason with how many they are."""
        reasons = [*(chain.waits_because for chain in self.chains), *self.unopened]
        return list(Counter(filter(None, reasons)).items())

    @property
    def people_needed(self) -> int:
        """No person answers the same question twice on one pair, so the largest N needs as many people."""
        return max((judge.max_votes for judge in self.judges if not judge.is_model), default=0)

    @property
    def lacks_people(self) -> bool:
        return self.campaign.is_running and self.people_needed > 1 and self.people_online < self.people_needed


def progress_of(campaign: Campaign) -> Progress:
    """Return what to show of a started campaign."""
    now, config = timezone.now(), campaign.config
    judges = list(campaign.judges.select_related("endpoint"))
    since = max(now - RATE_WINDOW, campaign.started_at or now)
    minutes = max((now - since).total_seconds() / 60, 0.25)
    chains = list(chains_of(campaign))
    answers, lately = _answers(campaign, chains, since)
    patience = timedelta(seconds=config.answering.seconds)
    wanted = campaign.chain_demands.filter(chain=None) if config.opens_on_demand else campaign.chain_demands.none()
    people = campaign.voters.aggregate(
        online=Count("pk", filter=Q(online_until__gt=now)), joined=Count("pk"), voted=Sum("votes_cast", default=0)
    )
    return Progress(
        campaign=campaign,
        judges=judges,
        chains=chains,
        unopened=list(wanted.values_list("waits_because", flat=True)),
        recent=recent_steps(campaign, judges, RECENT_STEPS),
        answers=answers,
        lately=lately,
        minutes=minutes,
        people_online=people["online"],
        people_joined=people["joined"],
        models=_models(campaign, judges),
        walks=walks_of(campaign, chains),
        suspended=suspended_in(campaign),
        unanswered=unanswered_in(judges, chains, people["voted"]),
        held_up=waits_in(campaign, longer_than=patience) if config.panelists else {},
    )


def _answers(campaign: Campaign, chains: Sequence[ShownChain], since: datetime) -> tuple[int, int]:
    """Return `Progress.answers`, and how many of them came since a moment."""
    if campaign.config.rule.evidence == "ratings":
        ratings = Rating.objects.filter(judge__campaign=campaign)
        return ratings.count(), ratings.filter(rated_at__gte=since).count()
    if names := campaign.config.rule.scorers:
        scores = Score.objects.filter(scorer__campaign=campaign, scorer__name__in=names, value__isnull=False)
        return scores.count(), scores.filter(scored_at__gte=since).count()
    if not campaign.config.rule.asks_judges:
        steps = Comparison.objects.filter(chain__campaign=campaign, decided_at__gte=since)
        return sum(chain.step for chain in chains), steps.count()
    votes = Vote.objects.filter(judge__campaign=campaign, number__isnull=False)
    cast = sum(chain.all_votes for chain in chains)
    return cast, votes.filter(cast_at__gte=since).count()


def _models(campaign: Campaign, judges: list[Judge]) -> dict[str, Any] | None:
    """Return how the models of a campaign are getting on; None where people judge alone.

    ``waiting`` are turns with a reason to wait, those that wait for somebody first; so many of them, and of
    judges, are ``suspended``; ``asked_again`` counts votes or ratings that took more than one reply, or may have;
    ``settled_alone`` pairs that were settled before any person was asked, though people judge as well, and
    ``votes_saved`` people's votes that this has made needless, as far as the other pairs tell; ``sampled_instead``
    votes of judges by log-probabilities that were sampled, because the server did not tell p. The servers of stopped
    judges answer as ``new_models`` now.
    """
    models = [judge for judge in judges if judge.is_model]
    if not models:
        return None
    turns = Turn.objects.filter(comparison__chain__campaign=campaign, asked=0)
    turns = turns.select_related("comparison__chain", "judge").order_by(F("until").asc(nulls_first=True), "pk")
    waiting = list(turns[:WAITING_SHOWN])
    cast = Vote.objects.filter(judge__campaign=campaign, number__isnull=False)
    again: QuerySet[Any] = cast.filter(attempts__gt=1)
    if campaign.config.rule.evidence == "ratings":
        again = Rating.objects.filter(judge__campaign=campaign).filter(Q(attempts__gt=1) | Q(attempts__isnull=True))
    by_people = cast.filter(voter__isnull=False)
    pairs = by_people.values("comparison").distinct().count()
    judged = Comparison.objects.filter(chain__campaign=campaign, verdict__isnull=False, votes__number__isnull=False)
    alone = judged.exclude(votes__voter__isnull=False).distinct().count() if len(models) < len(judges) else 0
    config = campaign.config
    by_p = [judge for judge in models if uses_log_probabilities(model_source(config, judge.index), config.rule)]
    stopped = [judge for judge in models if judge.stopped_because]
    return {
        "judges": models,
        "waiting": waiting,
        "unlisted": turns.count() - len(waiting),
        "suspended": sum(turn.is_suspended for turn in waiting) + len(stopped),
        "asked_again": again.count(),
        "settled_alone": alone,
        "votes_saved": round(alone * by_people.count() / pairs) if pairs else None,
        "sampled_instead": cast.filter(judge__in=by_p, preference__isnull=True).count() if by_p else 0,
        "new_models": [new for judge in stopped for new in judge.identities.filter(accepted_at__isnull=True)],
    }


def chains_of(campaign: Campaign) -> QuerySet[ShownChain, ShownChain]:
    """Return the chains of a started campaign, in order.

    Each has the key of its open step (`open_pk`) and since when that is suspended, both None where there is none;
    `votes_on_open`, those that count there; `all_votes` that counted, these included, and of them those for the
    proposal (`all_votes_for`); and when it opened, if that was after the start (`opened_at`).
    """
    counted = Q(open_step__votes__number__isnull=False)
    is_for = counted & Q(open_step__votes__chosen_side=F("open_step__votes__proposal_side"))
    votes, votes_for = (Count("open_step__votes", filter=which) for which in (counted, is_for))
    found = campaign.chains.annotate(
        open_step=FilteredRelation("comparisons", condition=Q(comparisons__verdict__isnull=True)),
        open_pk=F("open_step__pk"),
        suspended_at=F("open_step__suspended_at"),
        votes_on_open=votes,
        all_votes=F("votes") + votes,
        all_votes_for=F("votes_for") + votes_for,
        opened_at=F("demand__opened_at"),
    )
    return found.order_by("index")


def with_heads(campaign: Campaign, chains: Sequence[ShownChain]) -> list[tuple[ShownChain, str]]:
    """Read the objects where some of a campaign's chains stand, all at once; return the chains, each with what can be
    measured of its object, in one line.
    """
    heads = campaign.states.all()
    if isinstance(campaign.config.space, sampler.ServedImagesConfig):
        # A code is as long as a small picture, and all that is shown is in the files.
        heads = heads.defer("code")
    found = heads.in_bulk([chain.head_id for chain in chains])
    for chain in chains:
        chain.head = found[chain.head_id]
    return [(chain, campaign.object_kind.line(objects.stored(chain.head))) for chain in chains]


# Of fewer votes, the share that is won says little.
_MIN_VOTES = 50
_MIN_PERCENT_WON = 10


def walks_of(campaign: Campaign, there: Sequence[ShownChain]) -> dict[str, Any] | None:
    """Return how a started campaign's walks are getting on; None where it makes one move between two pairs.

    ``length`` is how far steps walk after the warm-up: None while that is not chosen, or where there are several
    lengths; ``own_length`` if the warm-up is ended. ``waited_for`` are the chains that have not come to its end, by
    index, with at most ``steps_left``; ``late`` those without a decision for longer than the config's patience.
    ``tried`` is what each length of the grid did, and ``rule`` how one was chosen from these. ``won`` are the counted
    votes for the proposal since the warm-up, of the chains of the start; None of too few.
    """
    config = campaign.config
    kernel: Any = config.kernel
    if kernel.kind != "walk":
        return None
    # Chains that open later have no part in what the warm-up finds.
    of_start = [chain for chain in there if chain.index < config.chains]
    behind = [chain for chain in of_start if chain.step < campaign.warm_up]
    own = kernel.length[0].length
    length = campaign.walk_length if campaign.warm_up else (own if len(kernel.length) == 1 else None)
    found: dict[str, Any] = campaign.tuning or {}
    trials: list[dict[str, Any]] = found.get("trials", [])
    won = _won(campaign, of_start, trials)
    return {
        "is_warming_up": campaign.is_warming_up,
        "warm_up": campaign.warm_up,
        "length": length,
        "waited_for": [chain.index for chain in behind] if campaign.is_warming_up else [],
        "steps_left": max((campaign.warm_up - chain.step for chain in behind), default=0),
        "late": [chain.index for chain in late_chains(campaign)],
        "own_length": own,
        "patience_minutes": config.warm_up.patience_minutes if config.warm_up else 0,
        "was_ended": "ended_at" in found,
        "is_the_middle": found.get("because") == sampler.MIDDLE,
        "tried": trials,
        "furthest": max((trial["esjd_per_vote"] for trial in trials), default=0),
        "rule": found.get("rule", ""),
        "won": won,
        # So few votes for the proposal that careless ones count for much.
        "wins_too_little": won is not None and won.percent < _MIN_PERCENT_WON,
    }


def late_chains(campaign: Campaign) -> QuerySet[Chain]:
    """Chains that have not decided a step for longer than the config's patience while a running campaign warms up."""
    warm_up = campaign.config.warm_up
    if warm_up is None or not (campaign.is_warming_up and campaign.is_running) or campaign.started_at is None:
        return Chain.objects.none()
    since = timezone.now() - timedelta(minutes=warm_up.patience_minutes)
    if campaign.started_at >= since:
        return Chain.objects.none()
    decided = Comparison.objects.filter(chain=OuterRef("pk"), step=OuterRef("step"), decided_at__gte=since)
    first = campaign.chains.filter(OF_THE_START)
    behind = first.filter(step__lt=campaign.warm_up)
    # Should the choice itself fail, all of them are late.
    return (behind if behind.exists() else first).filter(~Exists(decided)).order_by("index")


def _won(campaign: Campaign, chains: Sequence[ShownChain], trials: Sequence[dict[str, Any]]) -> Share | None:
    if campaign.is_warming_up or (campaign.warm_up and not trials):
        return None
    votes = sum(chain.all_votes for chain in chains) - sum(int(trial["votes"]) for trial in trials)
    votes_for = sum(chain.all_votes_for for chain in chains) - sum(int(trial["votes_for"]) for trial in trials)
    return Share(votes_for, votes) if votes >= _MIN_VOTES else None
