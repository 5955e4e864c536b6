"""Changing what a started campaign's models may take."""

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.views.decorators.http import require_POST

from prefmh_web.accounts.roles import SignedInRequest
from prefmh_web.campaigns.errors import NotPossible
from prefmh_web.campaigns.lifecycle import caps
from prefmh_web.campaigns.lifecycle.access import Right
from prefmh_web.console.forms.caps import CapFields
from prefmh_web.console.views.campaigns import back_to_setup, campaign_for, posts_by_user, told_at_setup


@login_required
@require_POST
@posts_by_user
def change(request: SignedInRequest, campaign_id: int) -> HttpResponse:
    """Give a started campaign other caps."""
    campaign = campaign_for(request, campaign_id, Right.OWN)
    form = CapFields(request.POST)
    if not form.is_valid():
        for name, problems in form.errors.items():
            messages.error(request, f"{form.fields[name].label}: {' '.join(map(str, problems))} Nothing was changed.")
        return back_to_setup(campaign)
    try:
        caps.change(campaign, request.user, **form.cleaned_data)
    except NotPossible as reason:
        return told_at_setup(request, campaign, reason)
    is_paused = campaign.status == campaign.Status.PAUSED
    messages.info(request, f"The caps are changed.{' Press Resume to go on.' if is_paused else ''}")
    return back_to_setup(campaign)
