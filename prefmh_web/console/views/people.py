"""The people of a campaign: how they come and what they are asked, who they are, their pay, and forgetting them; and
who may come: the links by which people vote, the members who may see a campaign, and its panelists.

Managers see who takes part; only the owner sees how platforms name them, and changes what is asked and paid.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from typing import Any

from django import forms
from django.contrib import messages
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse, QueryDict, StreamingHttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.template.defaultfilters import pluralize

from prefmh_web.accounts.roles import SignedInRequest
from prefmh_web.campaigns.lifecycle import access, changes
from prefmh_web.campaigns.lifecycle.access import Right
from prefmh_web.campaigns.models import Annotator, Campaign, EndReason, Invitation, Membership, NotPossible
from prefmh_web.campaigns.models.people import key_of
from prefmh_web.campaigns.monitoring.judging import panelists_of
from prefmh_web.campaigns.record import export
from prefmh_web.config import Outcome
from prefmh_web.console.forms.pages import BonusForm, ErasureForm, ExclusionForm, ForceForm, PeopleForm
from prefmh_web.console.forms.study_forms import ParticipantsForm, ProtocolForm
from prefmh_web.console.views import common
from prefmh_web.participants import attention, completion, erasure, limits, payments
from prefmh_web.participants.models import Participation
from prefmh_web.participants.people import Person, people_of, person_of
from prefmh_web.recruiters import RECRUITERS
from prefmh_web.transport.bodies import stream

_A_PAGE = 100


@common.campaign_page(Right.RUN)
def people(request: SignedInRequest, campaign: access.SeenCampaign) -> HttpResponse:
    """Show who takes part, in the order and with the limits of the address."""
    form, everybody = PeopleForm(request.GET), people_of(campaign)
    pages = Paginator(form.shown(everybody), _A_PAGE)
    gold = attention.answers_in(campaign)
    shown: dict[str, Any] = {
        "form": form,
        "panel": campaign.has_panel,
        "all": len(everybody),
        "page": pages.get_page(request.GET.get("page")),
        "gold": gold,
        "gold_alike": attention.share_alike(gold),
        "most_a_minute": campaign.config.study.most_a_minute,
    }
    return common.page(request, campaign, "console/people.html", 200 if form.is_valid() else 400, **shown)


@common.campaign_page(Right.RUN)
def person(request: SignedInRequest, campaign: access.SeenCampaign, voter: int) -> HttpResponse:
    """Show one of them."""
    return _shown(request, campaign, _annotator(campaign, voter))


@common.campaign_action(Right.RUN, "person")
def end(request: SignedInRequest, campaign: access.SeenCampaign, voter: int) -> HttpResponse | str:
    """End somebody's part."""
    annotator = _annotator(campaign, voter)
    form = ExclusionForm(request.POST, person=person_of(annotator))
    if not form.is_valid():
        return _shown(request, campaign, annotator, end=form)
    if form.cleaned_data.get("with_link") and annotator.invitation:
        # First: nobody comes back in between.
        access.revoke(annotator.invitation)
    reason, text = EndReason(form.cleaned_data["reason"]), form.cleaned_data["text"]
    completion.exclude(annotator, request.user, reason, text, is_paid=form.cleaned_data.get("is_paid") == "yes")
    return _ended(request, person_of(annotator))


@common.campaign_action(Right.OWN, "person")
def bonus(request: SignedInRequest, campaign: access.SeenCampaign, voter: int) -> HttpResponse | str:
    """Store what somebody is paid beside the pay."""
    annotator, form = _annotator(campaign, voter), BonusForm(request.POST)
    if not form.is_valid():
        return _shown(request, campaign, annotator, bonus=form)
    payments.set_bonus(annotator, form.cleaned_data["bonus"], by=request.user)
    return "Saved."


def _annotator(campaign: Campaign, voter: int) -> Annotator:
    return get_object_or_404(campaign.annotators.select_related("invitation"), pk=key_of(campaign, voter))


def _shown(
    request: SignedInRequest, campaign: access.SeenCampaign, annotator: Annotator, **wrong: forms.Form
) -> HttpResponse:
    """Show one person; `wrong` are forms that could not be read, by their names."""
    found = person_of(annotator)
    part, study = found.part, campaign.config.study
    exclusion = completion.exclusion_of(annotator)
    blank = {
        "end": ExclusionForm(person=found),
        "bonus": BonusForm(initial={"bonus": part and part.bonus}),
        "erase": ErasureForm(has_id=found.has_id),
    }
    shown: dict[str, Any] = {
        "person": found,
        "pay": study.paid_to(part, found.votes) if part and part.outcome else None,
        "exclusion": exclusion,
        "exclusion_reason": exclusion and EndReason(exclusion.data["reason"]).label,
        "is_owed": bool(payments.owed(campaign, [annotator.pk])),
        "has_code": bool(study.codes.get(Outcome.ENDED)),
        "forms": blank | wrong,
    }
    return common.page(request, campaign, "console/person.html", **shown)


