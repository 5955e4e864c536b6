"""What a model judge of a setup would be sent, while the setup is written."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_POST

from prefmh_web.accounts.roles import SignedInRequest, is_researcher
from prefmh_web.campaigns.lifecycle.access import Right
from prefmh_web.console.previews import preview_of
from prefmh_web.console.views.campaigns import campaign_for
from prefmh_web.console.views.setup import form_of
from prefmh_web.transport import rate_limits


@login_required
@require_POST
@rate_limits.posts("previews", rate_limits.by_user)
def preview(request: SignedInRequest, campaign_id: int | None = None) -> HttpResponse:
    """Show the exact request of one question, as the fields of the setup stand. Nothing is stored, and nobody asked."""
    campaign = None if campaign_id is None else campaign_for(request, campaign_id, Right.OWN)
    if campaign is None and not is_researcher(request.user):
        return render(request, "console/researchers_only.html", status=403)
    form = form_of(request, campaign)
    shown = preview_of(form.asked_at(request.POST.get("place", "")), form.owner, campaign)
    return render(request, "console/_prompt_preview.html", {"preview": shown})
