"""Places: how many people can take part, in all and for each answer to a question. Taken and lost here only.

Somebody holds a place from the last stage before practice on; without practice, from the last one before the votes. A
part that ends without pay gives it back, and so does an absence. It is taken under the lock of the study, so
there is never one too many.
"""

from __future__ import annotations

from datetime import timedelta

from django.db import transaction
from django.db.models import Max, Q, QuerySet
from django.db.models.fields.json import KeyTransform
from django.utils import timezone

from prefmh_web.campaigns.models import Campaign
from prefmh_web.config import Outcome, Pay, Study
from prefmh_web.participants.models import Participation
from prefmh_web.participants.recruiting import going_on


def take(part: Participation, study: Study) -> bool:
    """Give somebody a place, and return True, if one is free. The caller holds the lock of the study."""
    if not _is_free(part, study):
        return False
    Participation.objects.filter(pk=part.pk).update(placed_at=timezone.now())
    return True


def held(campaign: Campaign, study: Study) -> QuerySet[Participation]:
    """Return the parts that hold a place."""
    unpaid, if_voted = ([each for each in Outcome if study.paid(each, votes) is Pay.NOTHING] for votes in (1, 0))
    has_not_voted = Q(annotator__votes_cast=0)
    placed = Participation.objects.filter(campaign=campaign, placed_at__isnull=False)
    as_set_up = placed.exclude(outcome__in=unpaid, pay="").exclude(has_not_voted, outcome__in=if_voted, pay="")
    return as_set_up.exclude(pay=Pay.NOTHING)


def are_all_taken(campaign: Campaign, study: Study) -> bool:
    """True if nobody new can have a place, whatever they answer."""
    return study.places is not None and held(campaign, study).count() >= study.places


def are_limited(study: Study) -> bool:
    """True if not everybody can have a place."""
    return study.places is not None or any(question.places for question in study.protocol.questions)


def _is_free(part: Participation, study: Study) -> bool:
    others = held(part.campaign, study).exclude(pk=part.pk)
    if study.places is not None and others.count() >= study.places:
        return False
    for question in study.protocol.questions:
        answer = part.answers.get(question.name, {}).get("answer", "")
        most = question.places.get(answer)
        # Not by a look-up in words: a question's name may have two underscores.
        given = KeyTransform("answer", KeyTransform(question.name, "answers"))
        same = others.alias(given=given).filter(given=answer)
        if most is not None and same.count() >= most:
            return False
    return True


def take_from_absent() -> int:
    """Take the places of people who have been away for too long, where places are limited; return how many."""
    under_way = [each for each in going_on() if each.is_under_way and are_limited(each.config.study)]
    return sum(map(_take_from_absent, under_way))


def _take_from_absent(campaign: Campaign) -> int:
    study = campaign.config.study
    minutes = study.absent_minutes or study.most_minutes
    if minutes is None:
        return 0
    limit = timezone.now() - timedelta(minutes=minutes)
    here = Participation.objects.filter(campaign=campaign, placed_at__isnull=False, outcome="")
    # What an open page renews lies in the future, by much less than a minute counts here.
    away = here.filter(seen_at__lt=limit).filter(
        Q(annotator__online_until__isnull=True) | Q(annotator__online_until__lt=limit)
    )
    asked = away.annotate(asked_at=Max("annotator__leases__issued_at"))
    gone = asked.filter(Q(asked_at__isnull=True) | Q(asked_at__lt=limit)).values_list("pk", flat=True)
    with transaction.atomic():
        # Looked at again under their locks: who comes back in this moment keeps the place.
        free = Participation.objects.select_for_update(skip_locked=True, no_key=True)
        still_gone = list(free.filter(pk__in=list(gone), seen_at__lt=limit, outcome="").values_list("pk", flat=True))
        return Participation.objects.filter(pk__in=still_gone).update(placed_at=None)
