"""The setup: of a new campaign, of a draft, and what can still change of a started one."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.db.models import Count
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_safe

from prefmh_web.accounts.roles import SignedInRequest, is_researcher
from prefmh_web.campaigns import lifecycle
from prefmh_web.campaigns.lifecycle import access, changes, drafts
from prefmh_web.campaigns.lifecycle.access import Right
from prefmh_web.campaigns.models import Campaign, Catalog, Membership
from prefmh_web.console.board import board_of_setup
from prefmh_web.console.estimates import asks_models
from prefmh_web.console.forms.changes import CapFields, ExtensionFields, NameForm
from prefmh_web.console.forms.estimate import estimate_shown
from prefmh_web.console.forms.kept_files import KeptFiles
from prefmh_web.console.forms.setup_form import SetupForm
from prefmh_web.console.previews import presets_as_json
from prefmh_web.console.tabs import frame
from prefmh_web.console.views.campaigns import campaign_for, posts_by_user, told


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
@posts_by_user
def create(request: SignedInRequest) -> HttpResponse:
    """Set up a new campaign."""
    if not is_researcher(request.user):
        return render(request, "console/researchers_only.html", status=403)
    form = form_of(request)
    if form.is_bound and form.is_valid() and form.config:
        campaign = drafts.create(owner=request.user, config=form.config, file=form.upload)
        return _after_saving(request, campaign, form)
    return render(request, "console/setup.html", _shown(form))


def form_of(request: SignedInRequest, campaign: Campaign | None = None) -> SetupForm:
    """Return the form of a draft, or of a new campaign, with what was sent of it."""
    sent = request.POST if request.method == "POST" else None
    kept = KeptFiles(request.user.pk, sent or {}, request.FILES)
    files = None if sent is None else kept.files
    if campaign is None:
        form = SetupForm(None, sent, files, owner=request.user)
    else:
        catalog = None if campaign.config.generates else campaign.catalog
        is_read = catalog is not None and catalog.status == Catalog.Status.READY
        form = SetupForm(
            campaign.typed_config,
            sent,
            files,
            owner=campaign.owner,
            columns=catalog.columns if catalog and is_read else None,
            filename=catalog.filename if catalog else "",
            is_fixed=not campaign.is_draft,
        )
    form.kept = kept
    return form


@login_required
@require_safe
def estimate(request: HttpRequest) -> HttpResponse:
    """Show what the votes come to of the setup that is being typed."""
    return render(request, "console/_votes_estimate.html", {"estimate": estimate_shown(request.GET)})


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
@posts_by_user
def edit(request: SignedInRequest, campaign_id: int) -> HttpResponse:
    """Change the setup of a draft. Of a started campaign: show it, with all that can still change."""
    campaign = campaign_for(request, campaign_id)
    is_owner = access.right_in(campaign, request.user) >= Right.OWN
    if not campaign.is_draft and request.method != "POST" and not ("all" in request.GET and is_owner):
        return _fixed(request, campaign)
    if not is_owner:
        raise Http404
    form = form_of(request, campaign)
    if form.is_bound and form.is_valid() and form.config:
        try:
            changes.apply(campaign, form.config, request.user, form.upload)
        except lifecycle.NotPossible as reason:
            return told(request, campaign, reason)
        return _after_saving(request, campaign, form)
    return render(request, "console/setup.html", _shown(form, campaign))


def _fixed(request: SignedInRequest, campaign: access.SeenCampaign) -> HttpResponse:
    """Show the setup of a started campaign, its links and its members."""
    context = frame(request, campaign) | {"board": board_of_setup(campaign)}
    if context["may_run"]:
        links = campaign.invitations.filter(panelist__isnull=True).annotate(joined=Count("annotators"))
        context["links"] = links.order_by("pk")
        context["site"] = request.build_absolute_uri("/").removesuffix("/")
    if context["may_own"]:
        context |= _changeable(campaign)
    return render(request, "console/setup_fixed.html", context)


def _changeable(campaign: Campaign) -> dict[str, object]:
    """Return the forms of what an owner may still change."""
    found: dict[str, object] = {
        "members": campaign.memberships.select_related("user").order_by("user__username"),
        "roles": Membership.Role.choices,
        "rename": NameForm(initial={"name": campaign.name}, auto_id="rename_%s"),
        "extension": ExtensionFields(auto_id="extension_%s"),
    }
    if campaign.is_under_way and asks_models(campaign):
        found["caps"] = CapFields.of(campaign)
    return found


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
        "estimate": estimate_shown(values),
    }
