"""The researcher's pages: list, set up, watch, and change a campaign's state."""

from collections.abc import Callable

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from prefmh_web.campaigns import lifecycle, setup
from prefmh_web.campaigns.models import Campaign, State
from prefmh_web.campaigns.pictures import Look, picture_response
from prefmh_web.console.board import board_for
from prefmh_web.console.forms import SetupForms


def own_campaign(request: HttpRequest, campaign_id: int) -> Campaign:
    """Return a campaign of the signed-in researcher; 404 for anybody else's."""
    return get_object_or_404(Campaign.objects.select_related("catalog"), pk=campaign_id, owner=request.user)


@login_required
@require_GET
def campaigns(request: HttpRequest) -> HttpResponse:
    """List the researcher's campaigns."""
    mine = Campaign.objects.filter(owner=request.user)
    return render(request, "console/campaigns.html", {"campaigns": mine})


@login_required
@require_http_methods(["GET", "POST"])
def create(request: HttpRequest) -> HttpResponse:
    """Set up a new campaign."""
    forms = SetupForms(request)
    if request.method == "POST" and (fields := forms.checked()) is not None:
        file = forms.space.upload
        campaign = setup.create(owner=request.user, file=file, filename=file.name if file else "", **fields)
        return redirect(campaign)
    return render(request, "console/setup.html", {"forms": forms})


@login_required
@require_http_methods(["GET", "POST"])
def edit(request: HttpRequest, campaign_id: int) -> HttpResponse:
    """Change the setup of a draft."""
    campaign = own_campaign(request, campaign_id)
    forms = SetupForms(request, campaign)
    if request.method == "POST" and (fields := forms.checked()) is not None:
        try:
            setup.change(campaign, file=forms.space.upload, **fields)
        except lifecycle.NotPossible as reason:
            messages.error(request, str(reason))
        return redirect(campaign)
    return render(request, "console/setup.html", {"forms": forms, "campaign": campaign})


@login_required
@require_GET
def campaign(request: HttpRequest, campaign_id: int) -> HttpResponse:
    """Show a campaign live."""
    board = board_for(own_campaign(request, campaign_id))
    invitation = board.campaign.invitations.first()
    link = request.build_absolute_uri(invitation.get_absolute_url()) if invitation else None
    return render(request, "console/campaign.html", {"board": board, "invitation_link": link})


@login_required
@require_POST
def transition(request: HttpRequest, campaign_id: int, change: Callable[[Campaign], None]) -> HttpResponse:
    """Start, pause or resume a campaign."""
    campaign = own_campaign(request, campaign_id)
    try:
        change(campaign)
    except lifecycle.NotPossible as reason:
        messages.error(request, str(reason))
    return redirect(campaign)


@login_required
@require_POST
def discard(request: HttpRequest, campaign_id: int) -> HttpResponse:
    """Delete a draft."""
    campaign = own_campaign(request, campaign_id)
    try:
        lifecycle.discard(campaign)
    except lifecycle.NotPossible as reason:
        messages.error(request, str(reason))
        return redirect(campaign)
    messages.info(request, f"“{campaign.name}” is deleted.")
    return redirect("console:campaigns")


@login_required
@require_GET
def picture(request: HttpRequest, state_id: int) -> HttpResponse:
    """Send an object's picture to the campaign's owner."""
    state = get_object_or_404(State.objects.select_related("campaign"), pk=state_id, campaign__owner=request.user)
    return picture_response(state, Look.of(request))
