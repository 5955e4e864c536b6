"""What is fixed once a campaign has started, as values in memory: config, judges, plan, and draws of fast kernels.

    started_campaign    the config and the judges: nothing in them can change but the number of steps
    limits_of           what is asked of each person beside votes, and when that is enough
    plan_of, position_of    the plan, and where a chain stands
    prepare             read what a draw needs, before any lock is taken
    start, next_one     draw where a chain starts, and its next comparison

Kernels on a catalog are fast: a draw takes some microseconds, while the caller holds a lock. What it needs of the
database, the catalog's weights, neighbours and keys, cannot change once the campaign has started. So all of this is
read once in each process, and for each length. The comparison is a function of (seed, chain, step, x), so it does not
matter which process draws it.
"""

from __future__ import annotations

import logging
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

import sampler
from prefmh_web.campaigns.models import Campaign, Chain, Comparison, Judge, State, backend_of_space
from prefmh_web.config import CampaignConfig, Study
from prefmh_web.objects import OBJECT_KINDS, ObjectKind
from prefmh_web.recruiters import Recruiter
from sampler.judges import TrialShares

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Limits:
    """When what a person gives to a campaign is enough, and what comes between their votes. None stands for no limit.

    What a study may change after its start is not here: places, how large the budget is, consent, codes, pay.

    Args:
        recruiter: where the people come from.
        votes_per_person: after how many votes somebody's part is complete.
        minutes_per_person: so many minutes after they joined, it is over.
        active_minutes: it is complete after so many minutes with a pair on the screen.
        wait_minutes: after so long without a pair it ends.
        shares: how often a vote is followed by which trial that is no vote.
        has_checks: there are such trials.
        has_budget: all that people can answer is limited.
        ends_parts: at least one of the limits of a person is set.
    """

    recruiter: Recruiter
    votes_per_person: int | None
    minutes_per_person: int | None
    active_minutes: int | None
    wait_minutes: int | None
    shares: TrialShares
    has_checks: bool
    has_budget: bool
    ends_parts: bool

    @classmethod
    def of(cls, study: Study) -> Limits:
        """Return what a study asks. What is noted of each person asks nothing where nobody is told apart."""
        recruiter, is_noted = study.platform, study.platform.knows_people
        shares = study.protocol.shares if is_noted else TrialShares()
        active, wait = (study.max_active_minutes, study.longest_wait) if is_noted else (None, None)
        each = (study.votes_per_person, study.minutes_per_person, active, wait)
        is_set = any(limit is not None for limit in each)
        return cls(recruiter, *each, shares, shares.total > 0, study.budget is not None, is_set)


@dataclass(frozen=True)
class StartedCampaign:
    """What each vote needs to know of its campaign. Judges are rows, in the order of their indices: whatever of them
    may change, as why one is asked no more, is read elsewhere.
    """

    pk: int
    config: CampaignConfig
    seed: int
    judges: tuple[Judge, ...]

    @cached_property
    def limits(self) -> Limits:
        """What is asked of each person beside votes."""
        return Limits.of(self.config.study)

    @cached_property
    def max_votes(self) -> tuple[int, ...]:
        """N_i of each judge."""
        return tuple(judge.max_votes for judge in self.judges)

    @cached_property
    def asked_at_once(self) -> tuple[int, ...]:
        """The indices of the models that are asked for all their votes on a pair at once."""
        sources = (judge.source for judge in self.config.judges)
        return tuple(index for index, source in enumerate(sources) if getattr(source, "all_at_once", False))

    @cached_property
    def uses_models(self) -> bool:
        """True when some judge is a model."""
        return any(judge.is_model for judge in self.judges)

    @cached_property
    def backend(self) -> str:
        """Where the proposals come from: as `backend_of_space` names it."""
        return backend_of_space(self.config.space)

    @cached_property
    def object_kind(self) -> ObjectKind:
        """How the objects are shown, given to models, and measured."""
        return OBJECT_KINDS[self.config.space.objects]

    @cached_property
    def people(self) -> tuple[Judge, ...]:
        """The judges that people are."""
        return tuple(judge for judge in self.judges if not judge.is_model)

    @cached_property
    def is_panel(self) -> bool:
        """True where named people judge, each for themselves."""
        return any(judge.panelist is not None for judge in self.judges)

    @cached_property
    def _by_key(self) -> dict[int, Judge]:
        return {judge.pk: judge for judge in self.judges}

    def judge(self, pk: int) -> Judge:
        """Return the judge of a row.

        Raises:
            KeyError: it is none of this campaign's.
        """
        return self._by_key[pk]


def started_campaign(campaign: Campaign) -> StartedCampaign:
    """Return what is fixed of a started campaign."""
    return _read(campaign.pk, campaign.started_at, campaign.steps_added)


def limits_of(campaign: Campaign) -> Limits:
    """Return what a campaign asks of each person beside votes: for a started one, from memory."""
    return Limits.of(campaign.config.study) if campaign.started_at is None else started_campaign(campaign).limits


# Started again under the same number, as tests do, it is another one; and extended, it has another length.
@lru_cache(maxsize=64)
def _read(campaign_id: int, started_at: datetime, steps_added: int) -> StartedCampaign:
    found = Campaign.objects.get(pk=campaign_id)
    judges = tuple(Judge.objects.filter(campaign=campaign_id).order_by("index"))
    return StartedCampaign(campaign_id, found.config, found.seed, judges)


