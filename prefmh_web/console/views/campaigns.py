"""The researcher's pages: list, watch, and change a campaign's state."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_POST, require_safe

import sampler
from prefmh_web.accounts.roles import SignedInRequest, is_researcher
from prefmh_web.campaigns import lifecycle
from prefmh_web.campaigns.lifecycle import access
from prefmh_web.campaigns.lifecycle.access import Right
from prefmh_web.campaigns.models import Campaign, State
from prefmh_web.campaigns.monitoring.steps import problems_in
from prefmh_web.campaigns.started import objects
from prefmh_web.console.board import board_for
from prefmh_web.console.estimates import asks_models
from prefmh_web.console.forms.changes import CapFields
from prefmh_web.console.forms.copies import PilotForm
from prefmh_web.console.tabs import frame
from prefmh_web.objects import media
from prefmh_web.participants.limits import estimate_of, spending_of
from prefmh_web.participants.recruiting import terms_of
from prefmh_web.setup import apply, copies
from prefmh_web.transport import rate_limits

A_PAGE = 50
posts_by_user = rate_limits.posts("forms", rate_limits.by_user)


def campaign_for(request: HttpRequest, campaign_id: int, right: Right = Right.WATCH) -> access.SeenCampaign:
    """Return a campaign in which the signed-in person has this right; 404 for everybody else."""
    found = access.campaigns_for(request.user, right).select_related("catalog", "owner")
    return get_object_or_404(found, pk=campaign_id)


def told(request: HttpRequest, campaign: Campaign, reason: lifecycle.NotPossible) -> HttpResponse:
    """Show on the campaign's page, or on the list where the campaign is no more, why a change was not possible."""
    messages.error(request, str(reason))
    return redirect("console:campaigns") if isinstance(reason, lifecycle.Deleted) else redirect(campaign)


def told_at_setup(request: HttpRequest, campaign: Campaign, reason: lifecycle.NotPossible) -> HttpResponse:
    """Show on the page with the setup, where the form stands that asked for it, why a change was not possible."""
    if isinstance(reason, lifecycle.Deleted):
        return told(request, campaign, reason)
    messages.error(request, str(reason))
    return back_to_setup(campaign)


def back_to_setup(campaign: Campaign) -> HttpResponse:
    """Go to the page that shows a campaign's setup, links and members: of a draft, its only one."""
    return redirect(campaign) if campaign.is_draft else redirect("console:edit", campaign.pk)


@login_required
@require_safe
def campaigns(request: HttpRequest) -> HttpResponse:
    """List the campaigns that the signed-in person may see: those that are archived, or the others."""
    is_archived = "archived" in request.GET
    found = access.campaigns_for(request.user).filter(archived_at__isnull=not is_archived)
    page = Paginator(found, A_PAGE).get_page(request.GET.get("page"))
    context = {"page": page, "is_archived": is_archived, "may_create": is_researcher(request.user)}
    return render(request, "console/campaigns.html", context)


@login_required
@require_safe
def campaign(request: SignedInRequest, campaign_id: int) -> HttpResponse:
    """Show a campaign live: a draft, or the first tab of one that has started."""
    found = campaign_for(request, campaign_id)
    context = frame(request, found)
    context |= {"board": board_for(found), "problems": problems_in(found).count(), "twin": apply.warning_of(found)}
    if context["may_run"] and found.is_under_way:
        context |= _invited(request, found)
    if context["may_own"] and found.is_under_way and found.paused_because and asks_models(found):
        context["caps"] = CapFields.of(found)
    if context["may_own"] and terms_of(found).may_be_paid_for:
        context["spending"] = spending_of(found, found.config.study)
    if context["may_own"] and found.is_draft:
        context |= _of_draft(found)
    return render(request, "console/draft.html" if found.is_draft else "console/overview.html", context)


def _of_draft(campaign: Campaign) -> dict[str, object]:
    """Return what people will be asked for, and the form of a pilot."""
    study = campaign.config.study
    estimate = estimate_of(campaign, study)
    money = None if estimate is None or estimate.money is None else Decimal(estimate.money)
    return {
        "estimate": estimate,
        "seconds_a_vote": sampler.SECONDS_A_VOTE,
        "votes_each": study.votes_each,
        "money": study.priced(money),
        "pilot_form": PilotForm(auto_id="pilot_%s") if copies.can_have_one(campaign) else None,
    }


def _invited(request: HttpRequest, campaign: Campaign) -> dict[str, object]:
    """Return the link to send to voters, if one is open, and where it is pasted."""
    found = campaign.invitations.filter(panelist__isnull=True, is_single_use=False, revoked_at__isnull=True)
    invitation = found.order_by("pk").first()
    platform = terms_of(campaign).recruiter
    link = invitation and platform.link(request.build_absolute_uri(invitation.get_absolute_url()))
    return {"invitation": invitation, "platform": platform, "link": link}


@login_required
@require_POST
@posts_by_user
def transition(request: HttpRequest, campaign_id: int, change: Callable[[Campaign], None]) -> HttpResponse:
    """Start, pause or resume a campaign, or end its warm-up."""
    campaign = campaign_for(request, campaign_id, Right.RUN)
    try:
        change(campaign)
    except lifecycle.NotPossible as reason:
        return told(request, campaign, reason)
    return redirect(campaign)


@login_required
@require_POST
@posts_by_user
def discard(request: HttpRequest, campaign_id: int) -> HttpResponse:
    """Delete a draft."""
    campaign = campaign_for(request, campaign_id, Right.OWN)
    try:
        lifecycle.discard(campaign)
    except lifecycle.NotPossible as reason:
        return told(request, campaign, reason)
    messages.info(request, f"“{campaign.name}” has been deleted.")
    return redirect("console:campaigns")


@login_required
@require_safe
def picture(request: HttpRequest, state_id: int) -> HttpResponse:
    """Send an object's picture to those who may see its campaign."""
    visible = State.objects.filter(campaign__in=access.campaigns_for(request.user).values("pk"))
    state = get_object_or_404(visible.select_related("campaign"), pk=state_id)
    return media.response(request, state.campaign.object_kind, objects.stored(state))
