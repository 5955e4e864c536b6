"""The researcher's pages: list, set up, watch, and change a campaign's state."""

from __future__ import annotations

from collections.abc import Callable

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.db.models import Count
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from prefmh_web.accounts.roles import SignedInRequest, is_researcher
from prefmh_web.campaigns import lifecycle
from prefmh_web.campaigns.lifecycle import access, drafts
from prefmh_web.campaigns.lifecycle.access import Right
from prefmh_web.campaigns.models import Campaign, Membership, State
from prefmh_web.campaigns.monitoring.problems import problems_in
from prefmh_web.campaigns.started import objects
from prefmh_web.console.board import board_for
from prefmh_web.console.estimates import asks_models
from prefmh_web.console.forms import SetupForms
from prefmh_web.console.forms.caps import CapFields
from prefmh_web.console.forms.crowds import crowds_shown
from prefmh_web.console.forms.extension import ExtensionFields
from prefmh_web.console.forms.layout import SetupLayout
from prefmh_web.console.forms.naming import NameForm
from prefmh_web.console.previews import presets_as_json
from prefmh_web.console.spending import spending_of
from prefmh_web.objects import media
from prefmh_web.participants.recruiting import recruitment_of, terms_of
from prefmh_web.setup import twins
from prefmh_web.transport import rate_limits

A_PAGE = 50
posts_by_user = rate_limits.posts("forms", rate_limits.by_user)


def campaign_for(request: HttpRequest, campaign_id: int, right: Right = Right.WATCH) -> access.SeenCampaign:
    """Return a campaign in which the signed-in person has this right; 404 for everybody else."""
    found = access.campaigns_for(request.user, right).select_related("catalog", "owner")
    return get_object_or_404(found, pk=campaign_id)


def told(request: HttpRequest, campaign: Campaign, reason: lifecycle.NotPossible) -> HttpResponse:
    """Show on the campaign's page, or on the list where the campaign is no more, why a change was not possible."""
    messages.error(request, str(reason))
    return redirect("console:campaigns") if isinstance(reason, lifecycle.Deleted) else redirect(campaign)


@login_required
@require_safe
def campaigns(request: HttpRequest) -> HttpResponse:
    """List the campaigns that the signed-in person may see: those that are archived, or the others."""
    is_archived = "archived" in request.GET
    found = access.campaigns_for(request.user).filter(archived_at__isnull=not is_archived)
    page = Paginator(found, A_PAGE).get_page(request.GET.get("page"))
    context = {"page": page, "is_archived": is_archived, "may_create": is_researcher(request.user)}
    return render(request, "console/campaigns.html", context)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
@posts_by_user
def create(request: SignedInRequest) -> HttpResponse:
    """Set up a new campaign."""
    if not is_researcher(request.user):
        return render(request, "console/researchers_only.html", status=403)
    forms = SetupForms(request)
    if request.method == "POST" and (fields := forms.checked()) is not None:
        file = forms.space.upload
        campaign = drafts.create(owner=request.user, file=file, filename=file.name if file else "", **fields)
        return _after_saving(request, campaign, forms)
    return render(request, "console/setup.html", _setup(forms))


@login_required
@require_safe
def crowds(request: HttpRequest) -> HttpResponse:
    """Show what crowds would make of the setup that is being typed."""
    return render(request, "console/_crowds.html", {"forecast": crowds_shown(request.GET)})


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
@posts_by_user
def edit(request: SignedInRequest, campaign_id: int) -> HttpResponse:
    """Change the setup of a draft."""
    campaign = campaign_for(request, campaign_id, Right.OWN)
    if campaign.unreadable:
        return redirect(campaign)
    forms = SetupForms(request, campaign)
    if request.method == "POST" and (fields := forms.checked()) is not None:
        try:
            drafts.change(campaign, file=forms.space.upload, **fields)
        except lifecycle.NotPossible as reason:
            return told(request, campaign, reason)
        return _after_saving(request, campaign, forms)
    return render(request, "console/setup.html", _setup(forms, campaign))


def _after_saving(request: SignedInRequest, campaign: Campaign, forms: SetupForms) -> HttpResponse:
    """Go to the page where a judge is tried, or to that of the people, if that was pressed; else to the campaign's."""
    forms.kept.remove()
    if request.POST.get("next") == "participants":
        return redirect("console:participants", campaign.pk)
    place = forms.judge_at(request.POST.get("try", ""), campaign)
    return redirect(campaign) if place is None else redirect("console:try", campaign.pk, place)


