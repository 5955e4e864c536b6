"""The forms of a study: how people come and what they get, and what is asked of them beside votes."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from functools import cache
from typing import Any, ClassVar

from django.http import QueryDict
from django.template.loader import render_to_string
from pydantic import BaseModel
from pydantic import ValidationError as Refused
from pydantic.fields import FieldInfo

import sampler
from prefmh_web.campaigns.models import Campaign
from prefmh_web.config import CampaignConfig, Study
from prefmh_web.config.misfits import questions_of
from prefmh_web.console.forms.fields import Choices
from prefmh_web.console.forms.schema_form import SchemaForm
from prefmh_web.console.forms.setup_form import problems_on_page
from prefmh_web.recruiters import RECRUITERS

TEMPLATE = "consent template"
"""The button that fills in a text of consent to begin with."""


class _StudyForm(SchemaForm):
    """A part of a campaign's configuration that is about people.

    Args:
        campaign: whose it is.
        sent: what the browser sent.
    """

    at: ClassVar[str]
    """Where the part stands in the configuration."""
    config: CampaignConfig | None = None
    """The whole configuration with what was sent, once it is checked."""

    def __init__(self, campaign: Campaign, part: BaseModel, sent: QueryDict | None = None):
        self.campaign, self.typed = campaign, campaign.typed_config
        was = part.model_dump(mode="json")
        super().__init__(type(part), was, sent, is_fixed=not campaign.is_draft)

    def problems_of(self, value: dict[str, Any]) -> Iterator[sampler.ConfigProblem]:
        try:
            part = self.model.model_validate(value)
        except Refused as error:
            yield from sampler.problems_in(error, value)
            return
        study = part if isinstance(part, Study) else self.typed.study.model_copy(update={"protocol": part})
        config = self.typed.model_copy(update={"study": study})
        told = problems_on_page(self.typed, config, self.campaign.owner, self.is_here)
        told += [sampler.ConfigProblem(*each) for each in self.further(part)]
        if not told:
            self.config = config
        for problem in told:
            yield sampler.ConfigProblem(problem.path.removeprefix(f"{self.at}."), problem.message)

    def is_here(self, path: str) -> bool:
        """Return whether a path is one of this page's."""
        return path.startswith(f"{self.at}.")

    def further(self, part: Any) -> Iterator[tuple[str, str]]:
        """Yield what only this form refuses."""
        yield from ()


class ParticipantsForm(_StudyForm):
    """How people come to a campaign, how much each gives, and what they get."""

    at = "study"

    def __init__(self, campaign: Campaign, sent: QueryDict | None = None):
        others = Campaign.objects.filter(owner=campaign.owner_id).exclude(pk=campaign.pk).exclude(started_at=None)
        names = others.order_by("name").values_list("pk", "name")
        self._others: Choices = [({"number": number, "name": name}, name) for number, name in names]
        if sent is not None and sent.get("add") == TEMPLATE:
            sent = sent.copy()
            sent["consent"] = consent_template()
        super().__init__(campaign, campaign.typed_config.study, sent)

    def is_here(self, path: str) -> bool:
        return super().is_here(path) and not path.startswith("study.protocol.")

    def further(self, part: Study) -> Iterator[tuple[str, str]]:
        if left_open := left_open_in(part.consent):
            yield "consent", f"Fill in what stands in brackets, or take it out: {', '.join(left_open)}"

    def choices_of(self, name: str) -> Choices:
        return self._others if name == "own campaigns" else [(each.name, each.title) for each in RECRUITERS.values()]

    def declared_at(self, path: str, info: FieldInfo) -> FieldInfo | None:
        return None if path == "refused" and not (self._others or self.typed.study.refused) else info


class ProtocolForm(_StudyForm):
    """What is asked of people beside their votes."""

    at = "study.protocol"

    def __init__(self, campaign: Campaign, sent: QueryDict | None = None):
        self.takes_pairs = campaign.object_kind.medium == "words"
        super().__init__(campaign, campaign.typed_config.study.protocol, sent)

    def problems_of(self, value: dict[str, Any]) -> Iterator[sampler.ConfigProblem]:
        kind = sampler.OBJECT_KINDS[self.typed.space.objects]
        known = {each for pair in self.typed.study.protocol.own_pairs for each in (pair.first, pair.second)}
        for pair in (*value.get("practice", ()), *value.get("gold", ())):
            for side in ("first", "second"):
                if (typed := pair.get(side)) and typed not in known:
                    # What cannot be written is told with the rest.
                    with contextlib.suppress(ValueError):
                        pair[side] = kind.written(typed)
        yield from super().problems_of(value)

    def choices_of(self, name: str) -> Choices:
        return [*enumerate(questions_of(self.typed), start=1)]

    def declared_at(self, path: str, info: FieldInfo) -> FieldInfo | None:
        if path not in ("practice", "gold", "gold_share") or self.takes_pairs or self.typed.study.protocol.own_pairs:
            return info
        return None


@cache
def consent_template() -> str:
    """Return a text of consent to begin with, in Markdown; what is to be filled in stands in brackets."""
    return render_to_string("console/consent.md")


def left_open_in(text: str) -> list[str]:
    """Return the places of the template that nobody has filled in."""
    return [place for place in re.findall(r"\[[^\]]+\]", consent_template()) if place in text]
