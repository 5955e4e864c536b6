"""The voting page as a setup would make it, beside the setup."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_POST

from prefmh_web.accounts.roles import SignedInRequest, is_researcher
from prefmh_web.campaigns.lifecycle.access import Right
from prefmh_web.console.forms import SetupForms
from prefmh_web.console.views.campaigns import campaign_for
from prefmh_web.console.voting_previews import voting_preview_of
from prefmh_web.transport import rate_limits

_TEMPLATE = "console/_voting_preview.html"


@login_required
@require_POST
def preview(request: SignedInRequest, campaign_id: int | None = None) -> HttpResponse:
    """Show what a voter would see, as the fields of the setup stand. Nothing is stored, and nobody asked."""
    campaign = None if campaign_id is None else campaign_for(request, campaign_id, Right.OWN)
    if campaign is None and not is_researcher(request.user):
        return render(request, "console/researchers_only.html", status=403)
    try:
        rate_limits.spend("previews", request.user.pk)
    except rate_limits.TooMany as reason:
        # It stands inside of the setup, where a whole page would have no place.
        answer = render(request, _TEMPLATE, {"wait": reason.retry_after}, status=429)
        answer["Retry-After"] = str(reason.retry_after)
        return answer
    shown = voting_preview_of(SetupForms(request, campaign), campaign)
    return render(request, _TEMPLATE, {"preview": shown})