def _setup(forms: SetupForms, campaign: Campaign | None = None) -> dict[str, object]:
    """Return what the page of a setup shows. A file that was chosen is kept where something else is refused."""
    if forms.has_errors:
        forms.keep_files()
    at, beside = reverse("console:preview-new"), reverse("console:voting-preview-new")
    if campaign:
        at = reverse("console:preview", args=[campaign.pk])
        beside = reverse("console:voting-preview", args=[campaign.pk])
    return {
        "forms": forms,
        "layout": SetupLayout(forms),
        "campaign": campaign,
        "preview_url": at,
        "voting_preview_url": beside,
        "presets": presets_as_json(),
    }


@login_required
@require_safe
def campaign(request: SignedInRequest, campaign_id: int) -> HttpResponse:
    """Show a campaign live."""
    found = campaign_for(request, campaign_id)
    right = access.right_in(found, request.user)
    if found.unreadable:
        return render(request, "console/unreadable.html", {"campaign": found, "may_own": right >= Right.OWN})
    board = board_for(found)
    return render(
        request,
        "console/campaign.html",
        {
            "board": board,
            "may_run": right >= Right.RUN,
            "may_own": right >= Right.OWN,
            "problems": problems_in(found).count(),
            "twin": twins.warning_of(found),
            **_people(request, found, right),
        },
    )


def _people(request: HttpRequest, campaign: Campaign, right: Right) -> dict[str, object]:
    """Return what the page tells of links and members to those who may change them."""
    people: dict[str, object] = {"site": request.build_absolute_uri("/").removesuffix("/")}
    if right >= Right.RUN and not campaign.is_draft:
        links = list(campaign.invitations.filter(seat__isnull=True).annotate(joined=Count("annotators")).order_by("pk"))
        people["links"] = links
        people["invitation"] = invitation = next((link for link in links if link.admits_anybody), None)
        people["platform"] = platform = terms_of(campaign).recruiter
        people["link"] = invitation and platform.link(request.build_absolute_uri(invitation.get_absolute_url()))
    if right >= Right.OWN:
        people["members"] = list(campaign.memberships.select_related("user").order_by("user__username"))
        if campaign.is_under_way and asks_models(campaign):
            people["caps"] = CapFields(
                initial={name: getattr(campaign, name) for name in CapFields.base_fields}, auto_id="caps_%s"
            )
        if not campaign.is_draft and not campaign.unreadable and campaign.parsed_recipe.rounds is None:
            people["extension"] = ExtensionFields(auto_id="extension_%s")
        if not campaign.is_draft:
            people["rename"] = NameForm(initial={"name": campaign.name}, auto_id="rename_%s")
        people["roles"] = Membership.Role.choices
        if terms_of(campaign).may_be_paid_for or (not campaign.unreadable and campaign.readable_recipe.rounds):
            people["spending"] = spending_of(campaign, recruitment_of(campaign))
    return people


@login_required
@require_POST
@posts_by_user
def transition(request: HttpRequest, campaign_id: int, change: Callable[[Campaign], None]) -> HttpResponse:
    """Start, pause or resume a campaign, or end its warm-up."""
    campaign = campaign_for(request, campaign_id, Right.RUN)
    try:
        change(campaign)
    except lifecycle.NotPossible as reason:
        return told(request, campaign, reason)
    return redirect(campaign)


@login_required
@require_POST
@posts_by_user
def discard(request: HttpRequest, campaign_id: int) -> HttpResponse:
    """Delete a draft."""
    campaign = campaign_for(request, campaign_id, Right.OWN)
    try:
        lifecycle.discard(campaign)
    except lifecycle.NotPossible as reason:
        return told(request, campaign, reason)
    messages.info(request, f"“{campaign.name}” has been deleted.")
    return redirect("console:campaigns")


@login_required
@require_safe
def picture(request: HttpRequest, state_id: int) -> HttpResponse:
    """Send an object's picture to those who may see its campaign."""
    visible = State.objects.filter(campaign__in=access.campaigns_for(request.user).values("pk"))
    state = get_object_or_404(visible.select_related("campaign"), pk=state_id)
    return media.response(state.campaign.object_kind, objects.stored(state), media.look_of(request))
