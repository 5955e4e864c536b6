"""Whether the chains of a campaign have forgotten where they began."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_safe

from prefmh_web.accounts.roles import SignedInRequest
from prefmh_web.console.convergence import convergence_for
from prefmh_web.console.tabs import frame
from prefmh_web.console.views.campaigns import campaign_for


@login_required
@require_safe
def convergence(request: SignedInRequest, campaign_id: int) -> HttpResponse:
    """Show R-hat, effective sample sizes, traces and ranks of the properties that the address names."""
    campaign = campaign_for(request, campaign_id)
    if campaign.is_draft:
        return redirect(campaign)
    found = convergence_for(campaign, request.GET)
    context = frame(request, campaign) | {"convergence": found, "asked": request.GET.urlencode()}
    return render(request, "console/convergence.html", context, status=200 if found.form.is_valid() else 400)
