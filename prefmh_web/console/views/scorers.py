"""What a researcher does about scorers that fail."""

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from prefmh_web.campaigns.lifecycle import scorers
from prefmh_web.campaigns.lifecycle.access import Right
from prefmh_web.console.views.campaigns import campaign_for, posts_by_user


@login_required
@require_POST
@posts_by_user
def try_again(request: HttpRequest, campaign_id: int) -> HttpResponse:
    """Ask the scorers again that have stopped, and about the objects without a score."""
    campaign = campaign_for(request, campaign_id, Right.RUN)
    scorers.try_again(campaign)
    messages.info(request, "The scorers are asked again.")
    return redirect(campaign)
