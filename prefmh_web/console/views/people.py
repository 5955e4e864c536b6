"""The people of a campaign, for its owner and managers. Only the owner sees how platforms name them."""

from __future__ import annotations

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_POST, require_safe

from prefmh_web.accounts.roles import SignedInRequest
from prefmh_web.campaigns.errors import NotPossible
from prefmh_web.campaigns.lifecycle import access
from prefmh_web.campaigns.lifecycle.access import Right
from prefmh_web.campaigns.models import Annotator, Invitation
from prefmh_web.campaigns.voters import key_of
from prefmh_web.config import Outcome
from prefmh_web.console.forms.erasure import ErasureForm
from prefmh_web.console.forms.people import BonusForm, ExclusionForm, PeopleForm
from prefmh_web.console.tabs import frame
from prefmh_web.console.views.campaigns import campaign_for, posts_by_user
from prefmh_web.participants import attention, exclusion, payments, speed
from prefmh_web.participants.people import Person, people_of, person_of

A_PAGE = 100


@login_required
@require_safe
def people(request: SignedInRequest, campaign_id: int) -> HttpResponse:
    """Show who takes part, in the order and with the limits of the address."""
    campaign = campaign_for(request, campaign_id, Right.RUN)
    form, everybody = PeopleForm(request.GET), people_of(campaign)
    pages = Paginator(form.shown(everybody), A_PAGE)
    context = frame(request, campaign) | {
        "form": form,
        "panel": campaign.has_panel,
        "all": len(everybody),
        "page": pages.get_page(request.GET.get("page")),
        "gold": (gold := attention.answers_in(campaign)),
        "gold_alike": attention.share_alike(gold),
        "most_a_minute": speed.most_a_minute(campaign),
    }
    return render(request, "console/people.html", context, status=200 if form.is_valid() else 400)


@login_required
@require_safe
def person(request: SignedInRequest, campaign_id: int, voter: int) -> HttpResponse:
    """Show one of them."""
    campaign, annotator = _found(request, campaign_id, voter)
    return shown(request, campaign, annotator)


@login_required
@require_POST
@posts_by_user
def end(request: SignedInRequest, campaign_id: int, voter: int) -> HttpResponse:
    """End somebody's part."""
    campaign, annotator = _found(request, campaign_id, voter)
    form = ExclusionForm(request.POST, person=person_of(annotator))
    if not form.is_valid():
        return shown(request, campaign, annotator, end=form)
    try:
        if form.cleaned_data.get("with_link") and annotator.invitation:
            # First: nobody comes back in between.
            access.revoke(annotator.invitation)
        exclusion.exclude(annotator, request.user, form.grounds, is_paid=form.pays)
    except NotPossible as reason:
        messages.error(request, str(reason))
    else:
        _tell(request, person_of(annotator))
    return redirect("console:person", campaign.pk, voter)


@login_required
@require_POST
@posts_by_user
def bonus(request: SignedInRequest, campaign_id: int, voter: int) -> HttpResponse:
    """Store what somebody is paid beside the pay."""
    campaign, annotator = found_by_owner(request, campaign_id, voter)
    form = BonusForm(request.POST)
    if not form.is_valid():
        return shown(request, campaign, annotator, bonus=form)
    try:
        payments.set_bonus(annotator, form.cleaned_data["bonus"], by=request.user)
        messages.info(request, "Saved.")
    except NotPossible as reason:
        messages.error(request, str(reason))
    return redirect("console:person", campaign.pk, voter)


def found_by_owner(request: HttpRequest, campaign_id: int, voter: int) -> tuple[access.SeenCampaign, Annotator]:
    """Return a campaign and one of its people to its owner; 404 for everybody else."""
    return _found(request, campaign_id, voter, Right.OWN)


def _found(
    request: HttpRequest, campaign_id: int, voter: int, right: Right = Right.RUN
) -> tuple[access.SeenCampaign, Annotator]:
    campaign = campaign_for(request, campaign_id, right)
    return campaign, get_object_or_404(campaign.annotators.select_related("invitation"), pk=key_of(campaign, voter))


def shown(
    request: SignedInRequest, campaign: access.SeenCampaign, annotator: Annotator, **wrong: forms.Form
) -> HttpResponse:
    """Show one person; `wrong` are forms that could not be read, by their names."""
    found = person_of(annotator)
    part, study = found.part, campaign.config.study
    context = {
        "campaign": campaign,
        "person": found,
        "pay": study.paid_to(part, found.votes) if part and part.outcome else None,
        "exclusion": exclusion.of(annotator),
        "is_owed": bool(payments.owed(campaign, [annotator.pk])),
        "has_code": bool(study.codes.get(Outcome.ENDED)),
        "may_own": access.right_in(campaign, request.user) >= Right.OWN,
        "forms": {
            "end": ExclusionForm(person=found),
            "bonus": BonusForm(initial={"bonus": part and part.bonus}),
            "erase": ErasureForm(has_id=found.has_id),
        }
        | wrong,
    }
    return render(request, "console/person.html", context)


def _tell(request: HttpRequest, ended: Person) -> None:
    if ended.outcome and ended.outcome is not Outcome.ENDED:
        stays = f"The part of person {ended.number} had ended before: {ended.outcome.label}. That stays, with its pay."
        messages.warning(request, f"{stays} They can vote no more.")
        return
    messages.info(request, f"The part of person {ended.number} is ended. Their votes are kept.")
    link = Invitation.objects.filter(annotators=ended.annotator).first()
    if link and link.admits_anybody and ended.part is None:
        messages.warning(
            request,
            "The link that they used is still open, so they can join again from another browser. You can close it "
            "on the campaign's page “Setup”, under “Links for voters”.",
        )
