"""What a campaign will take, before it starts; and a pilot, after which that is known better."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from prefmh_web.accounts.roles import SignedInRequest, is_researcher
from prefmh_web.campaigns.errors import NotPossible
from prefmh_web.campaigns.lifecycle.access import Right
from prefmh_web.campaigns.models import Campaign
from prefmh_web.console import planning
from prefmh_web.console.estimates import estimates_of
from prefmh_web.console.forms.planning import PlanForm, pilot_form
from prefmh_web.console.planned import planned
from prefmh_web.console.views.campaigns import campaign_for, posts_by_user, told
from prefmh_web.participants.recruiting import recruitment_of
from prefmh_web.setup import pilot


@login_required
@require_safe
def plan(request: SignedInRequest, campaign_id: int) -> HttpResponse:
    """Show what a campaign will take; the page asks for the table again when a number changes."""
    campaign = campaign_for(request, campaign_id, Right.OWN)
    if campaign.unreadable:
        return redirect(campaign)
    recruitment, seats = recruitment_of(campaign), campaign.parsed_recipe.seats
    seen = planning.pilot_of(campaign)
    form = PlanForm(request.GET, recruitment=recruitment, seats=seats, has_pilot=seen is not None)
    found = planned(campaign, form, seen, recruitment) if form.is_valid() else None
    context = {"campaign": campaign, "form": form, "plan": found, "pilot": seen, "may_own": True}
    if request.headers.get("HX-Request"):
        return render(request, "console/_plan.html", context)
    context |= {
        "estimates": estimates_of(campaign),
        "pilot_form": pilot_form(campaign),
        "no_pilot": pilot.refusal(campaign),
        "pilots": campaign.pilots.order_by("pk"),
    }
    return render(request, "console/plan.html", context)


@login_required
@require_POST
@posts_by_user
def run_pilot(request: SignedInRequest, campaign_id: int) -> HttpResponse:
    """Make a pilot of a draft."""
    campaign = campaign_for(request, campaign_id, Right.OWN)
    if not is_researcher(request.user):
        return render(request, "console/researchers_only.html", status=403)
    form = pilot_form(campaign, request.POST)
    if not form.is_valid():
        problems = [f"{form.fields[name].label}: {' '.join(map(str, found))}" for name, found in form.errors.items()]
        messages.error(request, f"{' '.join(problems)} No pilot was made.")
        return redirect("console:plan", campaign.pk)
    try:
        made: Campaign = pilot.make(campaign, request.user, **form.cleaned_data)
    except NotPossible as reason:
        return told(request, campaign, reason)
    messages.info(request, f"“{made.name}” is a draft. Start it and send its link to a few people.")
    return redirect(made)
