"""What a campaign has brought: samples, how they are spread and converge, reported problems, and the record's files."""

from __future__ import annotations

from asgiref.sync import sync_to_async
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import redirect, render

import sampler
from prefmh_web.accounts.roles import SignedInRequest
from prefmh_web.campaigns.errors import NotPossible
from prefmh_web.campaigns.models import Campaign
from prefmh_web.campaigns.monitoring import steps
from prefmh_web.campaigns.monitoring.judging import costs_of
from prefmh_web.campaigns.monitoring.results import figures_of, samples_in, shown_samples
from prefmh_web.campaigns.record import export, rows
from prefmh_web.campaigns.record.found import answer_now
from prefmh_web.campaigns.record.snapshot import Snapshot
from prefmh_web.console.results import PAPER, convergence_for, found_page, paragraph, software, spreads_of
from prefmh_web.console.views.common import attachment, campaign_for, frame, get_page, prefix_of
from prefmh_web.transport.bodies import stream
from sampler import tables

_SAMPLES_A_PAGE, _PROBLEMS_A_PAGE = 12, 50


@get_page
def results(request: SignedInRequest, campaign_id: int) -> HttpResponse:
    """Show the results of a campaign, or those so far."""
    campaign = campaign_for(request, campaign_id)
    if campaign.is_draft:
        return redirect(campaign)
    page = Paginator(samples_in(campaign), _SAMPLES_A_PAGE).get_page(request.GET.get("page"))
    figures = figures_of(campaign)
    is_finished = campaign.status == Campaign.Status.FINISHED
    context = frame(request, campaign) | {
        "figures": figures,
        "page": page,
        "samples": shown_samples(campaign, [step.pk for step in page.object_list]),
        "as_table": request.GET.get("view") == "table",
        "kind": campaign.object_kind,
        "costs": costs_of(campaign),
        "is_finished": is_finished,
        "methods": paragraph(campaign, figures) if is_finished else "",
        "citations": (PAPER, software()),
    }
    return render(request, "console/results.html", context)


@get_page
def found(request: SignedInRequest, campaign_id: int) -> HttpResponse:
    """Show what was found: a part of the page that loads after itself."""
    campaign = campaign_for(request, campaign_id)
    if campaign.is_draft:
        raise Http404("There are no samples yet.")
    try:
        context: dict[str, object] = {"found": found_page(campaign, answer_now(campaign))}
    except NotPossible as reason:
        context = {"reason": str(reason)}
    return render(request, "console/_found.html", context | {"campaign": campaign, "kind": campaign.object_kind})


@get_page
def verdict(request: SignedInRequest, campaign_id: int) -> HttpResponse:
    """Show whether the chains look converged: a part of the overview that loads after itself."""
    campaign = campaign_for(request, campaign_id)
    if campaign.is_draft:
        raise Http404("There are no samples yet.")
    try:
        context: dict[str, object] = {"verdict": answer_now(campaign).verdict}
    except NotPossible as reason:
        context = {"reason": str(reason)}
    is_finished = campaign.status == Campaign.Status.FINISHED
    context |= {"campaign": campaign, "is_finished": is_finished, "no_sign": sampler.NO_SIGN}
    return render(request, "console/_convergence_verdict.html", context)


@get_page
def properties(request: SignedInRequest, campaign_id: int) -> HttpResponse:
    """Show how the properties of the samples are spread: a part of the page that it loads after itself."""
    campaign = campaign_for(request, campaign_id)
    if campaign.is_draft:
        raise Http404("There are no samples yet.")
    return render(request, "console/_spreads.html", {"spreads": spreads_of(campaign)})


@get_page
def convergence(request: SignedInRequest, campaign_id: int) -> HttpResponse:
    """Show R-hat, effective sample sizes, traces and ranks of the properties that the address names."""
    campaign = campaign_for(request, campaign_id)
    if campaign.is_draft:
        return redirect(campaign)
    found = convergence_for(campaign, request.GET)
    context = frame(request, campaign) | {"convergence": found, "asked": request.GET.urlencode()}
    return render(request, "console/convergence.html", context, status=200 if found.form.is_valid() else 400)


@get_page
def record(request: SignedInRequest, campaign_id: int) -> HttpResponse:
    """Show what can be downloaded of a started campaign."""
    campaign = campaign_for(request, campaign_id)
    if campaign.is_draft:
        return redirect(campaign)
    files = [*export.documents(campaign, campaign.tuning), *export.TABLES]
    context = {"files": [(name, *tables.ABOUT[name]) for name in files], "prefix": prefix_of(campaign)}
    return render(request, "console/record.html", frame(request, campaign) | context)


@get_page
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
    elif filename == tables.RESULTS.file:
        response = stream(lambda: export.results(Snapshot.now(campaign)), "text/csv; charset=utf-8")
    elif filename == tables.PROPERTIES.file:
        response = stream(lambda: export.as_csv(rows.properties(Snapshot.now(campaign))), "text/csv; charset=utf-8")
    elif filename in (documents := await sync_to_async(export.documents)(campaign, campaign.tuning)):
        response = HttpResponse(documents[filename], content_type="application/json")
    elif filename == "export.zip":
        response = stream(lambda: export.archive(campaign), "application/zip")
    else:
        raise Http404("There is no such file.")
    return attachment(request, response, f"{prefix_of(campaign)}-{filename}")


@get_page
def problems(request: HttpRequest, campaign_id: int) -> HttpResponse:
    """List the problems that people have reported, the latest first."""
    campaign = campaign_for(request, campaign_id)
    page = Paginator(steps.problems_in(campaign), _PROBLEMS_A_PAGE).get_page(request.GET.get("page"))
    found = steps.with_pairs(list(page))
    return render(request, "console/problems.html", {"campaign": campaign, "page": page, "problems": found})
