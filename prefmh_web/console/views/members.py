"""Who else may see a campaign: its owner adds members and removes them."""

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.views.decorators.http import require_POST

from prefmh_web.campaigns.errors import NotPossible
from prefmh_web.campaigns.lifecycle import access
from prefmh_web.campaigns.lifecycle.access import Right
from prefmh_web.campaigns.models import Membership
from prefmh_web.console.views.campaigns import back_to_setup, campaign_for, posts_by_user, told_at_setup


class MemberForm(forms.Form):
    """Somebody with an account, and what they may do."""

    username = forms.CharField(max_length=150)
    role = forms.ChoiceField(choices=Membership.Role.choices)


@login_required
@require_POST
@posts_by_user
def add(request: HttpRequest, campaign_id: int) -> HttpResponse:
    """Add a member by user name, or change a member's role."""
    campaign = campaign_for(request, campaign_id, Right.OWN)
    form = MemberForm(request.POST)
    if not form.is_valid():
        messages.error(request, "Enter the user name of an existing account and choose a permission.")
        return back_to_setup(campaign)
    try:
        member = access.add_member(campaign, form.cleaned_data["username"], form.cleaned_data["role"])
    except NotPossible as reason:
        return told_at_setup(request, campaign, reason)
    messages.info(request, f"{member.user} {member.get_role_display()}.")
    return back_to_setup(campaign)


@login_required
@require_POST
@posts_by_user
def remove(request: HttpRequest, campaign_id: int, member_id: int) -> HttpResponse:
    """Remove a member."""
    campaign = campaign_for(request, campaign_id, Right.OWN)
    member = get_object_or_404(campaign.memberships.select_related("user"), pk=member_id)
    access.remove_member(member)
    messages.info(request, f"{member.user} no longer has access to this campaign.")
    return back_to_setup(campaign)
