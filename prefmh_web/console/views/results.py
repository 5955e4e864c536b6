"""What a campaign has brought: its samples, how their properties are spread, and how to describe the study."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_safe

from prefmh_web.accounts.roles import SignedInRequest
from prefmh_web.campaigns.models import Campaign
from prefmh_web.campaigns.monitoring.models import costs_of
from prefmh_web.campaigns.monitoring.results import figures_of, samples_in, shown_samples
from prefmh_web.console import methods
from prefmh_web.console.spreads import spreads_of
from prefmh_web.console.tabs import frame
from prefmh_web.console.views.campaigns import campaign_for

A_PAGE = 12


@login_required
@require_safe
def results(request: SignedInRequest, campaign_id: int) -> HttpResponse:
    """Show the results of a campaign, or those so far."""
    campaign = campaign_for(request, campaign_id)
    if campaign.is_draft:
        return redirect(campaign)
    page = Paginator(samples_in(campaign), A_PAGE).get_page(request.GET.get("page"))
    figures = figures_of(campaign)
    is_finished = campaign.status == Campaign.Status.FINISHED
    context = frame(request, campaign) | {
        "figures": figures,
        "page": page,
        "samples": shown_samples(campaign, [step.pk for step in page.object_list]),
        "as_table": request.GET.get("view") == "table",
        "kind": campaign.object_kind,
        "costs": costs_of(campaign),
        "is_finished": is_finished,
        "methods": methods.paragraph(campaign, figures) if is_finished else "",
        "citations": (methods.PAPER, methods.software()),
    }
    return render(request, "console/results.html", context)


@login_required
@require_safe
def properties(request: SignedInRequest, campaign_id: int) -> HttpResponse:
    """Show how the properties of the samples are spread: a part of the page that it loads after itself."""
    campaign = campaign_for(request, campaign_id)
    if campaign.is_draft:
        raise Http404("There are no samples yet.")
    return render(request, "console/_spreads.html", {"spreads": spreads_of(campaign)})
