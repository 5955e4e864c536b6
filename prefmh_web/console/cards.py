"""The list of campaigns: what each one's card shows, from a few statements for the whole page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.db.models import Count, Q, Sum

from prefmh_web.campaigns.models import Annotator, Campaign, Chain, Event, State
from prefmh_web.campaigns.record.found import kept_verdict

_NOTED_VERDICTS = (Event.Kind.FINISHED_NOW, Event.Kind.EXTENDED)


@dataclass(frozen=True)
class Card:
    """One campaign of the list.

    Args:
        head: the object where its first chain is; None of a draft.
        step: how many steps all chains have decided.
        length: how many there will be.
        people: how many people have joined, simulated ones included.
        simulated: how many of them are simulated.
        verdict: of a finished campaign, whether its chains converged; empty where that is not known yet.
    """

    campaign: Campaign
    head: State | None
    step: int
    length: int
    people: int
    simulated: int
    verdict: str


def cards_of(campaigns: Sequence[Campaign]) -> list[Card]:
    """Return the cards of some campaigns, in their order. More campaigns take no more statements."""
    heads, steps, people = _heads(campaigns), _steps(campaigns), _people(campaigns)
    noted = _noted_verdicts(campaigns)
    found = []
    for campaign in campaigns:
        step, length = steps.get(campaign.pk, (0, 0))
        joined, simulated = people.get(campaign.pk, (0, 0))
        verdict = kept_verdict(campaign, step) or noted.get(campaign.pk, "")
        found.append(Card(campaign, heads.get(campaign.pk), step, length, joined, simulated, verdict))
    return found


def _heads(campaigns: Sequence[Campaign]) -> Mapping[int, State]:
    first = Chain.objects.filter(campaign__in=campaigns, place=0)
    # A code is as long as a small picture, and no thumbnail needs it.
    heads = State.objects.filter(pk__in=first.values("head")).defer("code")
    return {state.campaign_id: state for state in heads}


def _steps(campaigns: Sequence[Campaign]) -> Mapping[int, tuple[int, int]]:
    chains = Chain.objects.filter(campaign__in=campaigns).order_by().values("campaign")
    sums = chains.annotate(decided=Sum("step"), all=Sum("length"))
    return {campaign: (decided, length) for campaign, decided, length in sums.values_list("campaign", "decided", "all")}


def _people(campaigns: Sequence[Campaign]) -> Mapping[int, tuple[int, int]]:
    joined = Annotator.objects.filter(campaign__in=campaigns).order_by().values("campaign")
    counts = joined.annotate(joined=Count("pk"), simulated=Count("pk", filter=Q(invitation__is_simulated=True)))
    return {campaign: (all_, some) for campaign, all_, some in counts.values_list("campaign", "joined", "simulated")}


def _noted_verdicts(campaigns: Sequence[Campaign]) -> Mapping[int, str]:
    """Return the verdicts that were noted when campaigns were ended; at most open pairs were decided since."""
    finished = [each.pk for each in campaigns if each.status == Campaign.Status.FINISHED]
    events = Event.objects.filter(campaign__in=finished, kind__in=_NOTED_VERDICTS).order_by("pk")
    newest = {campaign: (kind, data) for campaign, kind, data in events.values_list("campaign", "kind", "data")}
    # After an extension the chains have walked on: what was said then is out of date.
    return {
        campaign: data.get("verdict", "")
        for campaign, (kind, data) in newest.items()
        if kind == Event.Kind.FINISHED_NOW
    }
