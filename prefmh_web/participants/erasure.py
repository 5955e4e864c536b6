"""Deleting who people are. Their votes stay, under the numbers of the record."""

from django.db import transaction

from prefmh_web.campaigns.errors import NotPossible
from prefmh_web.campaigns.models import Campaign
from prefmh_web.participants.models import Participant, Participation


def forget(campaign: Campaign) -> int:
    """Delete the ids of a finished campaign's participants; return how many there were.

    Raises:
        NotPossible: the campaign is not finished: somebody who comes back would be somebody new.
    """
    with transaction.atomic():
        status = Campaign.objects.select_for_update(no_key=True).values_list("status", flat=True).get(pk=campaign.pk)
        if status != Campaign.Status.FINISHED:
            raise NotPossible("The ids can be deleted once the campaign is finished.")
        parts = Participation.objects.filter(campaign=campaign)
        people = list(parts.values_list("participant", flat=True))
        count, _ = parts.delete()
        Participant.objects.filter(pk__in=people, participations__isnull=True).delete()
    return count
