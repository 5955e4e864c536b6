"""What the record holds of people beside their votes: their numbers in the campaign, and nothing that names anybody.

What they answered about themselves is a table for the owner alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from django.db.models import OuterRef, Subquery

import sampler
from prefmh_web.campaigns.models import Campaign, Lease, Vote
from prefmh_web.campaigns.record.rows import Happened, Row
from prefmh_web.campaigns.voters import numbers_in
from prefmh_web.participants.models import Check, Participation
from prefmh_web.participants.people import fast_votes
from sampler import tables

_AT_A_TIME = 500


def tables_of_people(campaign: Campaign) -> Iterator[tuple[tables.Table, Iterator[Row]]]:
    """Yield the tables of a campaign's people, each with its rows, where a platform has sent some."""
    if Participation.objects.filter(campaign=campaign).exists():
        numbers = numbers_in(campaign)
        yield tables.VOTERS, _voters(campaign, numbers)
        yield tables.LEASES, _leases(campaign, numbers)
        yield tables.CHECKS, _checks(campaign, numbers)


def consents(campaign: Campaign) -> Iterator[Happened]:
    """Yield what each person answered who was asked to agree to a text."""
    parts = Participation.objects.filter(campaign=campaign).values_list("annotator", "consents")
    for annotator, given in parts:
        for each in given:
            said = {"version": each["version"], "agreed": each["agreed"]}
            yield datetime.fromisoformat(each["at"]), "consent-answered", annotator, said


def answers(campaign: Campaign) -> Iterator[tuple[str, ...]]:
    """Yield the header and a row for what each person answered about themselves, in the order in which that was given.

    A table for the owner, by the numbers of the record. It is no part of the record, for it is personal data.
    """
    yield ("voter", "question", "answer", "answered_at")
    numbers = numbers_in(campaign)
    parts = Participation.objects.filter(campaign=campaign).exclude(answers={}).values_list("annotator", "answers")
    found = [(each["at"], who, name, each["answer"]) for who, given in parts for name, each in given.items()]
    for at, who, name, answer in sorted(found):
        yield str(numbers[who]), name, sampler.escaped(answer), sampler.moment(datetime.fromisoformat(at))


def _voters(campaign: Campaign, numbers: dict[int, int]) -> Iterator[Row]:
    most = campaign.config.study.most_a_minute
    fast = fast_votes(campaign.annotators.all(), most)
    found = Participation.objects.filter(campaign=campaign).select_related("annotator").order_by("annotator")
    for part in found.iterator(chunk_size=_AT_A_TIME):
        yield tables.VOTERS.row(
            voter=numbers[part.annotator_id],
            joined_at=part.annotator.joined_at,
            removed_at=part.annotator.removed_at,
            stage=part.stage,
            outcome=part.outcome,
            finished_at=part.finished_at,
            most_a_minute=most,
            fast_votes=None if most is None else fast[part.annotator_id],
        )


def _leases(campaign: Campaign, numbers: dict[int, int]) -> Iterator[Row]:
    asked = Lease.objects.filter(annotator__campaign=campaign).order_by("issued_at", "key")
    # A vote has the key of its lease.
    hidden = Vote.objects.filter(key=OuterRef("key")).values("hidden_ms")[:1]
    rows = asked.values_list(
        "annotator", "comparison__chain__place", "comparison__step", "judge__place", "proposal_side", "issued_at",
        "ended_at", "ending", "key", Subquery(hidden),
    )  # fmt: skip
    for voter, chain, step, judge, side, issued_at, ended_at, ending, key, hidden_ms in rows.iterator(_AT_A_TIME):
        yield tables.LEASES.row(
            voter=numbers[voter],
            chain_index=chain,
            step=step,
            judge_index=judge,
            proposal_side=side,
            issued_at=issued_at,
            ended_at=ended_at,
            ending=ending,
            # With the key of a pair that is on somebody's screen, that pair is answered.
            lease=str(key) if ending else "",
            hidden_ms=hidden_ms,
        )


def _checks(campaign: Campaign, numbers: dict[int, int]) -> Iterator[Row]:
    found = Check.objects.filter(participation__campaign=campaign).select_related("participation")
    found = found.select_related("lease__comparison__chain", "lease__judge")
    # A vote has the key of its lease.
    answer = Vote.objects.filter(key=OuterRef("lease")).values("chosen_side")[:1]
    tells_answers = campaign.status == Campaign.Status.FINISHED
    for check in found.annotate(voted_side=Subquery(answer)).order_by("shown_at", "key").iterator(_AT_A_TIME):
        repeated = check.lease if check.kind == Check.Kind.REPEAT else None
        # Whoever knows the right answers passes.
        is_told = tells_answers or check.kind != Check.Kind.GOLD
        yield tables.CHECKS.row(
            voter=numbers[check.participation.annotator_id],
            after_votes=check.after_votes,
            kind=check.kind,
            gold_index=check.gold,
            swapped=check.is_swapped,
            expected_side=check.expected_side if is_told else "",
            chosen_side=check.chosen_side,
            passed=check.is_passed if is_told else None,
            agreed=check.agrees_with(check.voted_side),
            chain_index=repeated and repeated.comparison.chain.place,
            step=repeated and repeated.comparison.step,
            judge_index=repeated and repeated.judge.place,
            elapsed_ms=check.elapsed_ms,
            shown_at=check.shown_at,
            answered_at=check.answered_at,
        )
