"""Who is to be paid; and people as tables: payments.csv, answers.csv, and theirs of the record.

The first two are for the owner alone: payments.csv names people as their platform does, and answers.csv is what they
said about themselves. The record holds of people their numbers in the campaign, and nothing that names anybody.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import datetime
from decimal import Decimal

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import F, OuterRef, Subquery
from django.utils import timezone

import sampler
from prefmh_web.campaigns import events
from prefmh_web.campaigns.models import Campaign, Event, Lease, NotPossible, Vote, Voter, number_of, numbers_in
from prefmh_web.campaigns.record.rows import Happened, Row
from prefmh_web.config import Outcome, Pay, Study
from prefmh_web.participants import completion, limits
from prefmh_web.participants.models import AttentionCheck, Participation
from prefmh_web.participants.people import fast_votes, people_of
from prefmh_web.recruiters import Recruiter
from sampler import tables

_AT_A_TIME = 500

COLUMNS = (
    "external_id", "study_id", "session_id", "all_session_ids", "outcome", "code", "paid", "arrived_at", "finished_at",
    "active_minutes", "votes", "checks_passed", "checks_failed", "bonus", "reason",
)  # fmt: skip


def rows(campaign: Campaign) -> Iterator[tuple[str, ...]]:
    """Yield the header and a row for each participant, in the order in which they came."""
    study, minutes = campaign.config.study, limits.minutes_of(campaign.config, campaign.voters.all())
    ended = Event.objects.filter(campaign=campaign, kind=Event.Kind.PARTICIPATION_ENDED)
    reasons = {voter: data["text"] for voter, data in ended.values_list("voter", "data")}
    yield COLUMNS
    for person in people_of(campaign):
        participation, votes = person.participation, person.voter.votes_cast
        if participation is None or participation.participant is None:
            continue
        yield (
            sampler.escaped(participation.given_id),
            *map(sampler.escaped, _sent_under(participation, study.platform)),
            participation.outcome,
            sampler.escaped(participation.code),
            study.paid(participation.outcome, votes, participation.pay).label if participation.outcome else "",
            sampler.moment(participation.arrived_at),
            sampler.moment(participation.finished_at),
            f"{minutes.get(participation.voter_id, 0):.1f}",
            str(votes),
            str(person.checks_passed),
            str(person.checks_failed),
            "" if participation.bonus is None else str(participation.bonus),
            sampler.escaped(reasons.get(participation.voter_id, "")),
        )


def _sent_under(participation: Participation, recruiter: Recruiter) -> tuple[str, str, str]:
    """Return the study's id, the session under which a part ended, and all of its sessions."""
    visit, sessions = (
        participation.paid_visit,
        dict.fromkeys(each.get("session_id", "") for each in participation.visits),
    )
    study = visit.get("parameters", {}).get(recruiter.study, "") if recruiter.study else ""
    return study, visit.get("session_id", ""), " ".join(sessions)


def set_bonus(voter: Voter, amount: Decimal | None, *, by: User | None = None) -> None:
    """Store what somebody is paid beside the pay, also after the end; None for nothing.

    Raises:
        NotPossible: who they are is deleted, or no platform has sent them: nobody could be paid.
    """
    known = Participation.objects.filter(voter=voter, participant__isnull=False)
    with transaction.atomic():
        # What is added is not paid yet.
        changed = known.exclude(bonus=amount) if amount is not None else known.filter(bonus__isnull=False)
        if changed.update(bonus=amount, paid_at=None):
            # Whose it is stands in payments.csv alone.
            events.note(voter.campaign_id, events.Kind.BONUS_SET, by)
        elif not known.exists():
            raise NotPossible(f"Nothing says who person {number_of(voter)} is, so no bonus can be paid.")


def owed(campaign: Campaign, numbers: Collection[int]) -> set[int]:
    """Return who of these voters is still to be paid, as far as is known here."""
    study = campaign.config.study
    if not study.platform.person:
        # Nothing says who they are: they are paid by what the last page tells them, or not at all.
        return set()
    unpaid = Participation.objects.filter(voter__in=numbers, participant__isnull=False, paid_at=None)
    return {participation.voter_id for participation in unpaid.select_related("voter") if _earns(participation, study)}


def would_be_owed(voter: Voter) -> bool:
    """Return whether somebody who leaves now would still have to be paid."""
    participation = Participation.objects.filter(voter=voter, paid_at=None).select_related("voter").first()
    study = voter.campaign.config.study
    if participation is None or not study.platform.person:
        return False
    participation.outcome = participation.outcome or completion.outcome_of_leaving(voter, Outcome.WITHDRAWN)
    return _earns(participation, study)


def _earns(participation: Participation, study: Study) -> bool:
    if not participation.outcome:
        return True
    return (
        bool(participation.bonus)
        or study.paid(participation.outcome, participation.voter.votes_cast, participation.pay) is not Pay.NOTHING
    )


def mark_paid(campaign: Campaign, voter: Voter | None = None, *, by: User | None = None) -> int:
    """Note that everybody whose part has ended is paid, or one of them; return how many that were."""
    ended = Participation.objects.filter(campaign=campaign, participant__isnull=False, paid_at=None).exclude(outcome="")
    if voter is not None:
        ended = ended.filter(voter=voter)
    with transaction.atomic():
        count = ended.update(paid_at=timezone.now())
        if count:
            events.note(campaign.pk, events.Kind.PAID, by, {"people": count})
    return count


