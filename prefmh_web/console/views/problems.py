"""What people have reported about pairs."""

from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from prefmh_web.campaigns.monitoring import steps
from prefmh_web.console.views.campaigns import campaign_for

_A_PAGE = 50


@login_required
@require_safe
def problems(request: HttpRequest, campaign_id: int) -> HttpResponse:
    """List the problems that people have reported, the latest first."""
    campaign = campaign_for(request, campaign_id)
    page = Paginator(steps.problems_in(campaign), _A_PAGE).get_page(request.GET.get("page"))
    found = steps.with_pairs(list(page))
    return render(request, "console/problems.html", {"campaign": campaign, "page": page, "problems": found})
