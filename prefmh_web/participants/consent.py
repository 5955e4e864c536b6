"""What people agree to before they take part. Each version of the text is kept under its hash; a new one asks again."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from prefmh_web.campaigns.models import Annotator, Campaign
from prefmh_web.config import Study
from prefmh_web.participants.models import Consent, ConsentText, Participation


@dataclass(frozen=True)
class Answer:
    """What somebody answered, to which version of the text."""

    version: str
    agrees: bool


def version_of(text: str) -> str:
    """Return what names a text: its SHA-256, in 64 hexadecimal digits."""
    return hashlib.sha256(text.encode()).hexdigest()


def keep(campaign: Campaign) -> None:
    """Keep the text that is asked for now, for those who will have agreed to it."""
    if text := campaign.config.study.consent:
        ConsentText.objects.get_or_create(campaign=campaign, version=version_of(text), defaults={"text": text})


def is_of_now(version: str, study: Study) -> bool:
    """True if a version is the text of now."""
    return bool(study.consent) and version == version_of(study.consent)


def is_needed(annotator: Annotator | None, study: Study) -> bool:
    """True if somebody must agree to the text of now before they go on; of nobody, if there is one."""
    if not study.consent:
        return False
    if annotator is None:
        return True
    given = Consent.objects.filter(participation__annotator=annotator).order_by("-pk").values_list("version", "agreed")
    version, agreed = given.first() or ("", False)
    return not (agreed and is_of_now(version, study))


def was_given(annotator: Annotator) -> bool:
    """True if somebody has agreed to any version of the text."""
    return Consent.objects.filter(participation__annotator=annotator, agreed=True).exists()


def note(annotator: Annotator, answer: Answer) -> bool:
    """Store what somebody answered, unless they have said so before, and return whether they agree."""
    participation = Participation.objects.get(annotator=annotator)
    last = Consent.objects.filter(participation=participation).order_by("-pk").first()
    if last is None or (last.version, last.agreed) != (answer.version, answer.agrees):
        Consent.objects.create(participation=participation, version=answer.version, agreed=answer.agrees)
    return answer.agrees


def answer_in(fields: Mapping[str, str]) -> Answer | None:
    """Read an answer from a form; None if there is none."""
    said = fields.get("consent")
    return Answer(fields.get("version", ""), said == "agree") if said in ("agree", "refuse") else None
