"""A part that is ended by hand. The one door for it, whether a platform has sent the person or a link has.

It is an event of the record. The open pair ends without a vote in that moment and goes back to its judge; an answer to
it that comes later is refused, and votes that were counted stay. A part that had ended already keeps its outcome.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.contrib.auth.models import User
from django.db import transaction

from prefmh_web.campaigns import events
from prefmh_web.campaigns.engine import reading
from prefmh_web.campaigns.engine.transactions import retried_after_conflicts
from prefmh_web.campaigns.errors import NotPossible
from prefmh_web.campaigns.lifecycle import access
from prefmh_web.campaigns.models import Annotator, Campaign, EndReason, Event, Invitation
from prefmh_web.config import Outcome, Pay
from prefmh_web.participants import completion
from prefmh_web.participants.models import Participation

_KIND = Event.Kind.PARTICIPATION_ENDED


@dataclass(frozen=True)
class Grounds:
    """Why a part is ended.

    Args:
        reason: in a word of ours, for the record.
        text: in the researcher's words, for payments.csv and colleagues.
    """

    reason: EndReason
    text: str


@retried_after_conflicts
def exclude(annotator: Annotator, by: User, grounds: Grounds, *, is_paid: bool) -> bool | None:
    """End somebody's part. They see no pair any more.

    Args:
        is_paid: in full, by the code for parts that the researcher ends; otherwise not at all. It says nothing where
            the part had ended before, or where no platform has sent the person.

    Returns:
        Whether they are paid; None where the pay was not settled by it.

    Raises:
        NotPossible: the part was ended by hand before, or the person has left.
    """
    with transaction.atomic():
        # In the order in which a withdrawal takes them. Of two who press the button at once, one waits here.
        part = Participation.objects.select_for_update(no_key=True).filter(annotator=annotator).first()
        Annotator.objects.select_for_update(no_key=True).get(pk=annotator.pk)
        person = reading.person(annotator.pk)
        _demand_going_on(person)
        paid = is_paid if part is not None and _settle(part, person, is_paid) else None
        events.note(person.campaign_id, _KIND, by, _said(grounds, paid), person)
        access.remove(person)
    return paid


@retried_after_conflicts
def exclude_all(invitation: Invitation, by: User) -> None:
    """Close a link, and end the parts of all who joined with it. The sweep settles how they are paid."""
    with transaction.atomic():
        # Locked, as joining locks it: nobody joins who is not looked at.
        Invitation.objects.select_for_update(no_key=True).get(pk=invitation.pk)
        people = invitation.annotators.select_for_update(no_key=True).filter(removed_at=None).order_by("pk")
        grounds = Grounds(EndReason.LINK, "Everyone who joined with the same link was removed.")
        events.note_of_each(invitation.campaign_id, _KIND, by, _said(grounds, None), people)
        access.revoke(invitation, withdraw=True)


@dataclass(frozen=True)
class Exclusion:
    """That a researcher has ended somebody's part."""

    at: datetime
    by: User | None
    grounds: Grounds


def of(annotator: Annotator) -> Exclusion | None:
    """Return the exclusion of somebody, if there is one."""
    event = Event.objects.select_related("by").filter(voter=annotator, kind=_KIND).first()
    if event is None:
        return None
    return Exclusion(event.at, event.by, Grounds(EndReason(event.data["reason"]), event.data["text"]))


def reasons_in(campaign: Campaign) -> dict[int, str]:
    """Return why parts were ended by hand, in the researcher's words, by annotator."""
    found = Event.objects.filter(campaign=campaign, kind=_KIND)
    return {voter: data["text"] for voter, data in found.values_list("voter", "data")}


def _demand_going_on(person: Annotator) -> None:
    earlier = of(person)
    if earlier is not None:
        name = f" by {earlier.by}" if earlier.by else ""
        raise NotPossible(f"The part of person {person.pk} has been ended already{name}.")
    if person.removed_at:
        raise NotPossible(f"The part of person {person.pk} has ended already.")


def _settle(part: Participation, person: Annotator, is_paid: bool) -> bool:
    """Settle the outcome; False if it is another than that the researcher ends the part."""
    if part.outcome:
        return False
    # What the sweep would have settled in the next seconds; who gave nothing has nothing done that could stand.
    outcome = (completion.outcome_due(person, person.campaign) if person.votes_cast else None) or Outcome.ENDED
    if outcome is Outcome.ENDED:
        Participation.objects.filter(pk=part.pk).update(pay=Pay.FULL if is_paid else Pay.NOTHING)
    completion.end_of(person, person.campaign, outcome)
    return outcome is Outcome.ENDED


def _said(grounds: Grounds, paid: bool | None) -> dict[str, object]:
    return {"reason": grounds.reason, "paid": paid, "text": grounds.text}
