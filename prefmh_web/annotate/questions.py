"""Which question a person is asked next, and whether a question has room for one more vote."""

from collections.abc import Iterator
from datetime import timedelta

from django.utils import timezone

from prefmh_web.annotate.models import Lease
from prefmh_web.campaigns import plans, room
from prefmh_web.campaigns.models import Annotator, Comparison, Judge

# How long a skipped question is kept from the person who skipped it, so that others come first.
SKIP_REST = timedelta(seconds=20)
_AT_A_TIME = 16


def questions_for(annotator: Annotator) -> Iterator[tuple[Comparison, Judge]]:
    """Yield what this annotator may be asked, best first: the chain furthest behind, then the judge least asked.

    Nothing here looks at what was answered, only at how often. It is seen without a lock; who leases a question
    looks again under one.
    """
    judges = [judge for judge in plans.judges_of(annotator.campaign) if not judge.is_model]
    found = Comparison.objects.filter(chain__campaign=annotator.campaign_id, verdict__isnull=True)
    ids = list(found.order_by("step", "chain__place").values_list("pk", flat=True))
    for start in range(0, len(ids), _AT_A_TIME):
        batch = Comparison.objects.filter(pk__in=ids[start : start + _AT_A_TIME], verdict__isnull=True)
        for comparison in (
            batch.select_related("chain__campaign")
            .prefetch_related("votes", "leases", "turns")
            .order_by("step", "chain__place")
        ):
            for judge in sorted(judges, key=lambda judge: (_asked(comparison, judge) / judge.budget, judge.place)):
                if not _is_barred(annotator, comparison, judge) and has_room(comparison, judge):
                    yield comparison, judge


def has_room(comparison: Comparison, judge: Judge) -> bool:
    """True when one more vote for this judge cannot make any vote late; for certain if the comparison is locked.

    There is none for people while a model that is asked first has votes to cast.
    """
    return room.has_room(comparison, judge) and not _waits_for_a_model(comparison)


def _waits_for_a_model(comparison: Comparison) -> bool:
    asked_first = [judge for judge in plans.judges_of(comparison.chain.campaign) if judge.is_asked_first]
    if not asked_first:
        return False
    having_a_turn = {turn.judge_id for turn in comparison.turns.all()}
    return any(judge.pk in having_a_turn or room.has_room(comparison, judge) for judge in asked_first)


def _asked(comparison: Comparison, judge: Judge) -> int:
    votes = sum(vote.judge_id == judge.pk and vote.counted for vote in comparison.votes.all())
    return votes + sum(lease.judge_id == judge.pk and lease.is_live for lease in comparison.leases.all())


def _is_barred(annotator: Annotator, comparison: Comparison, judge: Judge) -> bool:
    """True when the annotator's vote on this question has counted, or they have just skipped it."""
    mine = (annotator.pk, judge.pk)
    rested = timezone.now() - SKIP_REST
    return any(vote.counted and (vote.annotator_id, vote.judge_id) == mine for vote in comparison.votes.all()) or any(
        lease.ending == Lease.Ending.SKIPPED and lease.ended_at > rested
        for lease in comparison.leases.all()
        if (lease.annotator_id, lease.judge_id) == mine
    )