def plan_of(campaign: Campaign) -> sampler.Plan[Any]:
    """Return the plan of a campaign. A started campaign's is kept in memory: nothing in it can change but the length
    of its walks, once.

    Raises:
        sampler.ConfigError: the config does not parse or does not fit the catalog.
        Unable: the model that it names cannot write.
    """
    if campaign.started_at is None:
        return _build(campaign, None)
    return _built(campaign.pk, campaign.started_at, campaign.walk_length)


@lru_cache(maxsize=64)
def _built(campaign_id: int, started_at: datetime, length: int | None) -> sampler.Plan[Any]:
    return _build(Campaign.objects.get(pk=campaign_id), length)


def _build(campaign: Campaign, length: int | None) -> sampler.Plan[Any]:
    config = campaign.config
    if isinstance(config.space, sampler.ServedTextsConfig):
        # Imported here: it brings an HTTP client, which most campaigns do not need.
        from prefmh_web.endpoints import writer

        return config.build(model=writer.writer_for(campaign.owner_id, config.space), walk_length=length)
    if config.generates:
        return config.build(walk_length=length)
    return config.build(catalog_of(campaign), walk_length=length)


def catalog_of(campaign: Campaign) -> sampler.Catalog:
    """Return the list of a campaign, as it was read from its file."""
    rows = list(campaign.states.order_by("index").values_list("weight", "neighbours"))
    graph = tuple(tuple(neighbours) for _, neighbours in rows)
    weights = np.array([weight for weight, _ in rows], dtype=np.float64)
    return sampler.Catalog(weights, graph if any(graph) else ())


def position_of(chain: Chain) -> sampler.Position[Any]:
    """Return where a chain stands."""
    return sampler.Position(chain.index, chain.step, state_of(chain.campaign, chain.head))


def state_of(campaign: Campaign, row: State) -> Hashable:
    """Return the sampler's value of a stored object: its index in the catalog, or what its code says.

    Raises:
        ValueError: the code is none that the space reads.
    """
    if isinstance(plan_of(campaign).space, sampler.Catalog):
        return row.index
    state: Hashable = space_of(campaign).decode(row.code)
    return state


def space_of(campaign: Campaign) -> sampler.Space[Any]:
    """Return the space of a campaign whose chains make their objects.

    Raises:
        TypeError: its objects come from a file.
    """
    space = plan_of(campaign).space
    if not isinstance(space, sampler.Space):
        raise TypeError(f"campaign {campaign.pk} has a catalog, whose states need no code")
    return space


def decoder_of(campaign: Campaign) -> sampler.GeneratedImages:
    """Return the space of a campaign whose decoder makes the picture of a state.

    Raises:
        TypeError: its objects are others.
    """
    space = plan_of(campaign).space
    if not isinstance(space, sampler.GeneratedImages):
        raise TypeError(f"campaign {campaign.pk} has no decoder")
    return space


def prepare(campaign: Campaign) -> None:
    """Read what `next_one` needs, if this process has not done so yet."""
    if not started_campaign(campaign).config.generates:
        plan_of(campaign)
        _rows(campaign.pk, campaign.started_at)


def start(campaign: Campaign, index: int) -> int | None:
    """Return the key of the row that the chain of this number starts at; None where it is a task's to draw."""
    if started_campaign(campaign).config.generates:
        return None
    first: sampler.Position[int] = sampler.begin(plan_of(campaign), index)
    return _rows(campaign.pk, campaign.started_at)[0][first.state]


def next_one(chain: Chain) -> tuple[sampler.Comparison[Any], int] | None:
    """Return the next comparison of a chain, and the key of the row that it proposes; None if its kernel is slow, or
    fails. Then it is a task's to draw.
    """
    if started_campaign(chain.campaign).config.generates:
        return None
    plan, (keys, indices) = plan_of(chain.campaign), _rows(chain.campaign_id, chain.campaign.started_at)
    if chain.waits_for_others or not plan.is_fast_at(chain.step + 1):
        return None
    try:
        drawn = sampler.ask(plan, sampler.Position(chain.index, chain.step, indices[chain.head_id]))
    except Exception:  # a defect of the kernel costs the chain its next pair, and nobody the vote that is being stored
        logger.exception("%s: no proposal", chain)
        return None
    return drawn, keys[drawn.proposal]


# Started again under the same number, as tests do, it is another one.
@lru_cache(maxsize=64)
def _rows(campaign_id: int, started_at: datetime) -> tuple[tuple[int, ...], Mapping[int, int]]:
    """Return the keys of a catalog's rows by their indices, and the indices by the keys."""
    keys = tuple(State.objects.filter(campaign=campaign_id).order_by("index").values_list("pk", flat=True))
    return keys, {key: index for index, key in enumerate(keys)}


def asked_in(comparison: Comparison) -> sampler.Comparison[int]:
    """Return the sampler's value of a stored comparison. Numbers of rows stand for the objects: all that a verdict
    asks of them is whether they are the same.
    """
    return sampler.Comparison(
        comparison.chain.index,
        comparison.step,
        comparison.current_id,
        comparison.proposal_id,
        comparison.log_r0,
        comparison.uniform,
        started_campaign(comparison.chain.campaign).max_votes,
    )
