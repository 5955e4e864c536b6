"""Deleting who people are. Their votes stay, under the numbers of the record."""

from django.db import transaction
from django.db.models import QuerySet

from prefmh_web.campaigns.errors import NotPossible
from prefmh_web.campaigns.lifecycle import deletion, events
from prefmh_web.campaigns.models import Annotator, Campaign, CampaignEvent
from prefmh_web.participants.models import Check, CommonPair, ErasedTrials, Event, Participant, Participation
from prefmh_web.participants.recruiting import terms_of

_AT_ONCE = 500


def forget_one(annotator: Annotator) -> None:
    """Delete who an annotator is."""
    _delete(Participation.objects.filter(annotator=annotator), annotator.campaign)


def forget(campaign: Campaign) -> int:
    """Delete the ids of a finished campaign's participants; return how many there were.

    Raises:
        NotPossible: the campaign is not finished: somebody who comes back would be somebody new.
    """
    with transaction.atomic():
        status = Campaign.objects.select_for_update(no_key=True).values_list("status", flat=True).get(pk=campaign.pk)
        if status != Campaign.Status.FINISHED:
            raise NotPossible("The ids can be deleted once the campaign is finished.")
        deleted = _delete(Participation.objects.filter(campaign=campaign), campaign)
        events.note(campaign.pk, CampaignEvent.Kind.IDS_DELETED, people=deleted)
        return deleted


def forget_all(campaign: Campaign) -> None:
    """Delete all that is known of the people of a campaign that is being deleted, some hundred at a time."""
    parts = Participation.objects.filter(campaign=campaign)
    while keys := list(parts.order_by("pk").values_list("pk", flat=True)[:_AT_ONCE]):
        with transaction.atomic():
            _delete(parts.filter(pk__in=keys), campaign)
    deletion.delete_in_parts(Event.objects.filter(annotator__campaign=campaign))
    deletion.delete_in_parts(CommonPair.objects.filter(campaign=campaign))


def _delete(parts: QuerySet[Participation], campaign: Campaign) -> int:
    if terms_of(campaign).budget is not None:
        answered = Check.objects.filter(participation__in=parts).exclude(chosen_side="").count()
        ErasedTrials.objects.create(campaign=campaign, trials=answered)
    people = list(parts.values_list("participant", flat=True))
    # What was written about them may name them.
    Event.objects.filter(annotator__in=parts.values("annotator")).update(text="")
    # Locked, in one order: nobody takes part elsewhere between the look and the deletion.
    list(Participant.objects.select_for_update().filter(pk__in=people).order_by("pk"))
    parts.delete()
    # Who takes part in another campaign of the same owner is still somebody there.
    Participant.objects.filter(pk__in=people, participations__isnull=True).delete()
    return len(people)
