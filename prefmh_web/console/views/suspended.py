"""Steps that are suspended, and what a researcher does about them."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_POST, require_safe

from prefmh_web.accounts.roles import SignedInRequest
from prefmh_web.campaigns.engine import suspension
from prefmh_web.campaigns.errors import NotPossible
from prefmh_web.campaigns.lifecycle import access
from prefmh_web.campaigns.lifecycle.access import Right
from prefmh_web.campaigns.models import Campaign, Comparison
from prefmh_web.campaigns.monitoring.steps import suspended_in
from prefmh_web.console.forms.changes import EndForm
from prefmh_web.console.views.campaigns import campaign_for, posts_by_user


@login_required
@require_safe
def suspended(request: SignedInRequest, campaign_id: int) -> HttpResponse:
    """List the suspended steps, with what can be done about each."""
    return _shown(request, campaign_for(request, campaign_id))


@login_required
@require_POST
@posts_by_user
def try_again(request: HttpRequest, campaign_id: int, comparison_id: int) -> HttpResponse:
    """Let people be asked about a suspended step again."""
    campaign, comparison = _found(request, campaign_id, comparison_id)
    try:
        suspension.try_again(comparison.pk)
        messages.info(request, f"Step {comparison.step} of chain {comparison.chain.place} is asked again.")
    except NotPossible as reason:
        messages.error(request, str(reason))
    return redirect("console:suspended", campaign.pk)


@login_required
@require_POST
@posts_by_user
def end(request: SignedInRequest, campaign_id: int, comparison_id: int) -> HttpResponse:
    """End the chain of a suspended step."""
    campaign, comparison = _found(request, campaign_id, comparison_id)
    form = EndForm(request.POST, auto_id=f"end_{comparison.pk}_%s")
    if not form.is_valid():
        return _shown(request, campaign, wrong={comparison.pk: form})
    try:
        suspension.end_chain(comparison.pk, form.cleaned_data["words"])
        messages.info(request, f"Chain {comparison.chain.place} ends before step {comparison.step}.")
    except NotPossible as reason:
        messages.error(request, str(reason))
    return redirect("console:suspended", campaign.pk)


def _found(request: HttpRequest, campaign_id: int, comparison_id: int) -> tuple[access.SeenCampaign, Comparison]:
    campaign = campaign_for(request, campaign_id, Right.RUN)
    whole = Comparison.objects.select_related("chain")
    return campaign, get_object_or_404(whole, pk=comparison_id, chain__campaign=campaign)


def _shown(
    request: SignedInRequest, campaign: access.SeenCampaign, wrong: dict[int, EndForm] | None = None
) -> HttpResponse:
    """Show the suspended steps; `wrong` are forms that could not be read, by the keys of their steps."""
    found = suspended_in(campaign)
    keys = [each.comparison.pk for each in found]
    forms = {key: EndForm(auto_id=f"end_{key}_%s") for key in keys} | (wrong or {})
    context = {
        "campaign": campaign,
        "suspended": [(each, forms[each.comparison.pk]) for each in found],
        "may_run": access.right_in(campaign, request.user) >= Right.RUN,
        "is_finished": campaign.status == Campaign.Status.FINISHED,
    }
    return render(request, "console/suspended.html", context)
