"""The life of a lease: a question given to one person, which comes back when it ends without a vote.

    take     the annotator's live lease, or a new one on the question that most needs an answer
    answer   hands the vote to `transitions.cast_vote` and ends the lease, in one transaction
    skip     returns the question to its judge
    orphan, adopt    the person's page went away, or came back
    release  ends the leases of somebody whose page has said that it goes, and has not come back
    expire   ends the leases whose time is over; look_again_where_nobody_is_asked finds room that nobody has noted

A comparison never has more leases out than votes it can still use (`Question.has_room`), so nobody's vote comes
too late. Locks are taken in one order: the comparison, then its leases. Who looks for a question passes over the
comparisons that others hold at that moment, and waits for one of those only when there is nothing else.
"""

import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

from django.db import IntegrityError, transaction
from django.db.models import Exists, F, OuterRef
from django.db.models.expressions import RawSQL
from django.utils import timezone

import sampler
from prefmh_web.campaigns import started
from prefmh_web.campaigns.engine import transitions
from prefmh_web.campaigns.engine.open_comparisons import Question, question_on, questions_for
from prefmh_web.campaigns.engine.retries import retried_after_conflicts
from prefmh_web.campaigns.models import Annotator, Campaign, Comparison, Judge, Lease, Side, Vote
from prefmh_web.transport import nudges

# How long a question waits for a person whose page has gone: a short loss of signal takes less.
ORPHAN_GRACE = timedelta(seconds=15)
# And for one whose page has said that it goes, as it does when it is closed, left or loaded again: that takes less.
FAREWELL_GRACE = timedelta(seconds=3)
# As SQL, since every vote asks it: a queryset's subquery costs more to put into words than to answer.
_OTHERS_OUT = RawSQL(
    "(SELECT COUNT(*) FROM annotate_lease o WHERE o.comparison_id = annotate_lease.comparison_id"
    " AND o.ended_at IS NULL AND o.key <> annotate_lease.key)",
    (),
)
# Nobody sees the codes of a pair; those of an image model's latents have 87,000 characters each.
_UNSEEN = ("current__code", "proposal__code")


class _Busy(Exception):  # noqa: N818 - reads as the sentence it starts
    """Somebody else holds the comparison at this moment."""


@retried_after_conflicts
def take(annotator: Annotator, may_hold_one: bool = True) -> Lease | None:
    """Return the annotator's live lease, or lease them a question; None when there is none for them now.

    Args:
        may_hold_one: False when they held none a moment ago.
    """
    lease = live_lease_of(annotator) if may_hold_one else None
    if lease or not annotator.campaign.is_running or annotator.resting or annotator.removed_at:
        return lease
    try:
        return _first_lease(questions_for(annotator), annotator)
    except IntegrityError:
        # A second page of the same person took a lease in this very moment; both show that one.
        return live_lease_of(annotator)


def live_lease_of(annotator: Annotator) -> Lease | None:
    """Return the lease the annotator holds, if any."""
    whole = Lease.objects.select_related("judge", "comparison__current", "comparison__proposal")
    whole = whole.defer(*(f"comparison__{name}" for name in _UNSEEN))
    return whole.filter(annotator=annotator, ended_at__isnull=True).first()


@retried_after_conflicts
def answer(key: uuid.UUID, annotator: Annotator, chosen_side: Side, elapsed_ms: int | None) -> Vote | None:
    """Cast the vote of a lease. The same key again returns the same vote; a skipped lease takes none.

    An expired lease's vote still counts while nobody else's vote would come too late for it.

    Raises:
        Comparison.DoesNotExist: the annotator was never given this lease, or has lost access since.
    """
    mine = {"leases__key": key, "leases__annotator": annotator, "leases__annotator__removed_at__isnull": True}
    with transitions.locked(**mine) as comparison:
        lease = Lease.objects.annotate(person_rests=F("annotator__resting"), others_out=_OTHERS_OUT).get(key=key)
        if lease.ending == Lease.Ending.SKIPPED:
            return None
        judge = _judge_of(lease, comparison.chain.campaign)
        vote = transitions.cast_vote(
            comparison,
            key=key,
            judge=judge,
            annotator=annotator,
            proposal_side=Side(lease.proposal_side),
            chosen_side=chosen_side,
            elapsed_ms=elapsed_ms,
            may_count=lease.is_live or _has_room(comparison, judge),
        )
        is_in_time = _end(Lease.objects.filter(pk=key, ended_at__isnull=True), Lease.Ending.VOTED)
        if not is_in_time:
            # A vote may follow an expiry, of this very moment perhaps.
            _end(Lease.objects.filter(pk=key, ending=Lease.Ending.EXPIRED), Lease.Ending.VOTED)
        if comparison.verdict is None and lease.others_out:
            _note_room_again(comparison)
        elif comparison.verdict is None:
            # Nobody else was asked, and an open step wants another vote.
            transitions.note_askable(comparison, True)
        if not vote.counted:
            # A counted vote nudges; this one has only given its place back.
            nudges.nudge(nudges.voters(annotator.campaign_id))
    if lease.person_rests or not is_in_time:
        wake(annotator)
    return vote