def _ended(request: HttpRequest, ended: Person) -> str:
    """Return that somebody's part is ended; warn of what that does not change."""
    if ended.outcome and ended.outcome is not Outcome.ENDED:
        stays = f"The part of person {ended.number} had ended before: {ended.outcome.label}. That stays, with its pay."
        messages.warning(request, f"{stays} They can vote no more.")
        return ""
    link = Invitation.objects.filter(annotators=ended.annotator).first()
    if link and link.admits_anybody and ended.part is None:
        messages.warning(
            request,
            "The link that they used is still open, so they can join again from another browser. You can close it "
            "on the campaign's page “Setup”, under “Links for voters”.",
        )
    return f"The part of person {ended.number} is ended. Their votes are kept."


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
        "places": study.places,
        "placed": limits.held(campaign, study).count(),
        "spending": limits.spending_of(campaign),
        "asks_about_person": bool(study.protocol.questions),
        "ended": parts.exclude(outcome="").count(),
        "unpaid": payments.unsettled(campaign),
        "waiting": erasure.waiting_in(campaign),
        "force": ForceForm(),
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


@common.campaign_action(Right.OWN, "person")
def erase(request: SignedInRequest, campaign: access.SeenCampaign, voter: int) -> HttpResponse | str:
    """Forget somebody."""
    annotator = _annotator(campaign, voter)
    form = ErasureForm(request.POST, has_id=person_of(annotator).has_id)
    if not form.is_valid():
        return _shown(request, campaign, annotator, erase=form)
    scope = erasure.Scope(form.cleaned_data.get("scope") or erasure.Scope.PARTICIPATION)
    if erasure.erase(annotator, scope, is_forced=form.cleaned_data.get("is_forced", False)):
        return f"Nothing says any more who person {voter} is. Their votes are kept."
    return f"The part of person {voter} is over. Their data are deleted as soon as you say that they are paid."


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
def settle(request: SignedInRequest, campaign: Campaign) -> str:
    """Note that everybody whose part has ended is paid."""
    count = payments.settle(campaign, by=request.user)
    return f"{count} more {pluralize(count, 'person is,people are')} noted as paid."


@common.campaign_action(Right.OWN, "person")
def settle_one(request: SignedInRequest, campaign: Campaign, voter: int) -> str:
    """Note that somebody is paid."""
    if not payments.settle(campaign, _annotator(campaign, voter), by=request.user):
        raise NotPossible("Nothing was noted: their part goes on, or they were noted as paid before.")
    return "Noted as paid."


@common.campaign_action(Right.RUN)
def invite(request: HttpRequest, campaign: Campaign) -> str:
    """Make another link; for one person if the field `single_use` is there."""
    access.invite(campaign, is_single_use="single_use" in request.POST)
    return ""


@common.campaign_action(Right.RUN)
def revoke(request: SignedInRequest, campaign: Campaign, invitation_id: int) -> str:
    """Withdraw a link; with the field `withdraw`, also the access of those who joined by it."""
    invitation = get_object_or_404(campaign.invitations, pk=invitation_id)
    if "withdraw" in request.POST:
        completion.exclude_all(invitation, request.user)
        return "The link is closed. Everyone who joined with it is removed; their votes are kept."
    access.revoke(invitation)
    return "The link is closed. People who joined can go on."


class MemberForm(forms.Form):
    """Somebody with an account, and what they may do."""

    username = forms.CharField(max_length=150)
    role = forms.ChoiceField(choices=Membership.Role.choices)


@common.campaign_action(Right.OWN)
def add_member(request: HttpRequest, campaign: Campaign) -> str:
    """Add a member by user name, or change a member's role."""
    form = MemberForm(request.POST)
    if not form.is_valid():
        raise NotPossible("Enter the user name of an existing account and choose a permission.")
    member = access.add_member(campaign, form.cleaned_data["username"], form.cleaned_data["role"])
    return f"{member.user} {member.get_role_display()}."


@common.campaign_action(Right.OWN)
def remove_member(request: HttpRequest, campaign: Campaign, member_id: int) -> str:
    """Remove a member."""
    member = get_object_or_404(campaign.memberships.select_related("user"), pk=member_id)
    access.remove_member(member)
    return f"{member.user} no longer has access to this campaign."


@common.campaign_page(Right.RUN)
def panel(request: SignedInRequest, campaign: access.SeenCampaign) -> HttpResponse:
    """Show the panelists of a started campaign. Only the owner sees the names."""
    if campaign.is_draft or not campaign.config.panelists:
        raise Http404("This campaign has no panel, or has not started.")
    return common.page(request, campaign, "console/panel.html", panelists=panelists_of(campaign))


@common.campaign_action(Right.RUN, "panel")
def remind(request: HttpRequest, campaign: Campaign, number: int) -> str:
    """Note that a panelist was reminded."""
    if not campaign.judges.filter(panelist=number).exists():
        raise Http404("There is no such panelist.")
    access.remind(campaign, number)
    return f"Noted: panelist {number} was reminded."
