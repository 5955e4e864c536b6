"""What a researcher does about model judges that wait."""

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.defaultfilters import pluralize
from django.views.decorators.http import require_POST

from prefmh_web.accounts.roles import SignedInRequest
from prefmh_web.campaigns.lifecycle import scorers
from prefmh_web.campaigns.lifecycle.access import Right
from prefmh_web.campaigns.model_judges import turns
from prefmh_web.console.views.campaigns import campaign_for, posts_by_user


@login_required
@require_POST
@posts_by_user
def try_again(request: HttpRequest, campaign_id: int) -> HttpResponse:
    """Take up the turns, and the judges, that waited for somebody to see to what was wrong."""
    campaign = campaign_for(request, campaign_id, Right.RUN)
    if not campaign.is_under_way:
        messages.error(request, f"Nothing is asked again: the campaign is {campaign.get_status_display().lower()}.")
        return redirect(campaign)
    taken = turns.try_again(campaign)
    messages.info(request, f"{taken} question{pluralize(taken)} asked again.")
    return redirect(campaign)


@login_required
@require_POST
@posts_by_user
def accept(request: SignedInRequest, campaign_id: int) -> HttpResponse:
    """Let the model that a judge's server has turned to count as that judge from now on."""
    campaign = campaign_for(request, campaign_id, Right.RUN)
    scorers.accept(campaign, request.user)
    messages.info(request, "The new model is used from now on. The export shows which votes it cast.")
    return redirect(campaign)
