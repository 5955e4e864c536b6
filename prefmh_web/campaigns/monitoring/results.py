"""What a campaign has brought: its samples, and the figures that a paper reports. Reads only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, F, Max, Min, Q, QuerySet, Sum

import sampler
from prefmh_web.campaigns.models import Campaign, Comparison, State, Vote
from prefmh_web.campaigns.started import objects, started_campaign


@dataclass(frozen=True)
class Figures:
    """A campaign in numbers, as the record has them.

    Args:
        chains: those that have opened; `ended` of them were ended at a suspended step.
        is_cut_short: true where it was ended before the last step of the others.
        shortest, longest: steps that a chain has decided.
        acceptance: of the decided steps of all phases.
        samples: states after the decided steps of the sampling phase.
        people: how many gave a vote that counted.
        late: votes that came when their step was decided, and count for nothing.
        votes_of: votes that counted, by the place of the judge.
        extended_to: how many steps there are for each chain, if they were more than at the start.
    """

    chains: int
    ended: int
    is_cut_short: bool
    shortest: int
    longest: int
    steps: int
    acceptance: sampler.diagnostics.Acceptance
    samples: int
    people: int
    late: int
    votes_of: dict[int, int]
    extended_to: int | None
    started_at: datetime | None
    finished_at: datetime | None

    @property
    def votes(self) -> int:
        """Votes that counted, of all judges."""
        return sum(self.votes_of.values())


def figures_of(campaign: Campaign) -> Figures:
    """Return a started campaign in numbers, as of now."""
    chains = campaign.chains.aggregate(
        n=Count("pk"), ended=Count("pk", filter=Q(ended_at__isnull=False)), steps=Sum("step", default=0),
        shortest=Min("step", default=0), longest=Max("step", default=0),
        moves=Sum("moves", default=0), accepted=Sum("accepted", default=0),
    )  # fmt: skip
    votes = Vote.objects.filter(judge__campaign=campaign)
    counted = votes.filter(number__isnull=False)
    by_judge = counted.order_by().values_list("judge__place").annotate(n=Count("pk"))
    return Figures(
        chains=chains["n"],
        ended=chains["ended"],
        is_cut_short=is_cut_short(campaign),
        shortest=chains["shortest"],
        longest=chains["longest"],
        steps=chains["steps"],
        acceptance=sampler.diagnostics.Acceptance(chains["accepted"], chains["moves"]),
        samples=samples_in(campaign).count(),
        people=counted.filter(annotator__isnull=False).order_by().values("annotator").distinct().count(),
        late=votes.filter(number__isnull=True).count(),
        votes_of=dict(by_judge),
        extended_to=started_campaign(campaign).config.steps if campaign.steps_added else None,
        started_at=campaign.started_at,
        finished_at=campaign.finished_at,
    )


def is_cut_short(campaign: Campaign) -> bool:
    """Return whether a campaign was finished while chains had steps left, as a panel is that cannot go on."""
    left = campaign.chains.filter(step__lt=F("length"), ended_at__isnull=True)
    return campaign.status == Campaign.Status.FINISHED and left.exists()


@dataclass(frozen=True)
class Sample:
    """The state of a chain after one of its steps."""

    step: Comparison
    state: State

    @property
    def properties(self) -> str:
        """What can be measured of it, in one line."""
        return started_campaign(self.state.campaign).object_kind.line(objects.stored(self.state))


def samples_in(campaign: Campaign) -> QuerySet[Comparison]:
    """Return the decided steps of the sampling phase (see `ChainConfig.phase_of`), the last steps first."""
    left_out = started_campaign(campaign).config.left_out
    found = Comparison.objects.filter(chain__campaign=campaign, step__gt=left_out, verdict__isnull=False)
    return found.order_by("-step", "chain__place")


def shown_samples(campaign: Campaign, keys: Sequence[int]) -> list[Sample]:
    """Return samples with their objects, by the keys of their steps and in that order."""
    whole = Comparison.objects.select_related("chain", "current", "proposal")
    found = whole.defer("current__code", "proposal__code").in_bulk(keys)
    return [_sample(campaign, found[key]) for key in keys]


def _sample(campaign: Campaign, step: Comparison) -> Sample:
    state = step.proposal if step.verdict == Comparison.Verdict.ACCEPT else step.current
    # Known already: read with every object, a long config would be read as often.
    state.campaign = campaign
    return Sample(step, state)
