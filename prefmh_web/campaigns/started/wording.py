"""The researcher's texts as a person reads them: in the language in which they judge."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache

from prefmh_web.campaigns.models import Annotator, Campaign, Translation


@dataclass(frozen=True)
class Words:
    """The texts of a campaign in one language.

    Args:
        texts: by the text in the campaign's first language; one that is missing is read as it stands there.
    """

    texts: Mapping[str, str] = field(default_factory=dict)

    def __call__(self, text: str) -> str:
        """Return a text of the first language in this one."""
        return self.texts.get(text, text)


AS_WRITTEN = Words()
"""In the campaign's first language."""


def language_of(annotator: Annotator) -> str:
    """Return the language in which somebody judges."""
    return annotator.language or annotator.campaign.language


def words_for(annotator: Annotator, campaign: Campaign) -> Words:
    """Return the texts of their campaign as somebody reads them."""
    return words_of(campaign, annotator.language or campaign.language)


def words_of(campaign: Campaign, language: str) -> Words:
    """Return the texts in one of the campaign's languages."""
    if language == campaign.language:
        return AS_WRITTEN
    if campaign.started_at is None:
        return _read(campaign.pk, language)
    return _remembered(campaign.pk, campaign.started_at, language)


def words_now(campaign: Campaign, language: str) -> Words:
    """Return the texts in one of the campaign's languages as they stand now: the debriefing may change after Start."""
    return AS_WRITTEN if language == campaign.language else _read(campaign.pk, language)


@lru_cache(maxsize=100)
def _remembered(campaign_id: int, _started_at: datetime, language: str) -> Words:
    # Started again under the same number, as tests do, it is another one.
    return _read(campaign_id, language)


def _read(campaign_id: int, language: str) -> Words:
    found = Translation.objects.filter(campaign=campaign_id, language=language).first()
    return AS_WRITTEN if found is None else Words(found.texts)
