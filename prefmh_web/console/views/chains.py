"""All chains of a campaign, a page at a time: the first screen shows only some."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_safe

from prefmh_web.accounts.roles import SignedInRequest
from prefmh_web.campaigns.monitoring.progress import chains_of, heads_of
from prefmh_web.campaigns.started import started_campaign
from prefmh_web.console.answers import ANSWERS
from prefmh_web.console.tabs import frame
from prefmh_web.console.views.campaigns import campaign_for

A_PAGE = 24


@login_required
@require_safe
def chains(request: SignedInRequest, campaign_id: int) -> HttpResponse:
    """Show where the chains are."""
    campaign = campaign_for(request, campaign_id)
    if campaign.is_draft:
        return redirect(campaign)
    page = Paginator(chains_of(campaign), A_PAGE).get_page(request.GET.get("page"))
    context = frame(request, campaign) | {
        "within": campaign.get_absolute_url(),
        "page": page,
        "heads": heads_of(campaign, list(page)),
        "kind": campaign.object_kind,
        "answers": ANSWERS[started_campaign(campaign).config.rule.evidence],
    }
    return render(request, "console/chains.html", context)
