"""The people of a campaign, for its owner: how they come, what they are paid for, and who they are."""

from collections.abc import Mapping
from itertools import chain
from types import ModuleType

from asgiref.sync import sync_to_async
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, QueryDict, StreamingHttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from prefmh_web.accounts.roles import SignedInRequest
from prefmh_web.campaigns.errors import NotPossible
from prefmh_web.campaigns.lifecycle import changes
from prefmh_web.campaigns.lifecycle.access import Right
from prefmh_web.campaigns.models import Campaign
from prefmh_web.campaigns.record import export
from prefmh_web.console.forms.erasure import ForceForm
from prefmh_web.console.forms.study_forms import ParticipantsForm, ProtocolForm
from prefmh_web.console.views.campaigns import campaign_for, posts_by_user, told
from prefmh_web.participants import answers as answer_table
from prefmh_web.participants import attention, erasure, limits, payments
from prefmh_web.participants.models import Participation
from prefmh_web.recruiters import RECRUITERS
from prefmh_web.transport.downloads import stream

_CSV = "text/csv; charset=utf-8"


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
@posts_by_user
def participants(request: SignedInRequest, campaign_id: int) -> HttpResponse:
    """Set up how people come, and show how many have."""
    campaign = campaign_for(request, campaign_id, Right.OWN)
    form, study = ParticipantsForm(campaign, _sent(request)), campaign.config.study
    if (done := _saved(request, campaign, form, {"protocol": "protocol"}, "participants")) is not None:
        return done
    parts = Participation.objects.filter(campaign=campaign)
    invitation = campaign.invitations.filter(revoked_at=None, is_single_use=False).first()
    context = {
        "campaign": campaign,
        "form": form,
        "recruiters": [each for each in RECRUITERS.values() if each.help],
        "platform": study.platform,
        "link": invitation and study.platform.link(request.build_absolute_uri(invitation.get_absolute_url())),
        "joined": parts.count(),
        "places": study.places,
        "placed": limits.held(campaign, study).count(),
        "spending": limits.spending_of(campaign, study),
        "asks_about_person": bool(study.protocol.questions),
        "ended": parts.exclude(outcome="").count(),
        "unpaid": payments.unsettled(campaign),
        "waiting": erasure.waiting_in(campaign),
        "force": ForceForm(),
    }
    return render(request, "console/participants.html", context)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
@posts_by_user
def protocol(request: SignedInRequest, campaign_id: int) -> HttpResponse:
    """Set up what is asked of people beside their votes."""
    campaign = campaign_for(request, campaign_id, Right.OWN)
    form, protocol = ProtocolForm(campaign, _sent(request)), campaign.config.study.protocol
    if (done := _saved(request, campaign, form, {"start": "campaign"}, "protocol")) is not None:
        return done
    taught = attention.states_among(protocol, campaign)
    context = {"campaign": campaign, "form": form, "taught": taught, "has_pairs": bool(protocol.own_pairs)}
    return render(request, "console/protocol.html", context)


def _sent(request: HttpRequest) -> QueryDict | None:
    return request.POST if request.method == "POST" else None


def _saved(
    request: SignedInRequest,
    campaign: Campaign,
    form: ParticipantsForm | ProtocolForm,
    following: Mapping[str, str],
    here: str,
) -> HttpResponse | None:
    """Save what was sent, and go to the page that follows; None where nothing was, or something is wrong with it."""
    if not (form.is_bound and form.is_valid() and form.config):
        return None
    try:
        changes.apply(campaign, form.config, request.user)
    except NotPossible as reason:
        return told(request, campaign, reason)
    messages.info(request, "Saved.")
    page = following.get(request.POST.get("next", ""), here)
    return redirect(f"console:{page}", campaign_id=campaign.pk)


@login_required
@require_safe
async def pay(request: HttpRequest, campaign_id: int) -> HttpResponse | StreamingHttpResponse:
    """Send payments.csv."""
    return await _table(request, campaign_id, payments)


@login_required
@require_safe
async def answers(request: HttpRequest, campaign_id: int) -> HttpResponse | StreamingHttpResponse:
    """Send answers.csv."""
    return await _table(request, campaign_id, answer_table)


async def _table(request: HttpRequest, campaign_id: int, table: ModuleType) -> HttpResponse | StreamingHttpResponse:
    campaign = await sync_to_async(campaign_for)(request, campaign_id, Right.OWN)
    response: HttpResponse | StreamingHttpResponse = HttpResponse(content_type=_CSV)
    if request.method == "GET":
        # Spreadsheets take a file without the mark for one in their own country's encoding.
        response = stream(lambda: chain(("\ufeff",), export.as_csv(table.rows(campaign))), _CSV)
    response["Cache-Control"] = "no-store"
    response["Content-Disposition"] = f'attachment; filename="campaign-{campaign.pk}-{table.NAME}"'
    return response
