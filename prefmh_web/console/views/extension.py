"""Extending a started campaign."""

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.views.decorators.http import require_POST

from prefmh_web.accounts.roles import SignedInRequest
from prefmh_web.campaigns.errors import NotPossible
from prefmh_web.campaigns.lifecycle import extension
from prefmh_web.campaigns.lifecycle.access import Right
from prefmh_web.console.forms.extension import ExtensionFields
from prefmh_web.console.views.campaigns import back_to_setup, campaign_for, posts_by_user, told_at_setup


@login_required
@require_POST
@posts_by_user
def extend(request: SignedInRequest, campaign_id: int) -> HttpResponse:
    """Let each chain of a started campaign walk further steps."""
    campaign = campaign_for(request, campaign_id, Right.OWN)
    form = ExtensionFields(request.POST)
    if not form.is_valid():
        problems = " ".join(map(str, form.errors["steps"]))
        messages.error(request, f"{form.fields['steps'].label}: {problems} Nothing was changed.")
        return back_to_setup(campaign)
    try:
        extension.extend(campaign, form.cleaned_data["steps"], request.user)
    except NotPossible as reason:
        return told_at_setup(request, campaign, reason)
    is_paused = campaign.status == campaign.Status.PAUSED
    length = campaign.parsed_recipe.steps
    messages.info(request, f"Each chain walks {length} steps now.{' Press Resume to go on.' if is_paused else ''}")
    return back_to_setup(campaign)
