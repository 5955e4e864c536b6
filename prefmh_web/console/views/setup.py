"""The setup: of a new campaign, a draft, a started one; as a file, copied, and previews of what it comes to."""

from __future__ import annotations

from django.contrib import messages
from django.core.files.base import File
from django.core.signing import BadSignature
from django.db.models import Count
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse

from prefmh_web.accounts.roles import SignedInRequest, is_researcher
from prefmh_web.campaigns import lifecycle
from prefmh_web.campaigns.lifecycle import access, changes
from prefmh_web.campaigns.lifecycle.access import Right
from prefmh_web.campaigns.models import Campaign, Membership, NotPossible
from prefmh_web.console import lists, unstored
from prefmh_web.console.board import Board
from prefmh_web.console.forms import pages
from prefmh_web.console.forms.fields import KeptFiles
from prefmh_web.console.forms.setup_form import SetupForm
from prefmh_web.console.previews import asks_models, presets_as_json, preview_of
from prefmh_web.console.views import common
from prefmh_web.objects import OBJECT_KINDS, StoredObject, media
from prefmh_web.setup import apply, files
from prefmh_web.setup.fitting import Problem, SetupError
from prefmh_web.transport.bodies import stream

_TYPES = {".yaml": "application/yaml; charset=utf-8", ".zip": "application/zip"}


@common.form_page
@common.for_researchers
def create(request: SignedInRequest) -> HttpResponse:
    """Set up a new campaign."""
    form = form_of(request)
    if form.is_bound and form.is_valid() and form.config:
        campaign = changes.create(owner=request.user, config=form.config, file=form.upload)
        return _after_saving(request, campaign, form)
    return render(request, "console/setup.html", _shown(form))


def form_of(request: SignedInRequest, campaign: Campaign | None = None, *, takes_list: bool = True) -> SetupForm:
    """Return the form of a draft, or of a new campaign, with what was sent of it.

    Args:
        takes_list: False where nothing rests on the list, which takes a while to read.
    """
    sent = request.POST.copy() if request.method == "POST" else None
    kept = KeptFiles(request.user.pk, sent or {}, request.FILES)
    taken = lists.take(sent, kept) if takes_list and sent is not None else None
    form = SetupForm(campaign, request.user, sent, None if sent is None else kept.files)
    form.kept, form.taken = kept, taken
    return form


@common.preview_action
@common.for_researchers
def look_at_list(request: SignedInRequest) -> HttpResponse:
    """Show what a list that is pasted or chosen in the form comes to. A good file is kept for the form."""
    form = form_of(request)
    form.full_clean()
    if form.taken and form.taken.field == "file":
        form.kept.show_in(form)
    return render(request, "console/_list.html", lists.context_of(form))


@common.get_page
def estimate(request: HttpRequest) -> HttpResponse:
    """Show what the votes come to of the setup that is being typed."""
    return render(request, "console/_votes_estimate.html", {"estimate": pages.estimate_shown(request.GET)})


@common.campaign_page(method=common.form_page, back="campaign")
def edit(request: SignedInRequest, campaign: access.SeenCampaign) -> HttpResponse:
    """Change the setup of a draft. Of a started campaign: show it, with all that can still change."""
    is_owner = access.right_in(campaign, request.user) >= Right.OWN
    if not campaign.is_draft and request.method != "POST" and not ("all" in request.GET and is_owner):
        return _fixed(request, campaign)
    if not is_owner:
        raise Http404
    form = form_of(request, campaign)
    if form.is_bound and form.is_valid() and form.config:
        changes.apply(campaign, form.config, request.user, form.upload)
        return _after_saving(request, campaign, form)
    return render(request, "console/setup.html", _shown(form, campaign))


def _fixed(request: SignedInRequest, campaign: access.SeenCampaign) -> HttpResponse:
    """Show the setup of a started campaign, its links and its members."""
    context = common.frame(request, campaign) | {"board": Board(campaign)}
    if context["may_run"]:
        links = campaign.invitations.filter(panelist__isnull=True).annotate(joined=Count("annotators"))
        context["links"] = links.order_by("pk")
    if context["may_own"]:
        context |= {
            "members": campaign.memberships.select_related("user").order_by("user__username"),
            "roles": Membership.Role.choices,
            "rename": pages.NameForm(initial={"name": campaign.name}, auto_id="rename_%s"),
            "extension": pages.ExtensionFields(auto_id="extension_%s"),
            "caps": pages.CapFields.of(campaign) if campaign.is_under_way and asks_models(campaign) else None,
        }
    return render(request, "console/setup_fixed.html", context)


def _after_saving(request: SignedInRequest, campaign: Campaign, form: SetupForm) -> HttpResponse:
    """Go to the page where a judge is tried, or to that of the people, if that was pressed; else to the campaign's."""
    form.kept.remove()
    if request.POST.get("next") == "participants":
        return redirect("console:participants", campaign.pk)
    judge = form.judge_at(request.POST.get("try", ""))
    return redirect(campaign) if judge is None else redirect("console:try", campaign.pk, judge)


