"""How long somebody has been active: how long pairs stood before them that they answered or skipped, repeats included.

Where the setup says so, a part ends once that comes to a number of minutes. It depends on the clock alone, and on no
pair's content. Time away costs nobody anything: a pair whose time runs out is not counted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from django.db.models import DurationField, F, QuerySet, Sum

from prefmh_web.campaigns.models import Annotator, Lease
from prefmh_web.participants.models import Check, Participation
from prefmh_web.participants.recruiting import going_on, terms_of


def minutes_of(annotators: QuerySet[Annotator]) -> Mapping[int, float]:
    """Return for each annotator how many minutes they were active; 0 for all others."""
    done = (Lease.Ending.VOTED, Lease.Ending.SKIPPED)
    asked = Lease.objects.filter(annotator__in=annotators, ending__in=done).order_by()
    shown = Sum(F("ended_at") - F("issued_at"), output_field=DurationField())
    repeats = Check.objects.filter(kind=Check.Kind.REPEAT, answered_at__isnull=False).order_by()
    repeats = repeats.filter(participation__annotator__in=annotators)
    repeated = Sum(F("answered_at") - F("shown_at"), output_field=DurationField())
    minutes: defaultdict[int, float] = defaultdict(float)
    for spent_by in (
        asked.values_list("annotator").annotate(spent=shown),
        repeats.values_list("participation__annotator").annotate(spent=repeated),
    ):
        for pk, spent in spent_by:
            minutes[pk] += spent.total_seconds() / 60
    return minutes


def minutes_done(annotator: Annotator) -> float | None:
    """Return how many minutes somebody was active; None, without a look, where that is not limited."""
    if terms_of(annotator.campaign).most_active_minutes is None:
        return None
    return minutes_of(Annotator.objects.filter(pk=annotator.pk))[annotator.pk]


def is_over(annotator: Annotator) -> bool:
    """True if somebody has been active for as long as is asked of them. It costs nothing where there is no limit."""
    minutes = minutes_done(annotator)
    return minutes is not None and minutes >= (terms_of(annotator.campaign).most_active_minutes or 0)


def overdue() -> Sequence[int]:
    """Return the annotators whose parts go on although they have been active for that long."""
    found: list[int] = []
    for campaign in going_on():
        if (most := campaign.config.study.most_active_minutes) is None:
            continue
        parts = Participation.objects.filter(campaign=campaign, outcome="")
        minutes = minutes_of(Annotator.objects.filter(pk__in=parts.values("annotator")))
        found += [pk for pk, spent in minutes.items() if spent >= most]
    return found
