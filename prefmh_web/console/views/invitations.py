"""The links by which people come to vote: made, and withdrawn, with the people who came by them or without."""

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.views.decorators.http import require_POST

from prefmh_web.accounts.roles import SignedInRequest
from prefmh_web.campaigns.errors import NotPossible
from prefmh_web.campaigns.lifecycle import access
from prefmh_web.campaigns.lifecycle.access import Right
from prefmh_web.console.views.campaigns import back_to_setup, campaign_for, posts_by_user, told_at_setup
from prefmh_web.participants import exclusion


@login_required
@require_POST
@posts_by_user
def create(request: HttpRequest, campaign_id: int) -> HttpResponse:
    """Make another link; for one person if the field `single_use` is there."""
    campaign = campaign_for(request, campaign_id, Right.RUN)
    try:
        access.invite(campaign, is_single_use="single_use" in request.POST)
    except NotPossible as reason:
        return told_at_setup(request, campaign, reason)
    return back_to_setup(campaign)


@login_required
@require_POST
@posts_by_user
def revoke(request: SignedInRequest, campaign_id: int, invitation_id: int) -> HttpResponse:
    """Withdraw a link; with the field `withdraw`, also the access of those who joined by it."""
    campaign = campaign_for(request, campaign_id, Right.RUN)
    invitation = get_object_or_404(campaign.invitations, pk=invitation_id)
    withdraw = "withdraw" in request.POST
    try:
        if withdraw:
            exclusion.exclude_all(invitation, request.user)
        else:
            access.revoke(invitation)
    except NotPossible as reason:
        return told_at_setup(request, campaign, reason)
    people = (
        "Everyone who joined with it is removed; their votes are kept." if withdraw else "People who joined can go on."
    )
    messages.info(request, f"The link is closed. {people}")
    return back_to_setup(campaign)