@retried_after_conflicts
def skip(key: uuid.UUID, annotator: Annotator) -> None:
    """Return a question to its judge. For a while it is asked of others only, and then of this person too.

    Raises:
        Comparison.DoesNotExist: the annotator was never given this lease.
    """
    with transitions.locked(leases__key=key, leases__annotator=annotator) as comparison:
        _end(Lease.objects.filter(pk=key, ended_at__isnull=True), Lease.Ending.SKIPPED)
        _note_room_again(comparison)
        nudges.nudge(nudges.voters(annotator.campaign_id))


def orphan(annotator: Annotator, grace: timedelta = ORPHAN_GRACE) -> None:
    """A page of this person is gone: their question goes back soon, unless one comes back or is open still."""
    _orphan(Lease.objects.filter(annotator=annotator), grace)
    # Another page of the same person, should there be one, adopts the question again.
    nudges.nudge(nudges.voter(annotator.pk))


def adopt(annotator: Annotator) -> None:
    """The person's page is here: their question keeps the deadline it had."""
    for lease in Lease.objects.filter(annotator=annotator, ended_at__isnull=True, is_orphan=True):
        expires_at = lease.issued_at + timedelta(seconds=annotator.campaign.lease_seconds)
        Lease.objects.filter(pk=lease.pk, is_orphan=True).update(expires_at=expires_at, is_orphan=False)


def release(annotator: Annotator) -> None:
    """The grace of `orphan` is over: give back what no page of this person has adopted. The sweep would, later."""
    now = timezone.now()
    left_behind = Lease.objects.filter(annotator=annotator, ended_at__isnull=True, is_orphan=True, expires_at__lte=now)
    for lease in left_behind.select_related("annotator"):
        _expire(lease, now)


def wake(annotator: Annotator) -> None:
    """The person shows that they are there, after a lease of theirs ran out."""
    # Asked of the database: the caller's annotator may be as old as its socket.
    Annotator.objects.filter(pk=annotator.pk, resting=True).update(resting=False)
    annotator.resting = False


def expire() -> None:
    """End the leases whose time is over; orphan those of people whose pages a crash took away."""
    now = timezone.now()
    _orphan(Lease.objects.filter(annotator__online_until__lt=now, is_orphan=False))
    for lease in Lease.objects.filter(ended_at__isnull=True, expires_at__lte=now).select_related("annotator"):
        _expire(lease, now)


@retried_after_conflicts
def _expire(lease: Lease, now: datetime) -> None:
    with transitions.locked(pk=lease.comparison_id) as comparison:
        # The deadline is asked again: the page may have come back since.
        overdue = Lease.objects.filter(pk=lease.pk, ended_at__isnull=True, expires_at__lte=now)
        ended = _end(overdue, Lease.Ending.EXPIRED)
        _note_room_again(comparison)
        # A person who is there but did not answer rests; one whose page is gone is served on return.
        if ended and not lease.is_orphan:
            Annotator.objects.filter(pk=lease.annotator_id).update(resting=True)
        nudges.nudge(nudges.voter(lease.annotator_id), nudges.voters(lease.annotator.campaign_id))


def look_again_where_nobody_is_asked() -> None:
    """Note the room of comparisons that are passed over although nobody has a lease on them.

    There are none, unless a process of an older release has ended a lease without a word.
    """
    live_ones = Lease.objects.filter(comparison=OuterRef("pk"), ended_at__isnull=True)
    forgotten = Comparison.objects.filter(~Exists(live_ones), verdict__isnull=True, is_askable=False)
    for pk in list(forgotten.values_list("pk", flat=True)):
        with transitions.locked(pk=pk) as comparison:
            _note_room_again(comparison)
            nudges.nudge(nudges.voters(comparison.chain.campaign_id))


