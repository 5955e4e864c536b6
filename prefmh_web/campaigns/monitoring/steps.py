"""Steps of a campaign as a researcher reads them: which are wanted, and on what each was decided. Reads only.

The steps of a campaign that are suspended now, with their objects. Reads only.

Problems that people report with a pair that they skip. No verdict depends on them; the researcher reads them.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db.models import Avg, Count, DurationField, Exists, ExpressionWrapper, F, OuterRef, Q, QuerySet
from django.db.models.functions import Coalesce, Now

from prefmh_web.campaigns.frozen import started_campaign
from prefmh_web.campaigns.models import Campaign, Comparison, Event, Judge, Lease, Rating, ReportReason, Vote
from prefmh_web.campaigns.models.people import key_of, with_numbers
from prefmh_web.campaigns.objects import scores_of


@dataclass(frozen=True)
class StepRow:
    """One step with its votes, or with the ratings or scores of its objects.

    Args:
        tallies: for each judge its votes for and against the proposal and how many it has cast; or its mean ratings of
            the current object and of the proposal; or for each scorer its numbers for the two. None where an object has
            none yet. The templates `decisions/<evidence>/tally.html` show them.
    """

    comparison: Comparison
    tallies: Sequence[Mapping[str, Any]]

    @property
    def excerpts(self) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        """What a table shows of the current object and of the proposal: the parts that differ."""
        pair = self.comparison.current.content, self.comparison.proposal.content
        return started_campaign(self.comparison.chain.campaign).object_kind.excerpts(*pair)


STATUSES = {
    "decided": ("decided", Q(verdict__isnull=False)),
    "accepted": ("accepted", Q(verdict=Comparison.Verdict.ACCEPT)),
    "rejected": ("rejected", Q(verdict=Comparison.Verdict.REJECT)),
    "open": ("open", Q(verdict__isnull=True, suspended_at__isnull=True)),
    "suspended": ("suspended", Q(verdict=None, suspended_at__isnull=False, chain__ended_at__isnull=True)),
    "ended": ("where a chain was ended", Q(verdict=None, suspended_at__isnull=False, chain__ended_at__isnull=False)),
    "unmoved": ("proposal equal to the current object", Q(current=F("proposal"))),
}
"""What has become of a step, by its name in addresses: what it is called, and which steps those are."""


def steps_in(campaign: Campaign, wanted: Mapping[str, Any]) -> QuerySet[Comparison]:
    """Return the steps of a campaign that are wanted, those that were opened last first.

    Args:
        wanted: limits, of which one that is not there, None or empty sets none: ``chain``, by its index; ``status``,
            a name of `STATUSES`; ``judge``, by its index: with a counted vote of it; ``person``, by the number that
            the record has: with a vote of theirs, counted or late; ``seconds``: that took at least so long from opening
            to verdict, or are open for as long.
    """
    found = _steps_of(campaign)
    votes = Vote.objects.filter(comparison=OuterRef("pk"))
    if (chain := wanted.get("chain")) is not None:
        found = found.filter(chain__index=chain)
    if status := wanted.get("status"):
        _, of_status = STATUSES[status]
        found = found.filter(of_status)
    if (judge := wanted.get("judge")) is not None:
        found = found.filter(Exists(votes.filter(judge__index=judge, number__isnull=False)))
    if (person := wanted.get("person")) is not None:
        found = found.filter(Exists(votes.filter(voter=key_of(campaign, person) or 0)))
    if (seconds := wanted.get("seconds")) is not None:
        took = ExpressionWrapper(Coalesce(F("decided_at"), Now()) - F("opened_at"), DurationField())
        found = found.annotate(took=took).filter(took__gte=timedelta(seconds=seconds))
    return found.order_by("-pk")


def _steps_of(campaign: Campaign) -> QuerySet[Comparison]:
    found = Comparison.objects.filter(chain__campaign=campaign).select_related("chain", "current", "proposal")
    # A code is as long as a small picture, and no page shows it.
    return found.defer("current__code", "proposal__code")


def recent_steps(campaign: Campaign, judges: Sequence[Judge], most: int) -> list[StepRow]:
    """Return the steps that were decided last, without those whose proposal was the current object."""
    decided = _steps_of(campaign).filter(verdict__isnull=False).exclude(current=F("proposal"))
    return rows_of(campaign, judges, decided.order_by("-decided_at", "-pk")[:most])


def rows_of(campaign: Campaign, judges: Sequence[Judge], steps: Iterable[Comparison]) -> list[StepRow]:
    """Return steps with what they were decided on, in their order.

    Args:
        judges: all of the campaign's.
    """
    found = list(steps)
    for step in found:
        # Known already: read with every step, a long config would be read as often.
        step.chain.campaign = step.current.campaign = step.proposal.campaign = campaign
    config = started_campaign(campaign).config
    if config.rule.evidence == "ratings":
        return _rated(found, judges)
    if names := config.rule.scorers:
        return _scored(campaign, found, names)
    return _tallied(found, judges)


def step_at(campaign: Campaign, chain: int, step: int) -> Comparison | None:
    """Return one step; None where it is not opened yet, or there is none."""
    return _steps_of(campaign).filter(chain__index=chain, step=step).first()


def votes_on(step: Comparison) -> list[Vote]:
    """Return the votes on a step in the order in which they counted; those that came too late are the last."""
    votes = with_numbers(step.votes.select_related("judge__endpoint", "voter"), "voter")
    return list(votes.order_by(F("number").asc(nulls_last=True), "pk"))


def last_reasoned(campaign: Campaign, most: int = 10) -> list[Vote]:
    """Return the last votes of models of which it is known what the model thought, the newest first."""
    found = Vote.objects.filter(judge__in=list(campaign.judges.all())).exclude(reason="").order_by("-pk")
    return list(found.select_related("judge__endpoint", "comparison__chain")[:most])


def _tallied(steps: Sequence[Comparison], judges: Sequence[Judge]) -> list[StepRow]:
    votes = Vote.objects.filter(comparison__in=steps, number__isnull=False).order_by()
    for_proposal = Count("pk", filter=Q(chosen_side=F("proposal_side")))
    counts = votes.values_list("comparison", "judge").annotate(cast=Count("pk"), in_favour=for_proposal)
    found = {(step, judge): (cast, in_favour) for step, judge, cast, in_favour in counts}

    def tallied(step: Comparison, judge: Judge) -> dict[str, Any]:
        cast, in_favour = found.get((step.pk, judge.pk), (0, 0))
        return {"judge": judge, "votes_cast": cast, "votes_for": in_favour, "votes_against": cast - in_favour}

    return [StepRow(step, [tallied(step, judge) for judge in judges]) for step in steps]


def _rated(steps: Sequence[Comparison], judges: Sequence[Judge]) -> list[StepRow]:
    ratings = Rating.objects.filter(state__in=_objects(steps)).order_by()
    means = {
        (state, judge): mean for state, judge, mean in ratings.values_list("state", "judge").annotate(Avg("value"))
    }

    def rated(step: Comparison, judge: Judge) -> dict[str, Any]:
        current, proposal = (means.get((state, judge.pk)) for state in (step.current_id, step.proposal_id))
        return {"judge": judge, "current": current, "proposal": proposal}

    return [StepRow(step, [rated(step, judge) for judge in judges]) for step in steps]


def _scored(campaign: Campaign, steps: Sequence[Comparison], names: Sequence[str]) -> list[StepRow]:
    scores = scores_of(campaign, _objects(steps))

    def scored(step: Comparison, name: str) -> dict[str, Any]:
        return {"current": scores[step.current_id].get(name), "proposal": scores[step.proposal_id].get(name)}

    return [StepRow(step, [scored(step, name) for name in names]) for step in steps]


def _objects(steps: Iterable[Comparison]) -> set[int]:
    return {state for step in steps for state in (step.current_id, step.proposal_id)}


def suspended_in(campaign: Campaign) -> list[tuple[Comparison, int]]:
    """Return the steps that are suspended, the one that has waited longest first, each with after how many skips, or
    after reports of how many people.
    """
    _, are_suspended = STATUSES["suspended"]
    steps = list(_steps_of(campaign).filter(are_suspended).order_by("suspended_at"))
    counts: dict[tuple[int, int], int] = {}
    if steps:
        # The last event of a step holds.
        for data in campaign.events.filter(kind=Event.Kind.STEP_SUSPENDED).values_list("data", flat=True):
            counts[data["chain_index"], data["step"]] = data["count"]
    return [(each, counts[each.chain.index, each.step]) for each in steps]


def problems_in(campaign: Campaign) -> QuerySet[Event]:
    """Return what has been reported in a campaign, the latest first."""
    return with_numbers(campaign.events.filter(kind=Event.Kind.REPORTED), "voter").order_by("-pk")


def with_pairs(found: Sequence[Event]) -> list[tuple[Event, str, Lease | None]]:
    """Return reports with what is wrong, in words, and the pair that each is about, where that is a question of the
    campaign. In one query.
    """
    pairs = ("comparison__chain", "comparison__current", "comparison__proposal")
    leases = Lease.objects.select_related(*pairs).in_bulk([uuid.UUID(each.data["key"]) for each in found])
    return [
        (each, str(ReportReason(each.data["reason"]).label), leases.get(uuid.UUID(each.data["key"]))) for each in found
    ]
