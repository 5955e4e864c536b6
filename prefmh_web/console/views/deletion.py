"""Archiving a campaign, and deleting one that has started."""

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from prefmh_web.accounts.roles import SignedInRequest
from prefmh_web.campaigns.errors import NotPossible
from prefmh_web.campaigns.lifecycle import deletion
from prefmh_web.campaigns.lifecycle.access import Right
from prefmh_web.console.views.campaigns import campaign_for, posts_by_user, told_at_setup


@login_required
@require_POST
@posts_by_user
def archive(request: SignedInRequest, campaign_id: int, is_archived: bool) -> HttpResponse:
    """Take a campaign off the list, or put it back."""
    campaign = campaign_for(request, campaign_id, Right.OWN)
    try:
        deletion.archive(campaign, is_archived, request.user)
    except NotPossible as reason:
        return told_at_setup(request, campaign, reason)
    messages.info(request, "The campaign is archived." if is_archived else "The campaign is on the list again.")
    return redirect(campaign)


@login_required
@require_POST
@posts_by_user
def delete(request: SignedInRequest, campaign_id: int) -> HttpResponse:
    """Delete a campaign that has started, with all its data."""
    campaign = campaign_for(request, campaign_id, Right.OWN)
    try:
        deletion.request(campaign, request.POST.get("name", ""))
    except NotPossible as reason:
        return told_at_setup(request, campaign, reason)
    messages.info(request, f"“{campaign.name}” is being deleted, with its votes and its people.")
    return redirect("console:campaigns")
