"""A started campaign's config and judges: nothing in them can change but the number of steps, so they are read once in
each process and for each length.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import cached_property, lru_cache

import sampler
from prefmh_web.campaigns.models import Campaign, Judge, backend_of_space
from prefmh_web.config import CampaignConfig
from prefmh_web.objects import OBJECT_KINDS, ObjectKind


@dataclass(frozen=True)
class StartedJudge:
    """One judge as its campaign has started with it; `pk` is its row's."""

    pk: int
    place: int
    question: str
    votes: int
    order: str
    is_model: bool
    is_asked_first: bool
    panelist: int | None = None
    """Of a panel: whose judge it is."""
    all_at_once: bool = False
    """Whether a model is asked for all its votes on a pair at once."""


@dataclass(frozen=True)
class StartedCampaign:
    """What each vote needs to know of its campaign. Judges stand in the order of their places."""

    pk: int
    config: CampaignConfig
    seed: int
    judges: tuple[StartedJudge, ...]

    @cached_property
    def budgets(self) -> tuple[int, ...]:
        """N_i of each judge."""
        return tuple(judge.votes for judge in self.judges)

    @cached_property
    def uses_models(self) -> bool:
        """True when some judge is a model."""
        return any(judge.is_model for judge in self.judges)

    @cached_property
    def backend(self) -> str:
        """Where the proposals come from: a name of `proposals/backends`."""
        return backend_of_space(self.config.space)

    @cached_property
    def object_kind(self) -> ObjectKind:
        """How the objects are shown, given to models, and measured."""
        return OBJECT_KINDS[self.config.space.objects]

    @cached_property
    def people(self) -> tuple[StartedJudge, ...]:
        """The judges that people are."""
        return tuple(judge for judge in self.judges if not judge.is_model)

    @cached_property
    def is_panel(self) -> bool:
        """True where named people judge, each for themselves."""
        return any(judge.panelist is not None for judge in self.judges)

    @cached_property
    def _by_key(self) -> dict[int, StartedJudge]:
        return {judge.pk: judge for judge in self.judges}

    def judge(self, pk: int) -> StartedJudge:
        """Return the judge of a row.

        Raises:
            KeyError: it is none of this campaign's.
        """
        return self._by_key[pk]


def started_campaign(campaign: Campaign) -> StartedCampaign:
    """Return what is fixed of a started campaign."""
    return _read(campaign.pk, campaign.started_at, campaign.steps_added)


# Started again under the same number, as tests do, it is another one; and extended, it has another length.
@lru_cache(maxsize=64)
def _read(campaign_id: int, started_at: datetime, steps_added: int) -> StartedCampaign:
    found = Campaign.objects.get(pk=campaign_id)
    config = found.config
    rows = Judge.objects.filter(campaign=campaign_id).order_by("place")
    judges = tuple(
        StartedJudge(
            pk=row.pk,
            place=row.place,
            question=row.question,
            votes=row.max_votes,
            order=row.order,
            is_model=row.is_model,
            is_asked_first=row.is_asked_first,
            panelist=row.panelist,
            all_at_once=_is_asked_at_once(config.judges[row.place].source),
        )
        for row in rows
    )
    return StartedCampaign(campaign_id, config, found.seed, judges)


def _is_asked_at_once(source: object) -> bool:
    return isinstance(source, sampler.ModelSource) and source.all_at_once
