"""Who is to be paid: a table for the owner. It is no part of the record, for it names people as their platform does."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from decimal import Decimal

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

import sampler
from prefmh_web.campaigns import events
from prefmh_web.campaigns.errors import NotPossible
from prefmh_web.campaigns.models import Annotator, Campaign
from prefmh_web.campaigns.voters import number_of
from prefmh_web.config import Outcome, Pay, Study
from prefmh_web.participants import attention, completion, limits
from prefmh_web.participants.models import Participation
from prefmh_web.recruiters import Recruiter

COLUMNS = (
    "external_id",
    "study_id",
    "session_id",
    "all_session_ids",
    "outcome",
    "code",
    "paid",
    "arrived_at",
    "finished_at",
    "active_minutes",
    "votes",
    "checks_passed",
    "checks_failed",
    "bonus",
    "reason",
)


def rows(campaign: Campaign) -> Iterator[tuple[str, ...]]:
    """Yield the header and a row for each participant, in the order in which they came."""
    study, minutes = campaign.config.study, limits.minutes_of(campaign.annotators.all())
    reasons = completion.exclusion_reasons(campaign)
    yield COLUMNS
    found = (
        Participation.objects.filter(campaign=campaign, participant__isnull=False)
        .select_related("participant", "annotator")
        .prefetch_related("checks")
    )
    for each in found.order_by("pk").iterator(chunk_size=500):
        yield (
            sampler.escaped(each.given_id),
            *map(sampler.escaped, _sent_under(each, study.platform)),
            each.outcome,
            sampler.escaped(each.code),
            study.paid_to(each, each.annotator.votes_cast).label if each.outcome else "",
            sampler.moment(each.arrived_at),
            sampler.moment(each.finished_at),
            f"{minutes.get(each.annotator_id, 0):.1f}",
            str(each.annotator.votes_cast),
            *map(str, attention.counts_of(each)),
            "" if each.bonus is None else str(each.bonus),
            sampler.escaped(reasons.get(each.annotator_id, "")),
        )


def _sent_under(part: Participation, recruiter: Recruiter) -> tuple[str, str, str]:
    """Return the study's id, the session under which a part ended, and all of its sessions."""
    visit, sessions = part.paid_visit, dict.fromkeys(each.get("session_id", "") for each in part.visits)
    study = visit.get("parameters", {}).get(recruiter.study, "") if recruiter.study else ""
    return study, visit.get("session_id", ""), " ".join(sessions)


def set_bonus(annotator: Annotator, amount: Decimal | None, *, by: User | None = None) -> None:
    """Store what somebody is paid beside the pay, also after the end; None for nothing.

    Raises:
        NotPossible: who they are is deleted, or no platform has sent them: nobody could be paid.
    """
    known = Participation.objects.filter(annotator=annotator, participant__isnull=False)
    with transaction.atomic():
        # What is added is not paid yet.
        changed = known.exclude(bonus=amount) if amount is not None else known.filter(bonus__isnull=False)
        if changed.update(bonus=amount, paid_at=None):
            # Whose it is stands in payments.csv alone.
            events.note(annotator.campaign_id, events.Kind.BONUS_SET, by)
        elif not known.exists():
            raise NotPossible(f"Nothing says who person {number_of(annotator)} is, so no bonus can be paid.")


def owed(campaign: Campaign, numbers: Collection[int]) -> set[int]:
    """Return who of these annotators is still to be paid, as far as is known here."""
    study = campaign.config.study
    if not study.platform.person:
        # Nothing says who they are: they are paid by what the last page tells them, or not at all.
        return set()
    unpaid = Participation.objects.filter(annotator__in=numbers, participant__isnull=False, paid_at=None)
    return {part.annotator_id for part in unpaid.select_related("annotator") if _earns(part, study)}


def would_be_owed(annotator: Annotator) -> bool:
    """Return whether somebody who leaves now would still have to be paid."""
    part = Participation.objects.filter(annotator=annotator, paid_at=None).select_related("annotator").first()
    study = annotator.campaign.config.study
    if part is None or not study.platform.person:
        return False
    part.outcome = part.outcome or Outcome.WITHDRAWN
    return _earns(part, study)


def _earns(part: Participation, study: Study) -> bool:
    if not part.outcome:
        return True
    return bool(part.bonus) or study.paid_to(part, part.annotator.votes_cast) is not Pay.NOTHING


def settle(campaign: Campaign, annotator: Annotator | None = None, *, by: User | None = None) -> int:
    """Note that everybody whose part has ended is paid, or one of them; return how many that were."""
    ended = Participation.objects.filter(campaign=campaign, participant__isnull=False, paid_at=None).exclude(outcome="")
    if annotator is not None:
        ended = ended.filter(annotator=annotator)
    with transaction.atomic():
        count = ended.update(paid_at=timezone.now())
        if count:
            events.note(campaign.pk, events.Kind.PAID, by, {"people": count})
    return count


def unsettled(campaign: Campaign) -> int:
    """Return how many people whose part has ended nobody has said to be paid."""
    parts = Participation.objects.filter(campaign=campaign, participant__isnull=False).exclude(outcome="")
    return len(owed(campaign, list(parts.values_list("annotator", flat=True))))
