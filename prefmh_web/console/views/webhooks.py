"""The programs that are told what happens in a campaign, and the log of what they were told. For owners only."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from prefmh_web.accounts.roles import SignedInRequest
from prefmh_web.campaigns.errors import Deleted, NotPossible
from prefmh_web.campaigns.lifecycle import access
from prefmh_web.campaigns.lifecycle import webhooks as doors
from prefmh_web.campaigns.lifecycle.access import Right
from prefmh_web.campaigns.models import Delivery, Webhook
from prefmh_web.console.forms.webhook import WebhookForm
from prefmh_web.console.tabs import frame
from prefmh_web.console.views.campaigns import campaign_for, posts_by_user, told

A_PAGE = 20


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
@posts_by_user
@never_cache
def webhooks(request: SignedInRequest, campaign_id: int) -> HttpResponse:
    """List the webhooks of a campaign, and make one, whose secret this answer alone shows."""
    campaign = campaign_for(request, campaign_id, Right.OWN)
    form, made, secret = WebhookForm(request.POST or None), None, ""
    if form.is_bound and form.is_valid():
        try:
            made, secret = doors.make(campaign, **form.cleaned_data)
            form = WebhookForm()
        except Deleted as reason:
            return told(request, campaign, reason)
        except NotPossible as reason:
            form.add_error("url", str(reason))
    context = {"form": form, "made": made, "secret": secret, "webhooks": campaign.webhooks.all(), "most": doors.MOST}
    status = 400 if form.errors else 200
    return render(request, "console/webhooks.html", frame(request, campaign) | context, status=status)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
@posts_by_user
@never_cache
def webhook(request: SignedInRequest, campaign_id: int, webhook_id: int) -> HttpResponse:
    """Show a webhook with its log, and change its address and its events."""
    campaign, found = _found(request, campaign_id, webhook_id)
    form = WebhookForm(request.POST or None, initial={"url": found.url, "events": found.events})
    if form.is_bound and form.is_valid():
        try:
            doors.change(found, **form.cleaned_data)
            messages.info(request, "Saved.")
            return redirect("console:webhook", campaign.pk, found.pk)
        except NotPossible as reason:
            form.add_error("url", str(reason))
    return _shown(request, campaign, found, form)


@login_required
@require_POST
@posts_by_user
@never_cache
def renew_secret(request: SignedInRequest, campaign_id: int, webhook_id: int) -> HttpResponse:
    """Give a webhook a new secret, which this answer alone shows."""
    campaign, found = _found(request, campaign_id, webhook_id)
    secret = doors.renew_secret(found)
    found.refresh_from_db()
    return _shown(request, campaign, found, WebhookForm(initial={"url": found.url, "events": found.events}), secret)


@login_required
@require_POST
@posts_by_user
def test(request: SignedInRequest, campaign_id: int, webhook_id: int) -> HttpResponse:
    """Send a test event."""
    campaign, found = _found(request, campaign_id, webhook_id)
    doors.test(found)
    messages.info(request, "A test event is on its way. Load this page again in a moment to see the answer.")
    return redirect("console:webhook", campaign.pk, found.pk)


@login_required
@require_POST
@posts_by_user
def remove(request: SignedInRequest, campaign_id: int, webhook_id: int) -> HttpResponse:
    """Remove a webhook with its log."""
    campaign, found = _found(request, campaign_id, webhook_id)
    doors.remove(found)
    messages.info(request, "The webhook is removed, with its log.")
    return redirect("console:webhooks", campaign.pk)


@login_required
@require_POST
@posts_by_user
def send_again(request: SignedInRequest, campaign_id: int, webhook_id: int, delivery_id: int) -> HttpResponse:
    """Send an event once more."""
    campaign, found = _found(request, campaign_id, webhook_id)
    delivery = get_object_or_404(Delivery, webhook=found, pk=delivery_id)
    doors.send_again(delivery)
    messages.info(request, f"{delivery.event} is sent again, under the same id.")
    return redirect("console:webhook", campaign.pk, found.pk)


def _found(request: HttpRequest, campaign_id: int, webhook_id: int) -> tuple[access.SeenCampaign, Webhook]:
    campaign = campaign_for(request, campaign_id, Right.OWN)
    return campaign, get_object_or_404(Webhook, pk=webhook_id, campaign=campaign)


def _shown(
    request: SignedInRequest, campaign: access.SeenCampaign, found: Webhook, form: WebhookForm, secret: str = ""
) -> HttpResponse:
    log = Paginator(found.deliveries.prefetch_related("attempts"), A_PAGE)
    context = {"webhook": found, "form": form, "secret": secret, "page": log.get_page(request.GET.get("page"))}
    context |= {"hours": int(doors.BOTH_SIGN_FOR.total_seconds() // 3600)}
    status = 400 if form.errors else 200
    return render(request, "console/webhook.html", frame(request, campaign) | context, status=status)
