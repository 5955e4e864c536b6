"""What the record holds of people beside their votes: numbers of annotators, and nothing that names anybody."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.db.models import OuterRef, Subquery

from prefmh_web.campaigns.models import Campaign, Lease, Vote
from prefmh_web.campaigns.record import events
from prefmh_web.campaigns.record.rows import Row
from prefmh_web.participants import speed
from prefmh_web.participants.models import Check, Consent, ConsentText, Participation
from sampler import schema

_AT_A_TIME = 500


def tables(campaign: Campaign) -> Iterator[tuple[str, Iterator[Row]]]:
    """Yield the files of a campaign's people, where there are any: names, headers and rows."""
    yield schema.EVENTS.file, events.rows(campaign)
    if Participation.objects.filter(campaign=campaign).exists():
        yield from _of_people_sent(campaign)


def _of_people_sent(campaign: Campaign) -> Iterator[tuple[str, Iterator[Row]]]:
    yield schema.ANNOTATORS.file, _annotators(campaign)
    yield schema.LEASES.file, _leases(campaign)
    if Check.objects.filter(participation__campaign=campaign).exists():
        yield schema.CHECKS.file, _checks(campaign)
    if ConsentText.objects.filter(campaign=campaign).exists():
        yield schema.CONSENTS.file, _consents(campaign)
        yield schema.CONSENT_TEXTS.file, _texts(campaign)


def _annotators(campaign: Campaign) -> Iterator[Row]:
    most = speed.most_a_minute(campaign)
    fast, table = (
        speed.fast_votes(campaign.annotators.all(), most),
        schema.ANNOTATORS if most is None else schema.ANNOTATORS_WITH_SPEED,
    )
    yield table.header
    found = Participation.objects.filter(campaign=campaign).select_related("annotator").order_by("annotator")
    for part in found.iterator(chunk_size=_AT_A_TIME):
        flags = {} if most is None else {"most_a_minute": most, "fast_votes": fast[part.annotator_id]}
        yield table.row(
            annotator=part.annotator_id,
            joined_at=part.annotator.joined_at,
            removed_at=part.annotator.removed_at,
            stage=part.stage,
            outcome=part.outcome,
            finished_at=part.finished_at,
            **flags,
        )


def _leases(campaign: Campaign) -> Iterator[Row]:
    is_told = Vote.objects.filter(judge__campaign=campaign, hidden_ms__isnull=False).exists()
    table = schema.LEASES_WITH_HIDDEN if is_told else schema.LEASES
    yield table.header
    asked = Lease.objects.filter(annotator__campaign=campaign).order_by("issued_at", "key")
    columns = ("annotator", "comparison__chain__place", "comparison__step", "judge__place", "proposal_side")
    # A vote has the key of its lease.
    hidden = Vote.objects.filter(key=OuterRef("key")).values("hidden_ms")[:1]
    for annotator, chain, step, judge, side, issued_at, ended_at, ending, key, hidden_ms in asked.values_list(
        *columns, "issued_at", "ended_at", "ending", "key", Subquery(hidden)
    ).iterator(chunk_size=_AT_A_TIME):
        yield table.row(
            **({"hidden_ms": hidden_ms} if is_told else {}),
            annotator=annotator,
            chain=chain,
            step=step,
            judge=judge,
            proposal_side=side,
            issued_at=issued_at,
            ended_at=ended_at,
            ending=ending,
            # With the key of a pair that is on somebody's screen, that pair is answered.
            lease=str(key) if ending else "",
        )


def _checks(campaign: Campaign) -> Iterator[Row]:
    has_kinds = campaign.config.study.protocol.has_kinds
    table = schema.CHECKS_WITH_KINDS if has_kinds else schema.CHECKS
    yield table.header
    found = Check.objects.filter(participation__campaign=campaign).select_related("participation")
    found = found.select_related("lease__comparison__chain", "lease__judge")
    # A vote has the key of its lease.
    answer = Vote.objects.filter(key=OuterRef("lease")).values("chosen_side")[:1]
    for check in found.annotate(voted_side=Subquery(answer)).order_by("shown_at", "key").iterator(_AT_A_TIME):
        kinds = _kind_of(check, check.voted_side) if has_kinds else {}
        yield table.row(
            annotator=check.participation.annotator_id,
            after_votes=check.after_votes,
            expected_side=check.expected_side,
            chosen_side=check.chosen_side,
            passed=check.is_passed,
            elapsed_ms=check.elapsed_ms,
            shown_at=check.shown_at,
            answered_at=check.answered_at,
            **kinds,
        )


def _kind_of(check: Check, voted_side: str) -> dict[str, Any]:
    repeated = check.lease if check.kind == Check.Kind.REPEAT else None
    return {
        "kind": check.kind,
        "gold": check.gold,
        "swapped": check.is_swapped,
        "chain": repeated and repeated.comparison.chain.place,
        "step": repeated and repeated.comparison.step,
        "judge": repeated and repeated.judge.place,
        "agreed": check.agrees_with(voted_side),
    }


def _consents(campaign: Campaign) -> Iterator[Row]:
    yield schema.CONSENTS.header
    found = Consent.objects.filter(participation__campaign=campaign).select_related("participation").order_by("pk")
    for consent in found.iterator(chunk_size=_AT_A_TIME):
        yield schema.CONSENTS.row(
            annotator=consent.participation.annotator_id,
            version=consent.version,
            agreed=consent.agreed,
            answered_at=consent.answered_at,
        )


def _texts(campaign: Campaign) -> Iterator[Row]:
    yield schema.CONSENT_TEXTS.header
    for text in ConsentText.objects.filter(campaign=campaign).order_by("pk"):
        yield schema.CONSENT_TEXTS.row(version=text.version, first_used_at=text.first_used_at, text=text.text)
