"""What the record holds of people whom a platform has sent: numbers of annotators, and nothing that names anybody."""

from __future__ import annotations

from collections.abc import Iterator

from prefmh_web.campaigns.models import Campaign
from prefmh_web.campaigns.record.rows import Row
from prefmh_web.participants.models import Consent, ConsentText, Participation
from sampler import schema

_AT_A_TIME = 500


def tables(campaign: Campaign) -> Iterator[tuple[str, Iterator[Row]]]:
    """Yield the files of a campaign's people, where a platform has sent some: names, headers and rows."""
    if not Participation.objects.filter(campaign=campaign).exists():
        return
    yield schema.ANNOTATORS.file, _annotators(campaign)
    if ConsentText.objects.filter(campaign=campaign).exists():
        yield schema.CONSENTS.file, _consents(campaign)
        yield schema.CONSENT_TEXTS.file, _texts(campaign)


def _annotators(campaign: Campaign) -> Iterator[Row]:
    yield schema.ANNOTATORS.header
    found = Participation.objects.filter(campaign=campaign).select_related("annotator").order_by("annotator")
    for part in found.iterator(chunk_size=_AT_A_TIME):
        yield schema.ANNOTATORS.row(
            annotator=part.annotator_id,
            joined_at=part.annotator.joined_at,
            removed_at=part.annotator.removed_at,
            outcome=part.outcome,
            finished_at=part.finished_at,
        )


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
