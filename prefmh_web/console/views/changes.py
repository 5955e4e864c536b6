"""What an owner changes of a campaign that exists: its name, its caps, its length."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.views.decorators.http import require_POST

from prefmh_web.accounts.roles import SignedInRequest
from prefmh_web.campaigns.errors import NotPossible
from prefmh_web.campaigns.lifecycle import changes, extension
from prefmh_web.campaigns.lifecycle.access import Right
from prefmh_web.campaigns.models import Campaign
from prefmh_web.console.forms.changes import CapFields, ExtensionFields, NameForm
from prefmh_web.console.views.campaigns import back_to_setup, campaign_for, posts_by_user, told_at_setup

Change = Callable[[Campaign, dict[str, Any]], str]
"""Makes a change of what a form holds, and returns what to say of it."""


@login_required
@require_POST
@posts_by_user
def rename(request: SignedInRequest, campaign_id: int) -> HttpResponse:
    """Give a campaign another name."""

    def change(campaign: Campaign, fields: dict[str, Any]) -> str:
        changes.rename(campaign, fields["name"], request.user)
        return "The campaign has its new name."

    return _changed(request, campaign_id, NameForm(request.POST), change)


@login_required
@require_POST
@posts_by_user
def change_caps(request: SignedInRequest, campaign_id: int) -> HttpResponse:
    """Change what a started campaign's models may take."""

    def change(campaign: Campaign, fields: dict[str, Any]) -> str:
        caps = campaign.config.caps.model_copy(update={"cost": fields["cost_cap"], "requests": fields["request_cap"]})
        changes.apply(campaign, campaign.typed_config.model_copy(update={"caps": caps}), request.user)
        return f"The caps are changed.{_how_to_go_on(campaign)}"

    return _changed(request, campaign_id, CapFields(request.POST), change)


@login_required
@require_POST
@posts_by_user
def extend(request: SignedInRequest, campaign_id: int) -> HttpResponse:
    """Let each chain of a started campaign walk further steps."""

    def change(campaign: Campaign, fields: dict[str, Any]) -> str:
        extension.extend(campaign, fields["steps"], request.user)
        return f"Each chain walks {campaign.config.steps} steps now.{_how_to_go_on(campaign)}"

    return _changed(request, campaign_id, ExtensionFields(request.POST), change)


def _changed(request: SignedInRequest, campaign_id: int, form: forms.Form, change: Change) -> HttpResponse:
    """Make the change, or say why it was not made; then show the setup."""
    campaign = campaign_for(request, campaign_id, Right.OWN)
    if not form.is_valid():
        for name, problems in form.errors.items():
            messages.error(request, f"{form.fields[name].label}: {' '.join(map(str, problems))} Nothing was changed.")
        return back_to_setup(campaign)
    try:
        said = change(campaign, form.cleaned_data)
    except NotPossible as reason:
        return told_at_setup(request, campaign, reason)
    messages.info(request, said)
    return back_to_setup(campaign)


def _how_to_go_on(campaign: Campaign) -> str:
    return " Press Resume to go on." if campaign.status == campaign.Status.PAUSED else ""
