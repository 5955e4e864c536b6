"""A panel's page: who has joined, who holds up which chains, and the end of a panel that cannot go on."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from prefmh_web.accounts.roles import SignedInRequest
from prefmh_web.campaigns.lifecycle import access, panels
from prefmh_web.campaigns.lifecycle.access import Right
from prefmh_web.campaigns.monitoring.panel import panelists_of
from prefmh_web.console.views.campaigns import campaign_for, posts_by_user


@login_required
@require_safe
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


@login_required
@require_POST
@posts_by_user
def remind(request: HttpRequest, campaign_id: int, number: int) -> HttpResponse:
    """Note that a panelist was reminded."""
    campaign = campaign_for(request, campaign_id, Right.RUN)
    if not campaign.judges.filter(panelist=number).exists():
        raise Http404("There is no such panelist.")
    panels.remind(campaign, number)
    messages.info(request, f"Noted: panelist {number} was reminded.")
    return redirect("console:panel", campaign.pk)
