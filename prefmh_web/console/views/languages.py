"""The texts of a campaign in its further languages."""

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from prefmh_web.accounts.roles import SignedInRequest
from prefmh_web.campaigns.errors import NotPossible
from prefmh_web.campaigns.lifecycle.access import Right
from prefmh_web.console.forms.wording import WordingForm
from prefmh_web.console.views.campaigns import campaign_for, posts_by_user, told
from prefmh_web.participants import recruiting, wording


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
@posts_by_user
def languages(request: SignedInRequest, campaign_id: int) -> HttpResponse:
    """Take what people read in each further language. What is not there yet is refused at Start."""
    campaign = campaign_for(request, campaign_id, Right.OWN)
    if campaign.unreadable:
        return redirect(campaign)
    recruitment = recruiting.recruitment_of(campaign)
    posted = request.POST if request.method == "POST" else None
    form = WordingForm(campaign, recruitment.parsed_protocol, posted)
    if posted is not None and form.is_valid():
        try:
            wording.set_translations(campaign, form.translations(), request.user)
        except NotPossible as reason:
            return told(request, campaign, reason)
        messages.info(request, "Saved.")
        return redirect("console:languages", campaign_id=campaign.pk)
    return render(request, "console/languages.html", {"campaign": campaign, "form": form})
