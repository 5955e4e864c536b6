"""A person with an id joins a campaign, or comes back to it from wherever they are."""

from __future__ import annotations

from collections.abc import Callable

from django.db.models import QuerySet
from django.utils import timezone

from prefmh_web.campaigns.models import Annotator, Campaign
from prefmh_web.config import Study
from prefmh_web.participants.arrivals import Arrival
from prefmh_web.participants.models import Participant, Participation
from prefmh_web.participants.recruiting import locked_study

MOST_VISITS = 100
"""Of one participation, so many visits are kept: the first, and the last ones."""


class TookPart(Exception):  # noqa: N818 - reads as the sentence it starts
    """The person took part in an earlier campaign whose people may not come again."""


def annotator_of(campaign: Campaign, arrival: Arrival) -> Annotator | None:
    """Return who a person is in a campaign, if they have joined it before, on whatever device."""
    found = _parts(campaign, campaign.config.study, arrival).filter(campaign=campaign).first()
    return found.annotator if found else None


def annotator_for(campaign: Campaign, arrival: Arrival, make: Callable[[], Annotator]) -> Annotator:
    """Return who a person is in a campaign: who they were on any device, or somebody new. Within a transaction.

    Args:
        make: makes a new annotator.

    Raises:
        TookPart: the campaign does not take people of an earlier one in which they took part.
    """
    # Locked: of two pages that bring the same person at once, the second finds what the first has made.
    study = locked_study(campaign.pk)
    known = _parts(campaign, study, arrival)
    participation = known.filter(campaign=campaign).first()
    if participation is None:
        if known.filter(campaign__in=[each.number for each in study.refused]).exists():
            raise TookPart
        participation = _new(campaign, study, arrival, make())
    _note_visit(participation, arrival)
    return participation.annotator


def _parts(campaign: Campaign, study: Study, arrival: Arrival) -> QuerySet[Participation]:
    """All parts that a person has taken in campaigns of this owner."""
    found = Participation.objects.filter(
        participant__owner=campaign.owner_id,
        participant__recruiter=study.recruiter,
        participant__external_id=arrival.external_id,
    )
    return found.select_related("annotator")


def _new(campaign: Campaign, study: Study, arrival: Arrival, annotator: Annotator) -> Participation:
    # Locked: of two campaigns, one may delete its people while another takes one of them in.
    participant, _ = Participant.objects.select_for_update(no_key=True).get_or_create(
        owner_id=campaign.owner_id, recruiter=study.recruiter, external_id=arrival.external_id
    )
    return Participation.objects.create(participant=participant, campaign=campaign, annotator=annotator)


def _note_visit(participation: Participation, arrival: Arrival) -> None:
    visit = {"session_id": arrival.session_id, "parameters": dict(arrival.parameters)}
    last = participation.visits[-1] if participation.visits else {}
    if visit == {name: last.get(name) for name in visit}:
        return
    visits = [*participation.visits, visit | {"at": timezone.now().isoformat()}]
    participation.visits = visits[:1] + visits[1:][1 - MOST_VISITS :]
    participation.save(update_fields=["visits"])