def _orphan(leases, grace: timedelta = ORPHAN_GRACE) -> None:
    deadline = timezone.now() + grace
    leases.filter(ended_at__isnull=True, expires_at__gt=deadline).update(expires_at=deadline, is_orphan=True)


def _end(leases, ending: Lease.Ending) -> bool:
    # A guarded update: of a vote, a skip and an expiry at the same moment the first wins.
    return bool(leases.update(ended_at=timezone.now(), ending=ending))


def _judge_of(lease: Lease, campaign: Campaign) -> Judge:
    return next(judge for judge in started.judges_of(campaign) if judge.pk == lease.judge_id)


def _note_room(comparison: Comparison, question: Question) -> None:
    """Write down, of a locked comparison, whether it has room for somebody: those that have none nobody looks at.

    Not where models judge too: there room comes with time, when a turn is lost.
    """
    if not started.uses_models(question.campaign):
        transitions.note_askable(comparison, question.has_room_for_somebody())


def _note_room_again(comparison: Comparison) -> None:
    """Do so after a vote, a skip or an expiry; once the comparison is decided nobody looks any more."""
    if question := question_on(comparison.pk, comparison.chain.campaign):
        _note_room(comparison, question)


def _has_room(comparison: Comparison, judge: Judge) -> bool:
    question = question_on(comparison.pk, comparison.chain.campaign)
    return question is not None and question.has_room(judge)


def _first_lease(questions: Iterable[tuple[Question, Judge]], annotator: Annotator) -> Lease | None:
    busy = []
    for question, judge in questions:
        try:
            if lease := _lease(question, judge, annotator):
                return lease
        except _Busy:
            busy.append((question, judge))
    # Told that there is nothing, the person would wait although what holds these ends within milliseconds.
    leases = (_lease(question, judge, annotator, patient=True) for question, judge in busy)
    return next(filter(None, leases), None)


@contextmanager
def _locked_pair(pk: int, patient: bool) -> Iterator[Comparison]:
    """Lock a comparison as `transitions.locked` does, and read the pair; if not `patient`, raise `_Busy` at once
    where somebody else holds it.
    """
    with transaction.atomic():
        locked = Comparison.objects.select_for_update(no_key=True, of=("self",), skip_locked=not patient)
        comparison = locked.select_related("current", "proposal").defer(*_UNSEEN).filter(pk=pk).first()
        if comparison is None:
            raise _Busy
        yield comparison


def _lease(seen: Question, judge: Judge, annotator: Annotator, patient: bool = False) -> Lease | None:
    with _locked_pair(seen.pk, patient) as comparison:
        question = question_on(seen.pk, annotator.campaign)
        if question is None:
            return None
        # Looked at again: another page of this person may have answered meanwhile.
        is_for_them = question.has_room(judge) and not question.is_barred(annotator, judge)
        lease = _given(question, comparison, judge, annotator) if is_for_them else None
        if lease:
            question.note("live", judge.pk, annotator.pk)
        _note_room(comparison, question)
        return lease


def _given(question: Question, comparison: Comparison, judge: Judge, annotator: Annotator) -> Lease:
    now = timezone.now()
    deadline = now + timedelta(seconds=annotator.campaign.lease_seconds)
    if question.has_expired(annotator, judge):
        # The same question again under the same key: a vote still on its way from before finds its place.
        expired = Lease.objects.filter(
            comparison=comparison, judge=judge, annotator=annotator, ending=Lease.Ending.EXPIRED
        )[0]
        expired.issued_at, expired.expires_at, expired.is_orphan = now, deadline, False
        expired.ended_at = expired.ending = None
        expired.comparison, expired.judge = comparison, judge
        expired.save()
        return expired
    return Lease.objects.create(
        comparison=comparison,
        judge=judge,
        annotator=annotator,
        proposal_side=_draw_side(question, judge),
        issued_at=now,
        expires_at=deadline,
    )


def _draw_side(question: Question, judge: Judge) -> Side:
    """Draw where the proposal stands, anew for every lease: each lean of a voter meets both orders alike.

    A judge with a fixed order has a twin with the other one; between the two, a constant lean cancels.
    """
    if judge.order != Judge.Order.RANDOM:
        return Side.LEFT if judge.order == Judge.Order.PROPOSAL_FIRST else Side.RIGHT
    seed = question.campaign.recipe["seed"]
    is_first = sampler.shows_proposal_first(seed, question.place, question.step, asked=question.leases)
    return Side.LEFT if is_first else Side.RIGHT