def unsettled(campaign: Campaign) -> int:
    """Return how many people whose part has ended nobody has said to be paid."""
    participations = Participation.objects.filter(campaign=campaign, participant__isnull=False).exclude(outcome="")
    return len(owed(campaign, list(participations.values_list("voter", flat=True))))


def tables_of_people(campaign: Campaign) -> Iterator[tuple[tables.Table, Iterator[Row]]]:
    """Yield the tables of a campaign's people, each with its rows, where a platform has sent some."""
    if Participation.objects.filter(campaign=campaign).exists():
        numbers = numbers_in(campaign)
        yield tables.VOTERS, _voters(campaign, numbers)
        yield tables.LEASES, _leases(campaign, numbers)
        yield tables.CHECKS, _checks(campaign, numbers)


def consents(campaign: Campaign) -> Iterator[Happened]:
    """Yield what each person answered who was asked to agree to a text."""
    participations = Participation.objects.filter(campaign=campaign).values_list("voter", "consents")
    for voter, given in participations:
        for each in given:
            said = {"version": each["version"], "agreed": each["agreed"]}
            yield datetime.fromisoformat(each["at"]), "consent-answered", voter, said


def answers(campaign: Campaign) -> Iterator[tuple[str, ...]]:
    """Yield the header and a row for what each person answered about themselves, in the order in which that was given,
    by the numbers of the record.
    """
    yield ("voter", "question", "answer", "answered_at")
    numbers = numbers_in(campaign)
    participations = Participation.objects.filter(campaign=campaign).exclude(answers={}).values_list("voter", "answers")
    found = [(each["at"], who, name, each["answer"]) for who, given in participations for name, each in given.items()]
    for at, who, name, answer in sorted(found):
        yield str(numbers[who]), name, sampler.escaped(answer), sampler.moment(datetime.fromisoformat(at))


def _voters(campaign: Campaign, numbers: dict[int, int]) -> Iterator[Row]:
    most = campaign.config.study.max_votes_per_minute
    fast = fast_votes(campaign.voters.all(), most)
    found = Participation.objects.filter(campaign=campaign).select_related("voter").order_by("voter")
    for participation in found.iterator(chunk_size=_AT_A_TIME):
        yield tables.VOTERS.row(
            voter=numbers[participation.voter_id],
            joined_at=participation.voter.joined_at,
            removed_at=participation.voter.removed_at,
            stage=participation.stage,
            outcome=participation.outcome,
            finished_at=participation.finished_at,
            max_votes_per_minute=most,
            fast_votes=None if most is None else fast[participation.voter_id],
        )


def _leases(campaign: Campaign, numbers: dict[int, int]) -> Iterator[Row]:
    asked = Lease.objects.filter(voter__campaign=campaign).order_by("issued_at", "key")
    # A vote has the key of its lease.
    hidden = Vote.objects.filter(key=OuterRef("key")).values("hidden_ms")[:1]
    rows = asked.values(
        *("voter", "key", "proposal_side", "issued_at", "ended_at", "ending"),
        chain_index=F("comparison__chain__index"),
        step=F("comparison__step"),
        judge_index=F("judge__index"),
        hidden_ms=Subquery(hidden),
    )
    for row in rows.iterator(_AT_A_TIME):
        voter, key = numbers[row.pop("voter")], row.pop("key")
        # With the key of a pair that is on somebody's screen, that pair is answered.
        yield tables.LEASES.row(voter=voter, lease=str(key) if row["ending"] else "", **row)


def _checks(campaign: Campaign, numbers: dict[int, int]) -> Iterator[Row]:
    found = AttentionCheck.objects.filter(participation__campaign=campaign).select_related("participation")
    found = found.select_related("lease__comparison__chain", "lease__judge")
    # A vote has the key of its lease.
    answer = Vote.objects.filter(key=OuterRef("lease")).values("chosen_side")[:1]
    tells_answers = campaign.status == Campaign.Status.FINISHED
    for check in found.annotate(voted_side=Subquery(answer)).order_by("shown_at", "key").iterator(_AT_A_TIME):
        repeated = check.lease if check.kind == AttentionCheck.Kind.REPEAT else None
        # Whoever knows the right answers passes.
        is_told = tells_answers or check.kind != AttentionCheck.Kind.GOLD
        yield tables.CHECKS.row(
            voter=numbers[check.participation.voter_id],
            after_votes=check.after_votes,
            kind=check.kind,
            gold_index=check.gold,
            swapped=check.is_swapped,
            expected_side=check.expected_side if is_told else "",
            chosen_side=check.chosen_side,
            passed=check.is_passed if is_told else None,
            agreed=check.agrees_with(check.voted_side),
            chain_index=repeated and repeated.comparison.chain.index,
            step=repeated and repeated.comparison.step,
            judge_index=repeated and repeated.judge.index,
            elapsed_ms=check.elapsed_ms,
            shown_at=check.shown_at,
            answered_at=check.answered_at,
        )
