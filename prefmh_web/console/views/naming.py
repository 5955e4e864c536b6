"""Giving a campaign another name."""

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.views.decorators.http import require_POST

from prefmh_web.accounts.roles import SignedInRequest
from prefmh_web.campaigns.errors import NotPossible
from prefmh_web.campaigns.lifecycle import naming
from prefmh_web.campaigns.lifecycle.access import Right
from prefmh_web.console.forms.naming import NameForm
from prefmh_web.console.views.campaigns import back_to_setup, campaign_for, posts_by_user, told_at_setup


@login_required
@require_POST
@posts_by_user
def rename(request: SignedInRequest, campaign_id: int) -> HttpResponse:
    """Give a campaign another name."""
    campaign, form = campaign_for(request, campaign_id, Right.OWN), NameForm(request.POST)
    if not form.is_valid():
        messages.error(request, f"Name: {' '.join(map(str, form.errors['name']))} Nothing was changed.")
        return back_to_setup(campaign)
    try:
        naming.rename(campaign, form.cleaned_data["name"], request.user)
    except NotPossible as reason:
        return told_at_setup(request, campaign, reason)
    messages.info(request, "The campaign has its new name.")
    return back_to_setup(campaign)
