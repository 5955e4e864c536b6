"""Which of the researcher's texts people read, and these texts in the further languages of a campaign.

A text is found by what it says in the campaign's first language. What was chosen among options is stored in that
language, too, so answers, places and right answers do not depend on the language that somebody reads.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain

from django.contrib.auth.models import User
from django.db import transaction

from prefmh_web.campaigns.errors import NotPossible
from prefmh_web.campaigns.lifecycle import events
from prefmh_web.campaigns.lifecycle.fixed import JUDGED_BY, Fixed
from prefmh_web.campaigns.lifecycle.status import lock_draft
from prefmh_web.campaigns.models import Campaign, CampaignEvent, Translation
from prefmh_web.campaigns.started import words_now, words_of
from prefmh_web.participants.models import Recruitment
from prefmh_web.participants.own_pairs import questions_of
from prefmh_web.participants.protocol import Protocol
from prefmh_web.settings.languages import local_name

_SHOWN = 60


@dataclass(frozen=True)
class Text:
    """A text of the researcher's that people read.

    Args:
        where: what it is, for the researcher.
        text: in the campaign's first language.
        is_long: it may have paragraphs.
    """

    where: str
    text: str
    is_long: bool = False

    @property
    def begin(self) -> str:
        """How it begins."""
        return self.text if len(self.text) <= _SHOWN else f"{self.text[:_SHOWN]}…"


def texts_of(campaign: Campaign, protocol: Protocol) -> list[Text]:
    """Return every text once, in the order in which people come to them. Consent is not among them: it may change
    after Start, and stands with `Recruitment`.
    """
    found = chain(_of_setup(campaign), _of_protocol(protocol))
    return list({each.text: each for each in reversed([each for each in found if each.text])}.values())[::-1]


def _of_setup(campaign: Campaign) -> Iterator[Text]:
    yield Text("Instructions for voters", campaign.instructions, is_long=True)
    for question in questions_of(campaign.parsed_recipe):
        yield Text("Question above a pair", question)
    for shown in campaign.parsed_recipe.context:
        yield Text("Label of a column shown with a pair", shown.label)


def _of_protocol(protocol: Protocol) -> Iterator[Text]:
    for question in protocol.questions:
        yield Text("Question about the person", question.text)
        for option in question.options:
            yield Text(f"Option of “{question.text}”", option)
    yield Text("Instructions", protocol.instructions, is_long=True)
    for pair in protocol.practice:
        yield Text("Practice: after a wrong answer", pair.if_wrong)
        yield Text("Practice: after a right answer", pair.if_right)
    for check in protocol.comprehension:
        yield Text("Question about the instructions", check.text)
        for option in check.options:
            yield Text(f"Option of “{check.text}”", option)
    yield Text("Debriefing", protocol.debriefing, is_long=True)


def set_translations(campaign: Campaign, given: Mapping[str, Mapping[str, str]], by: User | None = None) -> None:
    """Store a draft's texts in its further languages: for each language, by the text in the first one; of a started
    campaign, the debriefing.

    Raises:
        NotPossible: the campaign is deleted; or it has started, and another text would change: the message names it.
    """
    if not campaign.is_draft:
        _translate_debriefing(campaign, given, by)
        return
    with transaction.atomic():
        lock_draft(campaign.pk)
        for language, texts in given.items():
            Translation.objects.update_or_create(campaign=campaign, language=language, defaults={"texts": dict(texts)})


def _translate_debriefing(campaign: Campaign, given: Mapping[str, Mapping[str, str]], by: User | None) -> None:
    with transaction.atomic():
        # Locked, as a change of the debriefing locks it.
        recruitment = Recruitment.objects.select_for_update(no_key=True).filter(campaign=campaign).first()
        protocol = Protocol() if recruitment is None else recruitment.parsed_protocol
        for language, texts in given.items():
            known = words_now(campaign, language).texts
            for each in texts_of(campaign, protocol):
                if each.text != protocol.debriefing and texts.get(each.text, "") != known.get(each.text, ""):
                    raise NotPossible(f"{fixed_text(each, language).sentence} Nothing was saved.")
            written = texts.get(protocol.debriefing, "")
            if written != known.get(protocol.debriefing, ""):
                stored = dict(known) | {protocol.debriefing: written}
                defaults = {"texts": {text: translation for text, translation in stored.items() if translation}}
                Translation.objects.update_or_create(campaign=campaign, language=language, defaults=defaults)
                detail = {"changed": "debriefing", "language": language}
                events.note(campaign.pk, CampaignEvent.Kind.TRANSLATIONS_SET, by, **detail)


def fixed_text(text: Text, language: str) -> Fixed:
    """Return a translation as something that does not change after the start."""
    return Fixed(f"{text.where}: {text.begin} ({local_name(language)})", JUDGED_BY)


def demand_whole(campaign: Campaign, recruitment: Recruitment) -> None:
    """Demand that every text is there in every language that the campaign offers.

    Raises:
        NotPossible: one is not; the message says which one, and in which language.
    """
    for language in campaign.languages[1:]:
        if recruitment.consent and not recruitment.consents.get(language):
            raise NotPossible(f"Consent is missing in {local_name(language)}. Enter it on the page “Participants”.")
        known = words_of(campaign, language).texts
        for each in texts_of(campaign, recruitment.parsed_protocol):
            if each.text not in known:
                raise NotPossible(
                    f"A text is missing in {local_name(language)}: “{each.begin}” ({each.where}). Enter it on the page "
                    "“Languages”."
                )