def _shown(form: SetupForm, campaign: Campaign | None = None) -> dict[str, object]:
    """Return what the page of a setup shows. A file that was chosen is kept where something else is refused."""
    if form.is_bound:
        form.kept.show_in(form)
    at = reverse("console:preview", args=[campaign.pk]) if campaign else reverse("console:preview-new")
    values = {name: leaf.bound.value() for name, leaf in form.leaves.items()}
    return {
        "form": form,
        "campaign": campaign,
        "preview_url": at,
        "presets": presets_as_json(),
        "estimate": pages.estimate_shown(values),
    }


@common.campaign_page(Right.OWN, back="")
def download(request: HttpRequest, campaign: access.SeenCampaign) -> HttpResponse | StreamingHttpResponse:
    """Send campaign.yaml, or the ZIP with it and the uploaded file. It has codes and answers: it is the owner's."""
    ending, pieces = files.write(campaign)
    response = stream(lambda: pieces, _TYPES[ending])
    return common.attachment(request, response, f"{common.prefix_of(campaign)}-campaign{ending}")


@common.form_page
@common.for_researchers
def import_setup(request: SignedInRequest) -> HttpResponse:
    """Make a draft from a setup's file; of one that makes none, show every reason."""
    posted = request.method == "POST"
    form = pages.SetupFileForm(*((request.POST, request.FILES) if posted else ()))
    problems: list[Problem] = []
    if posted and form.is_valid():
        try:
            return redirect(_imported(request, form))
        except SetupError as error:
            problems = error.problems
        except NotPossible as reason:
            problems = [Problem(str(reason))]
    return render(request, "console/import.html", {"form": form, "problems": problems})


def _imported(request: SignedInRequest, form: pages.SetupFileForm) -> Campaign:
    with files.opened(form.cleaned_data["file"].file, owner=request.user) as (setup, uploaded):
        # The draft's page tells of another campaign under its seed, as long as there is one.
        twin = apply.warning_of_seed(setup.seed, request.user)
        warnings = [each for each in apply.warnings(setup, request.user) if each != twin]
        campaign = apply.create(setup, request.user, None if uploaded is None else File(uploaded))
    messages.info(request, f"“{campaign.name}” is imported as a draft. Look through it before you start it.")
    for warning in warnings:
        messages.warning(request, warning)
    return campaign


@common.campaign_action(Right.OWN)
@common.for_researchers
def duplicated(request: SignedInRequest, campaign: Campaign) -> HttpResponse:
    """Make a draft of the same setup."""
    copy = apply.duplicate(campaign, request.user)
    panel = " Enter the names of its panel in the setup." if copy.config.panelists else ""
    messages.info(request, f"This is a copy of “{campaign.name}”, a draft with a seed of its own.{panel}")
    return redirect(copy)


@common.campaign_action(Right.OWN, "campaign")
@common.for_researchers
def start_afresh(request: SignedInRequest, campaign: Campaign) -> HttpResponse:
    """Make a copy of a campaign and start it at once."""
    copy = apply.duplicate(campaign, request.user)
    lifecycle.request_start(copy)
    return redirect(copy)


@common.campaign_action(Right.OWN)
@common.for_researchers
def run_pilot(request: SignedInRequest, campaign: Campaign) -> HttpResponse:
    """Make a pilot."""
    form = pages.PilotForm(request.POST)
    if not form.is_valid():
        raise NotPossible(f"{form.errors.as_text()} No pilot was made.")
    made = apply.pilot(campaign, request.user, **form.cleaned_data)
    messages.info(request, f"“{made.name}” is a draft. Start it and send its link to a few people.")
    return redirect(made)


@common.preview_action
def preview(request: SignedInRequest, campaign_id: int | None = None) -> HttpResponse:
    """Show the exact request of one question, as the fields of the setup stand. Nothing is stored, and nobody asked."""
    campaign = None if campaign_id is None else common.campaign_for(request, campaign_id, Right.OWN)
    if campaign is None and not is_researcher(request.user):
        return render(request, "console/researchers_only.html", status=403)
    form = form_of(request, campaign, takes_list=False)
    shown = preview_of(form.asked_at(request.POST.get("place", "")), form.owner, campaign)
    return render(request, "console/_prompt_preview.html", {"preview": shown})


@common.get_page
def unstored_picture(request: HttpRequest, signed: str) -> HttpResponse:
    """Send the picture of an object whose address a page of ours has made."""
    try:
        found = unstored.read(signed)
    except BadSignature as error:
        raise Http404("There is no such picture.") from error
    kind = OBJECT_KINDS[found.kind]
    beside = StoredObject(found.beside) if found.beside else None
    return media.response(request, kind, found.stored, beside)
