"""The links by which people come to vote: made, withdrawn, and the people who came by them shown out."""

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.views.decorators.http import require_POST

from prefmh_web.campaigns.errors import NotPossible
from prefmh_web.campaigns.lifecycle import access
from prefmh_web.campaigns.lifecycle.access import Right
from prefmh_web.campaigns.models import Annotator, Invitation
from prefmh_web.console.views.campaigns import campaign_for, posts_by_user, told


class AnnotatorForm(forms.Form):
    """An annotator by the number that votes.csv shows."""

    annotator = forms.IntegerField(min_value=1, max_value=2**63 - 1)


@login_required
@require_POST
@posts_by_user
def create(request: HttpRequest, campaign_id: int) -> HttpResponse:
    """Make another link; for one person if the field `single_use` is there."""
    campaign = campaign_for(request, campaign_id, Right.RUN)
    try:
        access.invite(campaign, is_single_use="single_use" in request.POST)
    except NotPossible as reason:
        return told(request, campaign, reason)
    return redirect(campaign)


@login_required
@require_POST
@posts_by_user
def revoke(request: HttpRequest, campaign_id: int, invitation_id: int) -> HttpResponse:
    """Withdraw a link; with the field `withdraw`, also the access of those who joined by it."""
    campaign = campaign_for(request, campaign_id, Right.RUN)
    invitation = get_object_or_404(campaign.invitations, pk=invitation_id)
    withdraw = "withdraw" in request.POST
    access.revoke(invitation, withdraw=withdraw)
    people = (
        "Everyone who joined with it is removed; their votes are kept." if withdraw else "People who joined can go on."
    )
    messages.info(request, f"The link is closed. {people}")
    return redirect(campaign)


@login_required
@require_POST
@posts_by_user
def remove_annotator(request: HttpRequest, campaign_id: int) -> HttpResponse:
    """Withdraw one annotator's access; with the field `with_link`, also the link they came by."""
    campaign = campaign_for(request, campaign_id, Right.RUN)
    form = AnnotatorForm(request.POST)
    annotators = campaign.annotators.select_related("invitation")
    found = form.is_valid() and annotators.filter(pk=form.cleaned_data["annotator"]).first()
    if found:
        access.remove(found, with_link="with_link" in request.POST)
        messages.info(request, f"Voter {found.pk} is removed. Their votes are kept.")
        _tell_of_the_way_back(request, found)
    else:
        messages.error(request, "Enter a number from the column annotator of votes.csv.")
    return redirect(campaign)


def _tell_of_the_way_back(request: HttpRequest, removed: Annotator) -> None:
    link = Invitation.objects.filter(annotators=removed).first()
    if link and link.admits_anybody:
        messages.warning(
            request,
            "The link that they used is still open, so they can join again from another browser. To prevent "
            "this, enter the number again and choose “Remove and close their link”.",
        )
