"""What people agree to before they take part. Each version of the text is an event under its hash; a new one asks
again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from django.db.models import QuerySet
from django.utils import timezone

from prefmh_web.campaigns import events
from prefmh_web.campaigns.models import Campaign, Event, Voter
from prefmh_web.config import Study
from prefmh_web.participants.models import Participation


@dataclass(frozen=True)
class Answer:
    """What somebody answered, to which version of the text."""

    version: str
    agrees: bool


def version_of(text: str) -> str:
    """Return what names a text: its SHA-256, in 64 hexadecimal digits."""
    return hashlib.sha256(text.encode()).hexdigest()


def keep(campaign: Campaign) -> None:
    """Keep the text that a started campaign asks for now, for those who will have agreed to it; each text once."""
    text = campaign.config.study.consent
    said = {"version": version_of(text), "wording": text}
    if text and not texts(campaign.pk).filter(data__version=said["version"]).exists():
        events.note(campaign.pk, events.Kind.CONSENT_ASKED, said=said)


def texts(campaign: int) -> QuerySet[Event]:
    """Return the events with the texts that people of a campaign were asked to agree to, the first text first."""
    return Event.objects.filter(campaign=campaign, kind=events.Kind.CONSENT_ASKED)


def text_of(study: Study) -> str:
    """Return what people are asked to agree to; empty where nobody is told apart, whose answer could be stored."""
    return study.consent if study.platform.knows_people else ""


def is_of_now(version: str, study: Study) -> bool:
    """True if a version is the text of now."""
    return bool(text_of(study)) and version == version_of(study.consent)


def is_needed(voter: Voter | None, study: Study) -> bool:
    """True if somebody must agree to the text of now before they go on; of nobody, if there is one."""
    if not text_of(study):
        return False
    if voter is None:
        return True
    given = Participation.objects.filter(voter=voter).values_list("consents", flat=True).first()
    return not (given and given[-1]["agreed"] and is_of_now(given[-1]["version"], study))


def note(voter: Voter, answer: Answer) -> None:
    """Store what somebody answered, unless that is their last answer. Within a transaction."""
    participation = Participation.objects.select_for_update(no_key=True).get(voter=voter)
    last = participation.consents[-1] if participation.consents else {}
    said = {"version": answer.version, "agreed": answer.agrees}
    if said != {name: last.get(name) for name in said}:
        participation.consents.append(said | {"at": timezone.now().isoformat()})
        participation.save(update_fields=["consents"])


def answer_in(fields: Mapping[str, str]) -> Answer | None:
    """Read an answer from a form; None if there is none."""
    said = fields.get("consent")
    return Answer(fields.get("version", ""), said == "agree") if said in ("agree", "refuse") else None
