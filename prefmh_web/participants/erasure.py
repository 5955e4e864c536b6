"""The one door through which people are forgotten: by their own wish or a researcher's, one or all of a campaign.

    erase        ends somebody's part, and removes who they are at once, or once they are paid
    forget       the same for all people of a finished campaign
    carry_out    removes those who waited; the sweep does it, whatever died meanwhile
    forget_all   deletes all rows of people, with their campaign

What goes and what stays says `erasing.py`. Nobody can be paid afterwards, so it waits until the researcher has said
that they are, unless it is forced. Whoever comes back is somebody new.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from enum import StrEnum

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from prefmh_web.campaigns import events
from prefmh_web.campaigns.engine import reading
from prefmh_web.campaigns.engine.transactions import lock_people, retried_after_conflicts
from prefmh_web.campaigns.errors import NotPossible
from prefmh_web.campaigns.lifecycle import access
from prefmh_web.campaigns.models import Annotator, Campaign
from prefmh_web.config import Outcome, Pay
from prefmh_web.participants import completion, erasing, payments, sqlite_log
from prefmh_web.participants.models import Participant, Participation

_AT_ONCE = 500


class Scope(StrEnum):
    """Of what somebody is forgotten."""

    PARTICIPATION = "participation"
    """One campaign."""
    PARTICIPANT = "participant"
    """All campaigns of the same owner to which they came with the same id."""


@retried_after_conflicts
def erase(annotator: Annotator, scope: Scope, *, is_forced: bool) -> bool:
    """End somebody's part, and remove who they are.

    Args:
        is_forced: at once, though they are still to be paid; nobody can pay them afterwards.

    Returns:
        False if something of it waits until they are paid.
    """
    with transaction.atomic():
        numbers = _numbers(annotator, scope)
        _ask(numbers)
        return len(_carry_out(numbers, is_forced=is_forced)) == len(numbers)


@retried_after_conflicts
def forget(campaign: Campaign, *, is_forced: bool = False) -> tuple[int, int]:
    """Remove who the people of a finished campaign are; return how many that were, and how many wait to be paid.

    Raises:
        NotPossible: the campaign is not finished: their parts may go on.
    """
    with transaction.atomic():
        status = Campaign.objects.values_list("status", flat=True).get(pk=campaign.pk)
        if status != Campaign.Status.FINISHED:
            raise NotPossible("The ids can be deleted once the campaign is finished.")
        known = Annotator.objects.filter(campaign=campaign, erased_at=None)
        numbers = list(known.order_by("pk").values_list("pk", flat=True))
        _ask(numbers)
        gone = _carry_out(numbers, is_forced=is_forced)
    return len(gone), len(numbers) - len(gone)


def carry_out() -> None:
    """Remove who those are who have been paid since they asked for it."""
    for campaign in Campaign.objects.filter(pk__in=_waiting().values("campaign")):
        numbers = set(_waiting().filter(campaign=campaign).values_list("pk", flat=True))
        # Seen without a lock first: most of them wait for days.
        if paid := sorted(numbers - payments.owed(campaign, numbers)):
            _remove_paid(paid)


@retried_after_conflicts
def _remove_paid(numbers: Sequence[int]) -> None:
    with transaction.atomic():
        _carry_out(numbers, is_forced=False)


def _waiting() -> QuerySet[Annotator]:
    return Annotator.objects.filter(erasure_requested_at__isnull=False, erased_at=None)


def waiting_in(campaign: Campaign) -> int:
    """Return how many people of a campaign wait to be paid and then forgotten."""
    return _waiting().filter(campaign=campaign).count()


def forget_all(campaign: Campaign) -> None:
    """Delete all that is known of the people of a campaign that is being deleted, some hundred at a time."""
    parts = Participation.objects.filter(campaign=campaign)
    while found := list(parts.order_by("pk").values_list("pk", "participant")[:_AT_ONCE]):
        people = [participant for _, participant in found if participant is not None]
        with transaction.atomic():
            _lock_participants(people)
            Participation.objects.filter(pk__in=[pk for pk, _ in found]).delete()
            # Who takes part in another campaign of the same owner is still somebody there.
            Participant.objects.filter(pk__in=people, participations__isnull=True).delete()


def _numbers(annotator: Annotator, scope: Scope) -> list[int]:
    participant = Participation.objects.filter(annotator=annotator).values_list("participant", flat=True).first()
    if scope is Scope.PARTICIPATION or participant is None:
        return [annotator.pk]
    parts = Participation.objects.filter(participant=participant)
    return list(parts.order_by("annotator").values_list("annotator", flat=True))


def _ask(numbers: Collection[int]) -> None:
    """Note the wish, and end the parts that go on. Of a panelist the name goes; they stay the panelist."""
    _lock(numbers)
    Annotator.objects.filter(pk__in=numbers, erasure_requested_at=None).update(erasure_requested_at=timezone.now())
    for number in numbers:
        person = reading.person(number)
        part = Participation.objects.filter(annotator=number).first()
        if part is not None and part.outcome == "":
            # What the sweep would have settled in the next seconds.
            due = completion.outcome_due(person, person.campaign) if person.votes_cast else None
            completion.end_of(person, person.campaign, due or Outcome.WITHDRAWN)
        if person.panelist is None and person.removed_at is None:
            access.remove(person)


def _lock(numbers: Collection[int]) -> None:
    """Lock what is written while people join, answer or come back: that is written before, or not at all."""
    campaigns = Annotator.objects.filter(pk__in=numbers).order_by("campaign")
    for campaign in campaigns.values_list("campaign", flat=True).distinct():
        lock_people(campaign)
    parts = Participation.objects.filter(annotator__in=numbers)
    _lock_participants([pk for pk in parts.values_list("participant", flat=True) if pk is not None])
    list(parts.select_for_update(no_key=True).order_by("pk").values_list("pk"))
    list(Annotator.objects.select_for_update(no_key=True).filter(pk__in=numbers).order_by("pk").values_list("pk"))


def _lock_participants(people: Collection[int]) -> None:
    # In one order: nobody takes part elsewhere between the look and the deletion.
    list(Participant.objects.select_for_update().filter(pk__in=people).order_by("pk"))


def _carry_out(numbers: Sequence[int], *, is_forced: bool) -> list[int]:
    """Remove who those are who need not wait; return them."""
    _lock(numbers)
    gone: list[int] = []
    for campaign in Campaign.objects.filter(annotators__in=numbers).distinct().order_by("pk"):
        owed = payments.owed(campaign, numbers)
        here = Annotator.objects.filter(campaign=campaign, pk__in=numbers).values_list("pk", flat=True)
        going = [number for number in here if is_forced or number not in owed]
        if going:
            # A part without pay gives its place back.
            Participation.objects.filter(annotator__in=owed & set(going)).update(pay=Pay.NOTHING)
            kinds = erasing.remove(campaign, going)
            Annotator.objects.filter(pk__in=going).update(erased_at=timezone.now())
            events.note(
                campaign.pk, events.Kind.ERASED, said={"people": len(going), "removed": " ".join(kinds) or "nothing"}
            )
            gone += going
    if gone:
        transaction.on_commit(sqlite_log.empty)
    return gone
