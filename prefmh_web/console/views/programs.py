"""The programs that judge a campaign, and their tokens."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from prefmh_web.accounts.roles import SignedInRequest
from prefmh_web.campaigns.lifecycle import access
from prefmh_web.campaigns.lifecycle import programs as tokens
from prefmh_web.campaigns.lifecycle.access import Right
from prefmh_web.campaigns.models import Judge
from prefmh_web.campaigns.monitoring.programs import programs_of
from prefmh_web.console.tabs import frame
from prefmh_web.console.views.campaigns import campaign_for, posts_by_user


@login_required
@require_safe
def programs(request: SignedInRequest, campaign_id: int) -> HttpResponse:
    """Show the programs of a started campaign."""
    return _shown(request, campaign_for(request, campaign_id, Right.RUN))


@login_required
@require_POST
@posts_by_user
@never_cache
def make_token(request: SignedInRequest, campaign_id: int, place: int) -> HttpResponse:
    """Make a program's token, which this answer alone shows."""
    campaign, judge = _found(request, campaign_id, place)
    return _shown(request, campaign, judge, tokens.make_token(judge, request.user))


@login_required
@require_POST
@posts_by_user
def withdraw(request: SignedInRequest, campaign_id: int, place: int) -> HttpResponse:
    """Let no program in by a token any more."""
    campaign, judge = _found(request, campaign_id, place)
    if tokens.withdraw_token(judge, request.user):
        messages.info(request, f"The token of {judge.program} is withdrawn. It is refused from now on.")
    return redirect("console:programs", campaign.pk)


def _found(request: SignedInRequest, campaign_id: int, place: int) -> tuple[access.SeenCampaign, Judge]:
    campaign = campaign_for(request, campaign_id, Right.RUN)
    return campaign, get_object_or_404(Judge.objects.exclude(program=""), campaign=campaign, place=place)


def _shown(
    request: SignedInRequest, campaign: access.SeenCampaign, judge: Judge | None = None, plain: str = ""
) -> HttpResponse:
    standing = programs_of(list(campaign.judges.all()))
    if not standing:
        raise Http404("No program judges this campaign, or it has not started.")
    context = {"programs": standing, "made_for": judge, "plain": plain}
    return render(request, "console/programs.html", frame(request, campaign) | context)
