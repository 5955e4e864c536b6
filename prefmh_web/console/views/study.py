"""How people come to a campaign, what is asked of them beside votes, and their pay."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import chain
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, QueryDict, StreamingHttpResponse
from django.shortcuts import redirect
from django.template.defaultfilters import pluralize
from django.template.loader import render_to_string
from pydantic.fields import FieldInfo

import sampler
from prefmh_web.accounts.models import SignedInRequest
from prefmh_web.campaigns.lifecycle import access, changes
from prefmh_web.campaigns.lifecycle.access import Right
from prefmh_web.campaigns.models import Campaign
from prefmh_web.campaigns.record import export
from prefmh_web.config import CampaignConfig, Protocol, Study, questions_of
from prefmh_web.console.forms.fields import Choices
from prefmh_web.console.forms.schema_form import SchemaForm
from prefmh_web.console.views import common
from prefmh_web.console.views.people import ForceForm
from prefmh_web.participants import attention, erasure, limits, payments
from prefmh_web.participants.models import Participation
from prefmh_web.recruiters import RECRUITERS
from prefmh_web.transport.bodies import stream

TEMPLATE = "consent template"
"""The button that fills in a text of consent to begin with."""


class ParticipantsForm(SchemaForm):
    """How people come to a campaign, how much each gives, and what they get."""

    at, elsewhere = "study.", ("study.protocol.",)
    before: CampaignConfig

    def __init__(self, campaign: Campaign, sent: QueryDict | None = None):
        others = Campaign.objects.filter(owner=campaign.owner_id).exclude(pk=campaign.pk).exclude(started_at=None)
        names = others.order_by("name").values_list("pk", "name")
        self._others: Choices = [({"number": number, "name": name}, name) for number, name in names]
        if sent is not None and sent.get("add") == TEMPLATE:
            sent = sent.copy()
            sent["consent"] = consent_template()
        study = campaign.typed_config.study
        super().__init__(Study, campaign, campaign.owner, study.model_dump(mode="json"), sent)

    def described(self, value: dict[str, Any]) -> dict[str, Any]:
        return self.before.model_dump(mode="json") | {"study": value}

    def further(self, config: CampaignConfig) -> Iterator[tuple[str, str]]:
        blanks = re.findall(r"\[[^\]]+\]", consent_template())
        if left_open := [each for each in blanks if each in config.study.consent]:
            yield "study.consent", f"Fill in what stands in brackets, or take it out: {', '.join(left_open)}"

    def choices_of(self, name: str) -> Choices:
        return self._others if name == "own campaigns" else [(each.name, each.title) for each in RECRUITERS.values()]

    def declared_at(self, path: str, info: FieldInfo) -> FieldInfo | None:
        return None if path == "refused" and not (self._others or self.before.study.refused) else info


class ProtocolForm(SchemaForm):
    """What is asked of people beside their votes."""

    at = "study.protocol."
    before: CampaignConfig

    def __init__(self, campaign: Campaign, sent: QueryDict | None = None):
        self.takes_pairs = campaign.object_kind.medium == "words"
        protocol = campaign.typed_config.study.protocol
        super().__init__(Protocol, campaign, campaign.owner, protocol.model_dump(mode="json"), sent)

    def described(self, value: dict[str, Any]) -> dict[str, Any]:
        kind = sampler.OBJECT_KINDS[self.before.space.objects]
        known = {each for pair in self.before.study.protocol.own_pairs for each in (pair.first, pair.second)}
        for pair in (*value.get("practice", ()), *value.get("gold", ())):
            for side in ("first", "second"):
                if (typed := pair.get(side)) and typed not in known:
                    # What cannot be written is told with the rest.
                    with contextlib.suppress(ValueError):
                        pair[side] = kind.written(typed)
        described = self.before.model_dump(mode="json")
        return described | {"study": described["study"] | {"protocol": value}}

    def choices_of(self, name: str) -> Choices:
        return [*enumerate(questions_of(self.before), start=1)]

    def declared_at(self, path: str, info: FieldInfo) -> FieldInfo | None:
        if path not in ("practice", "gold", "gold_share") or self.takes_pairs or self.before.study.protocol.own_pairs:
            return info
        return None


@cache
def consent_template() -> str:
    """Return a text of consent to begin with, in Markdown; what is to be filled in stands in brackets."""
    return render_to_string("console/consent.md")


@common.campaign_page(Right.OWN, method=common.form_page, back="campaign")
def participants(request: SignedInRequest, campaign: access.SeenCampaign) -> HttpResponse:
    """Set up how people come, and show how many have."""
    form, study = ParticipantsForm(campaign, _sent(request)), campaign.config.study
    if (done := _saved(request, campaign, form, {"protocol": "protocol"}, "participants")) is not None:
        return done
    parts = Participation.objects.filter(campaign=campaign)
    shown = common.invited(request, campaign) | {
        "form": form,
        "recruiters": [each for each in RECRUITERS.values() if each.help],
        "joined": parts.count(),
        "quota": study.quota,
        "placed": limits.held(campaign, study).count(),
        "spending": limits.spending_of(campaign),
        "asks_about_person": bool(study.protocol.questions),
        "ended": parts.exclude(outcome="").count(),
        "unpaid": payments.unsettled(campaign),
        "waiting": erasure.waiting_in(campaign),
        "force": ForceForm(auto_id="forget_%s"),
    }
    return common.page(request, campaign, "console/participants.html", **shown)


@common.campaign_page(Right.OWN, method=common.form_page, back="campaign")
def protocol(request: SignedInRequest, campaign: access.SeenCampaign) -> HttpResponse:
    """Set up what is asked of people beside their votes."""
    form, protocol = ProtocolForm(campaign, _sent(request)), campaign.config.study.protocol
    if (done := _saved(request, campaign, form, {"start": "campaign"}, "protocol")) is not None:
        return done
    taught, has_pairs = attention.states_among(protocol, campaign), bool(protocol.own_pairs)
    return common.page(request, campaign, "console/protocol.html", form=form, taught=taught, has_pairs=has_pairs)


def _sent(request: HttpRequest) -> QueryDict | None:
    return request.POST if request.method == "POST" else None


def _saved(
    request: SignedInRequest,
    campaign: Campaign,
    form: ParticipantsForm | ProtocolForm,
    following: Mapping[str, str],
    here: str,
) -> HttpResponse | None:
    """Save what was sent, and go to the page that follows; None where nothing was, or something is wrong with it."""
    if not (form.is_bound and form.is_valid() and form.config):
        return None
    changes.apply(campaign, form.config, request.user)
    messages.info(request, "Saved.")
    page = following.get(request.POST.get("next", ""), here)
    return redirect(f"console:{page}", campaign_id=campaign.pk)


_TABLES = {"payments.csv": payments.rows, "answers.csv": payments.answers}


@common.campaign_page(Right.OWN)
def table(request: HttpRequest, campaign: access.SeenCampaign, name: str) -> HttpResponse | StreamingHttpResponse:
    """Send payments.csv or answers.csv."""
    # Spreadsheets take a file without the mark for one in their own country's encoding.
    response = stream(lambda: chain(("\ufeff",), export.as_csv(_TABLES[name](campaign))), "text/csv; charset=utf-8")
    return common.attachment(request, response, f"campaign-{campaign.pk}-{name}")


@common.campaign_action(Right.OWN, "participants")
def forget(request: HttpRequest, campaign: Campaign) -> str:
    """Forget the people of a finished campaign."""
    form = ForceForm(request.POST)
    form.full_clean()
    gone, waiting = erasure.forget(campaign, is_forced=form.cleaned_data["is_forced"])
    if waiting:
        messages.warning(request, f"{waiting} more wait until you say that they are paid.")
    return f"The data of {gone} participant{pluralize(gone)} are deleted. The votes are kept."


@common.campaign_action(Right.OWN, "participants")
def mark_paid(request: SignedInRequest, campaign: Campaign) -> str:
    """Note that everybody whose part has ended is paid."""
    count = payments.mark_paid(campaign, by=request.user)
    return f"{count} more {pluralize(count, 'person is,people are')} noted as paid."
