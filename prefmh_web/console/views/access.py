"""Who may come: the links by which people vote, the members who may see a campaign, and its panelists."""

from __future__ import annotations

from django import forms
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone

from prefmh_web.accounts.roles import SignedInRequest
from prefmh_web.campaigns.lifecycle import access
from prefmh_web.campaigns.lifecycle.access import Right
from prefmh_web.campaigns.models import Campaign, Membership
from prefmh_web.campaigns.monitoring.panel import panelists_of
from prefmh_web.console.views.common import (
    back_to_setup,
    campaign_action,
    campaign_for,
    get_page,
)
from prefmh_web.participants import completion


@campaign_action(Right.RUN)
def invite(request: HttpRequest, campaign: Campaign) -> HttpResponse:
    """Make another link; for one person if the field `single_use` is there."""
    access.invite(campaign, is_single_use="single_use" in request.POST)
    return back_to_setup(campaign)


@campaign_action(Right.RUN)
def revoke(request: SignedInRequest, campaign: Campaign, invitation_id: int) -> HttpResponse:
    """Withdraw a link; with the field `withdraw`, also the access of those who joined by it."""
    invitation = get_object_or_404(campaign.invitations, pk=invitation_id)
    if "withdraw" in request.POST:
        completion.exclude_all(invitation, request.user)
        people = "Everyone who joined with it is removed; their votes are kept."
    else:
        access.revoke(invitation)
        people = "People who joined can go on."
    messages.info(request, f"The link is closed. {people}")
    return back_to_setup(campaign)


class MemberForm(forms.Form):
    """Somebody with an account, and what they may do."""

    username = forms.CharField(max_length=150)
    role = forms.ChoiceField(choices=Membership.Role.choices)


@campaign_action(Right.OWN)
def add_member(request: HttpRequest, campaign: Campaign) -> HttpResponse:
    """Add a member by user name, or change a member's role."""
    form = MemberForm(request.POST)
    if not form.is_valid():
        messages.error(request, "Enter the user name of an existing account and choose a permission.")
        return back_to_setup(campaign)
    member = access.add_member(campaign, form.cleaned_data["username"], form.cleaned_data["role"])
    messages.info(request, f"{member.user} {member.get_role_display()}.")
    return back_to_setup(campaign)


@campaign_action(Right.OWN)
def remove_member(request: HttpRequest, campaign: Campaign, member_id: int) -> HttpResponse:
    """Remove a member."""
    member = get_object_or_404(campaign.memberships.select_related("user"), pk=member_id)
    access.remove_member(member)
    messages.info(request, f"{member.user} no longer has access to this campaign.")
    return back_to_setup(campaign)


@get_page
def panel(request: SignedInRequest, campaign_id: int) -> HttpResponse:
    """Show the panelists of a started campaign. Only the owner sees the names."""
    campaign = campaign_for(request, campaign_id, Right.RUN)
    if campaign.is_draft or not campaign.config.panelists:
        raise Http404("This campaign has no panel, or has not started.")
    context = {
        "campaign": campaign,
        "panelists": panelists_of(campaign),
        "now": timezone.now(),
        "site": request.build_absolute_uri("/").removesuffix("/"),
        "may_own": access.right_in(campaign, request.user) >= Right.OWN,
    }
    return render(request, "console/panel.html", context)


@campaign_action(Right.RUN)
def remind(request: HttpRequest, campaign: Campaign, number: int) -> HttpResponse:
    """Note that a panelist was reminded."""
    if not campaign.judges.filter(panelist=number).exists():
        raise Http404("There is no such panelist.")
    access.remind(campaign, number)
    messages.info(request, f"Noted: panelist {number} was reminded.")
    return redirect("console:panel", campaign.pk)
