"""The record: its page, and its files, streamed while people go on voting."""

from __future__ import annotations

from asgiref.sync import sync_to_async
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpResponse, StreamingHttpResponse
from django.shortcuts import redirect, render
from django.utils.text import slugify
from django.views.decorators.http import require_safe

from prefmh_web.accounts.roles import SignedInRequest
from prefmh_web.campaigns.models import Campaign
from prefmh_web.campaigns.record import export, rows
from prefmh_web.campaigns.record.snapshot import Snapshot
from prefmh_web.console.tabs import frame
from prefmh_web.console.views.campaigns import campaign_for
from prefmh_web.transport.downloads import stream
from sampler import tables


@login_required
@require_safe
def record(request: SignedInRequest, campaign_id: int) -> HttpResponse:
    """Show what can be downloaded of a started campaign."""
    campaign = campaign_for(request, campaign_id)
    if campaign.is_draft:
        return redirect(campaign)
    files = [*export.documents(campaign, campaign.tuning), *export.TABLES]
    context = {"files": [(name, *tables.ABOUT[name]) for name in files], "prefix": prefix_of(campaign)}
    return render(request, "console/record.html", frame(request, campaign) | context)


@login_required
@require_safe
async def download(request: SignedInRequest, campaign_id: int, filename: str) -> HttpResponse | StreamingHttpResponse:
    """Send one file of the record, or all of them as export.zip."""
    campaign = await sync_to_async(campaign_for)(request, campaign_id)
    if campaign.is_draft and filename != tables.CONFIG:
        raise Http404("A draft has no record yet.")
    response: HttpResponse | StreamingHttpResponse
    if filename == tables.CONFIG:
        response = HttpResponse(export.config(campaign), content_type="application/json")
    elif filename in export.TABLES:
        response = stream(lambda: export.csv_text(Snapshot.now(campaign), filename), "text/csv; charset=utf-8")
    elif filename == tables.PROPERTIES.file:
        response = stream(lambda: export.as_csv(rows.properties(Snapshot.now(campaign))), "text/csv; charset=utf-8")
    elif filename in (documents := await sync_to_async(export.documents)(campaign, campaign.tuning)):
        response = HttpResponse(documents[filename], content_type="application/json")
    elif filename == "export.zip":
        response = stream(lambda: export.archive(campaign), "application/zip")
    else:
        raise Http404("There is no such file.")
    if request.method == "HEAD":
        response = HttpResponse(content_type=response["Content-Type"])
    # Nothing on the way may keep a record that this person may read, for another who may not.
    response["Cache-Control"] = "no-store"
    response["Content-Disposition"] = f'attachment; filename="{prefix_of(campaign)}-{filename}"'
    return response


def prefix_of(campaign: Campaign) -> str:
    """Return how the name of a campaign's files begins."""
    return slugify(campaign.name)[:60] or f"campaign-{campaign.pk}"
