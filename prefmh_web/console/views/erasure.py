"""Forgetting people, one of them or all of a campaign, and saying that they are paid."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.defaultfilters import pluralize
from django.views.decorators.http import require_POST

from prefmh_web.accounts.roles import SignedInRequest
from prefmh_web.campaigns.errors import NotPossible
from prefmh_web.campaigns.lifecycle.access import Right
from prefmh_web.console.forms.erasure import ErasureForm, ForceForm
from prefmh_web.console.views.campaigns import campaign_for, posts_by_user, told
from prefmh_web.console.views.people import found_by_owner, shown
from prefmh_web.participants import erasure, payments
from prefmh_web.participants.people import person_of


@login_required
@require_POST
@posts_by_user
def erase(request: SignedInRequest, campaign_id: int, voter: int) -> HttpResponse:
    """Forget somebody."""
    campaign, annotator = found_by_owner(request, campaign_id, voter)
    form = ErasureForm(request.POST, has_id=person_of(annotator).has_id)
    if not form.is_valid():
        return shown(request, campaign, annotator, erase=form)
    is_forced = form.cleaned_data.get("is_forced", False)
    if erasure.erase(annotator, form.scope_chosen, is_forced=is_forced):
        messages.info(request, f"Nothing says any more who person {voter} is. Their votes are kept.")
    else:
        messages.info(
            request,
            f"The part of person {voter} is over. Their data are deleted as soon as you say that they are paid.",
        )
    return redirect("console:person", campaign.pk, voter)


@login_required
@require_POST
@posts_by_user
def forget(request: HttpRequest, campaign_id: int) -> HttpResponse:
    """Forget the people of a finished campaign."""
    campaign, form = campaign_for(request, campaign_id, Right.OWN), ForceForm(request.POST)
    form.full_clean()
    try:
        gone, waiting = erasure.forget(campaign, is_forced=form.cleaned_data["is_forced"])
    except NotPossible as reason:
        return told(request, campaign, reason)
    messages.info(request, f"The data of {gone} participant{pluralize(gone)} are deleted. The votes are kept.")
    if waiting:
        messages.warning(request, f"{waiting} more wait until you say that they are paid.")
    return redirect("console:participants", campaign_id=campaign.pk)


@login_required
@require_POST
@posts_by_user
def settle(request: SignedInRequest, campaign_id: int) -> HttpResponse:
    """Note that everybody whose part has ended is paid."""
    campaign = campaign_for(request, campaign_id, Right.OWN)
    count = payments.settle(campaign, by=request.user)
    messages.info(request, f"{count} more {pluralize(count, 'person is,people are')} noted as paid.")
    return redirect("console:participants", campaign_id=campaign.pk)


@login_required
@require_POST
@posts_by_user
def settle_one(request: SignedInRequest, campaign_id: int, voter: int) -> HttpResponse:
    """Note that somebody is paid."""
    campaign, annotator = found_by_owner(request, campaign_id, voter)
    if payments.settle(campaign, annotator, by=request.user):
        messages.info(request, "Noted as paid.")
    else:
        messages.error(request, "Nothing was noted: their part goes on, or they were noted as paid before.")
    return redirect("console:person", campaign.pk, voter)
