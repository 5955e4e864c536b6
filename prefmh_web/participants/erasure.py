"""The one door through which people are forgotten: by their own wish or a researcher's, one or all of a campaign.

    erase        ends somebody's part, and removes who they are at once, or once they are paid
    forget       the same for all people of a finished campaign
    carry_out    removes those who waited; the sweep does it, whatever died meanwhile
    forget_all   deletes all rows of people, with their campaign
    empty        empties SQLite's write-ahead log, which keeps pages as they were before

Nobody can be paid afterwards, so it waits until the researcher has said that they are, unless it is forced. Whoever
comes back is somebody new.

goes     ids, what their platform's links said of them, their answers, what they reported about pairs, what others
         wrote about them, their name on a panel, their sessions, the code and the bonus; of their votes how the
         pair stood on their screen, and whether their browser translated the page
stays    votes, leases and checks under the voter's number, in which language they judged, how their part ended;
         of consent, the version and the time
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from enum import StrEnum

from django.db import OperationalError, connection, transaction
from django.db.models import Q, QuerySet
from django.utils import timezone
from django.utils.module_loading import import_string

from prefmh_web import hooks
from prefmh_web.campaigns import events
from prefmh_web.campaigns.engine import locks
from prefmh_web.campaigns.engine.locks import lock_people, retried_after_conflicts
from prefmh_web.campaigns.lifecycle import access
from prefmh_web.campaigns.models import Campaign, Event, NotPossible, Vote, Voter
from prefmh_web.config import Outcome, Pay
from prefmh_web.participants import completion, payments
from prefmh_web.participants.models import AttentionCheck, Participant, Participation

logger = logging.getLogger(__name__)

_AT_ONCE = 500
_PATIENCE_MS = 1000


class Scope(StrEnum):
    """Of what somebody is forgotten."""

    PARTICIPATION = "participation"
    """One campaign."""
    PARTICIPANT = "participant"
    """All campaigns of the same owner to which they came with the same id."""


@retried_after_conflicts
def erase(voter: Voter, scope: Scope, *, is_forced: bool) -> bool:
    """End somebody's part, and remove who they are.

    Args:
        is_forced: at once, though they are still to be paid; nobody can pay them afterwards.

    Returns:
        False if something of it waits until they are paid.
    """
    with transaction.atomic():
        numbers = _numbers(voter, scope)
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
        known = Voter.objects.filter(campaign=campaign, erased_at=None)
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


def _waiting() -> QuerySet[Voter]:
    return Voter.objects.filter(erasure_requested_at__isnull=False, erased_at=None)


def waiting_in(campaign: Campaign) -> int:
    """Return how many people of a campaign wait to be paid and then forgotten."""
    return _waiting().filter(campaign=campaign).count()


def forget_all(campaign: Campaign) -> None:
    """Delete all that is known of the people of a campaign that is being deleted, some hundred at a time."""
    participations = Participation.objects.filter(campaign=campaign)
    while found := list(participations.order_by("pk").values_list("pk", "participant")[:_AT_ONCE]):
        people = [participant for _, participant in found if participant is not None]
        with transaction.atomic():
            _lock_participants(people)
            Participation.objects.filter(pk__in=[pk for pk, _ in found]).delete()
            # Who takes part in another campaign of the same owner is still somebody there.
            Participant.objects.filter(pk__in=people, participations__isnull=True).delete()


def _numbers(voter: Voter, scope: Scope) -> list[int]:
    participant = Participation.objects.filter(voter=voter).values_list("participant", flat=True).first()
    if scope is Scope.PARTICIPATION or participant is None:
        return [voter.pk]
    participations = Participation.objects.filter(participant=participant)
    return list(participations.order_by("voter").values_list("voter", flat=True))


def _ask(numbers: Collection[int]) -> None:
    """Note the wish, and end the parts that go on. Of a panelist the name goes; they stay the panelist."""
    _lock(numbers)
    Voter.objects.filter(pk__in=numbers, erasure_requested_at=None).update(erasure_requested_at=timezone.now())
    for number in numbers:
        person = locks.person(number)
        participation = Participation.objects.filter(voter=number).first()
        if participation is not None and participation.outcome == "":
            completion.end_participation(person, completion.outcome_of_leaving(person, Outcome.WITHDRAWN))
        if person.panelist is None and person.removed_at is None:
            access.remove(person)


def _lock(numbers: Collection[int]) -> None:
    """Lock what is written while people join, answer or come back: that is written before, or not at all."""
    campaigns = Voter.objects.filter(pk__in=numbers).order_by("campaign")
    for campaign in campaigns.values_list("campaign", flat=True).distinct():
        lock_people(campaign)
    participations = Participation.objects.filter(voter__in=numbers)
    _lock_participants([pk for pk in participations.values_list("participant", flat=True) if pk is not None])
    list(participations.select_for_update(no_key=True).order_by("pk").values_list("pk"))
    list(Voter.objects.select_for_update(no_key=True).filter(pk__in=numbers).order_by("pk").values_list("pk"))


def _lock_participants(people: Collection[int]) -> None:
    # In one order: nobody takes part elsewhere between the look and the deletion.
    list(Participant.objects.select_for_update().filter(pk__in=people).order_by("pk"))


def _carry_out(numbers: Sequence[int], *, is_forced: bool) -> list[int]:
    """Remove who those are who need not wait; return them."""
    _lock(numbers)
    gone: list[int] = []
    for campaign in Campaign.objects.filter(voters__in=numbers).distinct().order_by("pk"):
        owed = payments.owed(campaign, numbers)
        here = Voter.objects.filter(campaign=campaign, pk__in=numbers).values_list("pk", flat=True)
        going = [number for number in here if is_forced or number not in owed]
        if going:
            # A part without pay gives its place back.
            Participation.objects.filter(voter__in=owed & set(going)).update(pay=Pay.NOTHING)
            kinds = remove(campaign, going)
            Voter.objects.filter(pk__in=going).update(erased_at=timezone.now())
            events.note(
                campaign.pk, events.Kind.ERASED, said={"people": len(going), "removed": " ".join(kinds) or "nothing"}
            )
            gone += going
    if gone:
        transaction.on_commit(empty)
    return gone


def remove(campaign: Campaign, voters: Collection[int]) -> list[str]:
    """Remove everything that tells who voters of a campaign are; return of which kinds there was something."""
    participations = Participation.objects.filter(voter__in=voters)
    panelists = Voter.objects.filter(pk__in=voters, panelist__isnull=False).values_list("panelist", flat=True)
    told = Vote.objects.filter(~Q(layout="") | Q(is_translated__isnull=False), voter__in=voters)
    counts = {
        "answers": participations.exclude(answers={}, practice=[]).update(answers={}, practice=[]),
        "reports": Event.objects.filter(voter__in=voters, kind=Event.Kind.REPORTED).delete()[0],
        # That their part was ended, and when, stays an event of the record.
        "reasons": events.empty_texts(voters),
        "names": access.forget_names(campaign, [number for number in panelists if number is not None]),
        "parameters": participations.filter(~Q(visits=[])).update(visits=[]),
        "pages": told.update(layout="", is_translated=None),
        "ids": _forget_ids(participations),
    }
    for kind, name in hooks.REMOVALS.items():
        counts[kind] = import_string(name)(campaign, voters)
    # A trial on their screen is taken back, as their pair is: its room in the budget is free again.
    AttentionCheck.objects.filter(participation__in=participations, answered_at=None).update(answered_at=timezone.now())
    return [kind for kind, count in counts.items() if count]


def _forget_ids(participations: QuerySet[Participation]) -> int:
    people = [pk for pk in participations.values_list("participant", flat=True) if pk is not None]
    participations.update(participant=None, code="", bonus=None, waits_since=None)
    # Who takes part in another campaign of the same owner is still somebody there.
    Participant.objects.filter(pk__in=people, participations__isnull=True).delete()
    return len(people)


def empty() -> None:
    """Write what the log holds into the database, where deleted rows are overwritten, and cut the log to nothing.

    Somebody who still reads an older state holds a part of it; the next call takes that, at the latest the server's
    stop. Databases other than SQLite have no such file.
    """
    if connection.vendor != "sqlite":
        return
    with connection.cursor() as cursor:
        patience_ms = cursor.execute("PRAGMA busy_timeout").fetchone()[0]
        # Nobody who asks to be forgotten waits for the end of an export.
        cursor.execute(f"PRAGMA busy_timeout = {_PATIENCE_MS}")
        try:
            is_busy, *_ = cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        except OperationalError:
            is_busy = True
        finally:
            cursor.execute(f"PRAGMA busy_timeout = {patience_ms}")
    if is_busy:
        logger.warning("SQLite's log is not empty yet: somebody reads. It is emptied at the next call or the stop.")
