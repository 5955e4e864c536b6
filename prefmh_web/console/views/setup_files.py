"""A campaign's setup as a file: downloaded, imported, and copied into a second campaign."""

from asgiref.sync import sync_to_async
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.files.base import File
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from prefmh_web.accounts.roles import SignedInRequest, is_researcher
from prefmh_web.campaigns.errors import NotPossible
from prefmh_web.campaigns.lifecycle.access import Right
from prefmh_web.campaigns.models import Campaign
from prefmh_web.console.forms.copies import PilotForm, SetupFileForm
from prefmh_web.console.views.campaigns import back_to_setup, campaign_for, posts_by_user, told_at_setup
from prefmh_web.console.views.downloads import prefix_of
from prefmh_web.setup import apply, copies, files
from prefmh_web.setup.problems import Problem, SetupError
from prefmh_web.transport.downloads import stream

_TYPES = {".yaml": "application/yaml; charset=utf-8", ".zip": "application/zip"}


@login_required
@require_safe
async def download(request: HttpRequest, campaign_id: int) -> HttpResponse | StreamingHttpResponse:
    """Send campaign.yaml, or the ZIP with it and the uploaded file. It has codes and answers: it is the owner's."""
    campaign = await sync_to_async(campaign_for)(request, campaign_id, Right.OWN)
    try:
        ending, pieces = await sync_to_async(files.write)(campaign)
    except NotPossible as reason:
        return await sync_to_async(told_at_setup)(request, campaign, reason)
    response: HttpResponse | StreamingHttpResponse = HttpResponse(content_type=_TYPES[ending])
    if request.method == "GET":
        response = stream(lambda: pieces, _TYPES[ending])
    response["Cache-Control"] = "no-store"
    response["Content-Disposition"] = f'attachment; filename="{prefix_of(campaign)}-campaign{ending}"'
    return response


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
@posts_by_user
def import_setup(request: SignedInRequest) -> HttpResponse:
    """Make a draft from a setup's file; of one that makes none, show every reason."""
    if not is_researcher(request.user):
        return render(request, "console/researchers_only.html", status=403)
    posted = request.method == "POST"
    form = SetupFileForm(*((request.POST, request.FILES) if posted else ()))
    problems: list[Problem] = []
    if posted and form.is_valid():
        try:
            return redirect(_imported(request, form))
        except SetupError as error:
            problems = error.problems
        except NotPossible as reason:
            problems = [Problem(str(reason))]
    return render(request, "console/import.html", {"form": form, "problems": problems})


def _imported(request: SignedInRequest, form: SetupFileForm) -> Campaign:
    with files.opened(form.cleaned_data["file"].file, owner=request.user) as (setup, uploaded):
        # The draft's page tells of another campaign under its seed, as long as there is one.
        twin = apply.warning_of_seed(setup.seed, request.user)
        warnings = [each for each in apply.warnings(setup, request.user) if each != twin]
        campaign = apply.create(setup, request.user, None if uploaded is None else File(uploaded))
    messages.info(request, f"“{campaign.name}” is imported as a draft. Look through it before you start it.")
    for warning in warnings:
        messages.warning(request, warning)
    return campaign


@login_required
@require_POST
@posts_by_user
def duplicated(request: SignedInRequest, campaign_id: int) -> HttpResponse:
    """Make a draft of the same setup."""
    campaign = campaign_for(request, campaign_id, Right.OWN)
    if not is_researcher(request.user):
        return render(request, "console/researchers_only.html", status=403)
    try:
        copy = copies.duplicate(campaign, request.user)
    except NotPossible as reason:
        return told_at_setup(request, campaign, reason)
    messages.info(request, f"This is a copy of “{campaign.name}”, a draft with a seed of its own.{_panelists(copy)}")
    return redirect(copy)


@login_required
@require_POST
@posts_by_user
def run_pilot(request: SignedInRequest, campaign_id: int) -> HttpResponse:
    """Make a pilot."""
    campaign = campaign_for(request, campaign_id, Right.OWN)
    if not is_researcher(request.user):
        return render(request, "console/researchers_only.html", status=403)
    form = PilotForm(request.POST)
    if not form.is_valid():
        messages.error(request, f"{form.errors.as_text()} No pilot was made.")
        return back_to_setup(campaign)
    try:
        made = copies.pilot(campaign, request.user, **form.cleaned_data)
    except NotPossible as reason:
        return told_at_setup(request, campaign, reason)
    messages.info(request, f"“{made.name}” is a draft. Start it and send its link to a few people.")
    return redirect(made)


def _panelists(copy: Campaign) -> str:
    return " Enter the names of its panel in the setup." if copy.config.panelists else ""
