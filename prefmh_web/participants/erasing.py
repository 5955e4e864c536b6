"""What goes when somebody is forgotten. Called by `erasure.py` alone, under its locks.

goes     ids, what their platform's links said of them, their answers, what they reported about pairs, what others
         wrote about them, their name on a panel, their sessions, the code and the bonus; of their votes how the
         pair stood on their screen, and whether their browser translated the page
stays    votes, leases and checks under the annotator's number, in which language they judged, how their part ended;
         of consent, the version and the time
"""

from __future__ import annotations

from collections.abc import Collection

from django.db.models import Q, QuerySet
from django.utils import timezone
from django.utils.module_loading import import_string

from prefmh_web import hooks
from prefmh_web.campaigns import events
from prefmh_web.campaigns.lifecycle import panels
from prefmh_web.campaigns.models import Annotator, Campaign, Vote
from prefmh_web.campaigns.monitoring import problems
from prefmh_web.participants.models import Check, Participant, Participation


def remove(campaign: Campaign, annotators: Collection[int]) -> list[str]:
    """Remove everything that tells who annotators of a campaign are; return of which kinds there was something."""
    parts = Participation.objects.filter(annotator__in=annotators)
    counts = {
        "answers": parts.exclude(answers={}, practice=[]).update(answers={}, practice=[]),
        "reports": problems.remove(annotators),
        # That their part was ended, and when, stays an event of the record.
        "reasons": events.empty_texts(annotators),
        "names": _unname(campaign, annotators),
        "parameters": parts.filter(~Q(visits=[])).update(visits=[]),
        "pages": _forget_pages(annotators),
        "ids": _forget_ids(parts),
    }
    for kind, name in hooks.REMOVALS.items():
        counts[kind] = import_string(name)(campaign, annotators)
    # A trial on their screen is taken back, as their pair is: its room in the budget is free again.
    Check.objects.filter(participation__in=parts, answered_at=None).update(answered_at=timezone.now())
    return [kind for kind, count in counts.items() if count]


def _unname(campaign: Campaign, annotators: Collection[int]) -> int:
    numbers = Annotator.objects.filter(pk__in=annotators, panelist__isnull=False).values_list("panelist", flat=True)
    return panels.forget_names(campaign, [number for number in numbers if number is not None])


def _forget_pages(annotators: Collection[int]) -> int:
    told = Vote.objects.filter(~Q(layout="") | Q(is_translated__isnull=False), annotator__in=annotators)
    return told.update(layout="", is_translated=None)


def _forget_ids(parts: QuerySet[Participation]) -> int:
    people = [pk for pk in parts.values_list("participant", flat=True) if pk is not None]
    parts.update(participant=None, code="", bonus=None, waits_since=None)
    # Who takes part in another campaign of the same owner is still somebody there.
    Participant.objects.filter(pk__in=people, participations__isnull=True).delete()
    return len(people)
