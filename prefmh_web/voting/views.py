"""The pages of a voter: welcome, the stages, the pair, withdrawing, reporting a problem, and the pictures.

They speak the language of the campaign, whatever the browser asks for, so that all judge by the same words.

Somebody may come by a platform's link: its parameters leave the address at once, and stay with the browser until the
person presses the first button.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from uuid import UUID

from django import forms
from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import translation
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods, require_safe

from prefmh_web.campaigns.engine import leases, suspension
from prefmh_web.campaigns.events import LONGEST_REPORT
from prefmh_web.campaigns.frozen import limits_of, started_campaign
from prefmh_web.campaigns.models import Campaign, Comparison, Invitation, Lease, ReportReason, Side, Voter
from prefmh_web.campaigns.monitoring.judging import waits_in
from prefmh_web.campaigns.objects import Pair, leased_pair, own_pair, shown
from prefmh_web.objects import media
from prefmh_web.objects.texts import rendered
from prefmh_web.participants import attention, completion, consent, erasure, joining, payments, stages
from prefmh_web.participants.erasure import Scope
from prefmh_web.participants.joining import Arrival
from prefmh_web.participants.models import Stage
from prefmh_web.participants.stages import PracticeForm
from prefmh_web.recruiters import Recruiter
from prefmh_web.transport import rate_limits
from prefmh_web.voting import admission
from prefmh_web.voting.responses import Response, ResponseError, response_in
from prefmh_web.voting.screens import screen_for

COOKIE = "prefmh_arrival"
"""Who has come by a platform's link and has not pressed the button yet."""
_COOKIE_SECONDS = 24 * 60 * 60
View = Callable[..., HttpResponseBase]


def _page(view: View) -> View:
    """Let a view answer GET, HEAD and POST, in the language of the campaign whose link the address names. It gets the
    invitation of that link.
    """

    @wraps(view)
    @require_http_methods(["GET", "HEAD", "POST"])
    def speaking(request: HttpRequest, token: str, **rest: object) -> HttpResponseBase:
        invitation = admission.invitation_by(token)
        if invitation is None:
            raise Http404("There is no such link.")
        with translation.override(invitation.campaign.config.language):
            return view(request, invitation, **rest)

    return speaking


def _of_voters(view: View) -> View:
    """Give a view the token of the link and the voter that the browser is, in place of an invitation. Who has not
    joined is sent to the first page.
    """

    @wraps(view)
    def of_voters(request: HttpRequest, invitation: Invitation, **rest: object) -> HttpResponseBase:
        voter = admission.voter_by(request.session, invitation)
        if voter is None:
            return redirect("voting:welcome", token=invitation.token)
        return view(request, invitation.token, voter, **rest)

    return of_voters


def _voters_page(view: View) -> View:
    """Let a view be a page of somebody who has joined."""
    return _page(rate_limits.polite(_of_voters(view)))


@_page
@rate_limits.posts("join", rate_limits.by_address)
def welcome(request: HttpRequest, invitation: Invitation) -> HttpResponse:
    """Say what the campaign is about; a click joins it."""
    recruiter = limits_of(invitation.campaign).recruiter
    if recruiter.person and request.method != "POST" and request.GET:
        return _arrive(request, invitation, recruiter)
    arrival = _arrival_in(request, invitation, recruiter)
    try:
        if request.method == "POST":
            joined = admission.join(request.session, invitation, arrival, consent.answer_in(request.POST))
            return _joined(invitation.token) if joined else redirect("voting:welcome", token=invitation.token)
        voter = admission.require_admission(request.session, invitation, arrival)
    except joining.NotAdmitted as reason:
        context = {"reason": reason, "has_nothing_left": isinstance(reason, admission.NothingLeft), "arrival": arrival}
        return render(request, "voting/not_admitted.html", context, status=403)
    except admission.PartEnded as ended:
        return render(request, "voting/part_ended.html", {"end": ended.end, **_asked(invitation.campaign)})
    page = render(request, "voting/welcome.html", _about(invitation, voter))
    return _kept(page, arrival, invitation) if arrival and recruiter.is_open else page


def _arrive(request: HttpRequest, invitation: Invitation, recruiter: Recruiter) -> HttpResponse:
    """Keep what the address says of the person in their browser, and send them to the address without it."""
    try:
        checks_ids = invitation.campaign.config.study.checks_ids
        arrival = joining.read(recruiter, request.GET.dict(), checks_ids=checks_ids)
    except joining.Preview:
        return render(request, "voting/preview.html")
    except joining.NotFromThere as reason:
        return render(request, "voting/not_from_there.html", {"reason": reason, "platform": recruiter}, status=400)
    admission.leave_unless(request.session, invitation.campaign, arrival)
    return _kept(redirect("voting:welcome", token=invitation.token), arrival, invitation)


def _kept(response: HttpResponse, arrival: Arrival, invitation: Invitation) -> HttpResponse:
    """Let the browser keep who has come."""
    response.set_cookie(
        COOKIE,
        joining.sign(arrival, invitation.token),
        max_age=_COOKIE_SECONDS,
        path=_welcome_path(invitation.token),
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Lax",
    )
    return response


def _arrival_in(request: HttpRequest, invitation: Invitation, recruiter: Recruiter) -> Arrival | None:
    """Return who has come by an invitation in this browser and has not pressed the button yet. Without ids, that is
    somebody new.
    """
    if not recruiter.knows_people:
        return None
    arrival = joining.signed(request.COOKIES.get(COOKIE, ""), invitation.token)
    if not recruiter.is_open:
        return arrival
    has_joined = admission.who_joined(request.session, invitation.campaign_id)
    return None if has_joined else arrival or joining.of_nobody()


def _joined(token: str) -> HttpResponse:
    """Send somebody who has pressed the button to their pair."""
    response = redirect("voting:vote", token=token)
    response.delete_cookie(COOKIE, path=_welcome_path(token), samesite="Lax")
    return response


def _welcome_path(token: str) -> str:
    return reverse("voting:welcome", args=[token])


def _asked(campaign: Campaign) -> dict[str, object]:
    """Return what people are asked to agree to, where there is something."""
    text = consent.text_of(campaign.config.study)
    return {"consent": rendered(text), "version": consent.version_of(text)} if text else {}


def _about(invitation: Invitation, voter: Voter | None) -> dict[str, object]:
    campaign = invitation.campaign
    started = started_campaign(campaign)
    return {
        **(_asked(campaign) if consent.is_needed(voter, campaign.config.study) else {}),
        "is_back": voter is not None,
        **_panelist(invitation),
        "campaign": campaign,
        "instructions": campaign.config.instructions,
        "questions": [judge.question for judge in started.judges if judge.panelist in (None, invitation.panelist)],
        "kind": started.object_kind,
        "votes_per_person": started.limits.votes_per_person,
        "minutes_per_person": started.limits.active_minutes,
    }


def _panelist(invitation: Invitation) -> dict[str, object]:
    """Return which panelist somebody is, and how many chains wait for them: the reminder on their own page."""
    if invitation.panelist is None:
        return {}
    waits = waits_in(invitation.campaign).get(invitation.panelist, [])
    return {
        "panelist": invitation.panelist,
        "panelists": len(invitation.campaign.config.panelists),
        "waiting": len(waits),
    }


@_voters_page
def vote(request: HttpRequest, token: str, voter: Voter) -> HttpResponse:
    """Show the pair. A vote comes by socket; by POST where no socket can open or no script runs."""
    if request.method == "POST":
        rate_limits.spend("votes", voter.pk)
        if not stages.has_come_to_votes(voter):
            return redirect("voting:stage", token=token)
        try:
            response_in(request.POST).respond(voter)
        except ResponseError as error:
            return render(request, "voting/bad_response.html", {"error": error, "token": token}, status=400)
        except Comparison.DoesNotExist as error:
            raise Http404("This pair was never shown to you.") from error
        return redirect("voting:vote", token=token)
    if request.method == "HEAD":
        # Whoever asks only whether the page is there holds no pair.
        return HttpResponse()
    if consent.is_needed(voter, voter.campaign.config.study):
        return redirect("voting:welcome", token=token)
    was_sent = limits_of(voter.campaign).recruiter.knows_people
    if was_sent and stages.arrive(voter) != Stage.VOTES:
        return redirect("voting:stage", token=token)
    leases.wake(voter)
    context = {
        "screen": screen_for(voter.pk),
        "token": token,
        "may_withdraw": was_sent,
        "may_undo": voter.campaign.config.answering.undo,
    }
    return render(request, "voting/vote.html", context)


@_voters_page
def stage(request: HttpRequest, token: str, voter: Voter) -> HttpResponse:
    """Show the stage at which somebody is, before the votes or after them, and take what they answer."""
    if consent.is_needed(voter, voter.campaign.config.study):
        return redirect("voting:welcome", token=token)
    if stages.arrive(voter) == Stage.VOTES:
        return redirect("voting:vote", token=token)
    if request.method == "POST":
        rate_limits.spend("votes", voter.pk)
        page = stages.go_on(voter, request.POST.get("stage", ""), request.POST)
        if page is None:
            return redirect("voting:stage", token=token)
    elif (page := stages.page(voter)) is None:
        # Their part has ended: the first page tells how.
        return redirect("voting:welcome", token=token)
    context = {"page": page, "token": token}
    if isinstance(page.form, PracticeForm):
        exercise, campaign = page.form.exercise, voter.campaign

        def address(side: Side) -> str:
            return reverse("voting:practice-picture", args=[token, exercise.number, side])

        of_pair = shown(own_pair(exercise.pair, campaign), campaign, address)
        return render(request, "voting/practice.html", {**context, **of_pair, "exercise": exercise})
    return render(request, "voting/stage.html", context)


@_page
@rate_limits.posts("join", rate_limits.by_address)
def withdraw(request: HttpRequest, invitation: Invitation) -> HttpResponse:
    """Ask somebody who was sent by a platform whether they want to leave for good, and let them. Whoever has left may
    still choose to be forgotten.
    """
    recruiter, voter = limits_of(invitation.campaign).recruiter, admission.leaver_by(request.session, invitation)
    if voter is None or not recruiter.knows_people:
        return redirect("voting:welcome", token=invitation.token)
    if request.method != "POST":
        is_owed = payments.would_be_owed(voter)
        context = {"token": invitation.token, "is_owed": is_owed, "has_id": not recruiter.is_open}
        return render(request, "voting/withdraw.html", context)
    is_owed, wish = payments.would_be_owed(voter), request.POST.get("erase")
    # The code is on this page for the last time, if they want to be forgotten.
    end, erased = completion.withdraw(voter), None
    if wish:
        scope = Scope.PARTICIPANT if "everywhere" in request.POST else Scope.PARTICIPATION
        erased = erasure.erase(voter, scope, is_forced=wish == "now")
    if is_owed and wish == "now":
        # Nobody could tell any more whom to pay for it.
        end = replace(end, code="", address="", is_paid=False)
    return render(request, "voting/part_ended.html", {"end": end, "erased": erased})


_REASONS = {
    ReportReason.NOT_SHOWN: _("One of them is not shown, or is broken."),
    ReportReason.UPSETTING: _("One of them is upsetting."),
    ReportReason.UNDECIDED: _("I cannot decide."),
    ReportReason.OTHER: _("Something else."),
}


class ProblemForm(forms.Form):
    """What is wrong with a pair."""

    reason = forms.ChoiceField(
        choices=list(_REASONS.items()), widget=forms.RadioSelect, label=_("What is wrong with this pair?")
    )
    words = forms.CharField(
        max_length=LONGEST_REPORT,
        required=False,
        widget=forms.Textarea(attrs={"rows": 3}),
        label=_("In your own words, if you like"),
    )


@_voters_page
def report(request: HttpRequest, token: str, voter: Voter, lease: UUID) -> HttpResponse:
    """Ask what is wrong with a pair; who says so skips it."""
    form = ProblemForm(request.POST if request.method == "POST" else None)
    if request.method != "POST" or not form.is_valid():
        return render(request, "voting/report.html", {"form": form, "token": token})
    rate_limits.spend("votes", voter.pk)
    try:
        Response(lease).respond(voter)
    except Comparison.DoesNotExist as error:
        raise Http404("This pair was never shown to you.") from error
    suspension.report(lease, voter, **form.cleaned_data)
    return redirect("voting:vote", token=token)


@require_safe
def picture(request: HttpRequest, lease: UUID, side: str) -> HttpResponse:
    """Send the picture of one side of a pair to the person it was leased to.

    Named by the lease, because an object's own number would tell which of the two is the proposal.
    """
    voter, pair = _pair_of(lease)
    joined = admission.voter_in(request.session, voter.campaign_id)
    if joined is None or joined.pk != voter.pk:
        raise PermissionDenied
    return _picture_of(request, voter.campaign, pair, side)


def _pair_of(key: UUID) -> tuple[Voter, Pair]:
    pairs = Lease.objects.select_related("comparison__current__campaign", "comparison__proposal__campaign")
    if lease := pairs.select_related("voter__campaign").filter(key=key).first():
        return lease.voter, leased_pair(lease, lease.voter.campaign)
    # A trial between two pairs stands in the place of one.
    check = attention.by_key(key)
    if check is None:
        raise Http404("There is no such pair.")
    voter = check.participation.voter
    return voter, attention.shown_pair(check, voter.campaign)


def _picture_of(request: HttpRequest, campaign: Campaign, pair: Pair, side: str) -> HttpResponse:
    return media.response(request, campaign.object_kind, *pair.stored(Side(side)))


@require_safe
def practice_picture(request: HttpRequest, token: str, number: str, side: str) -> HttpResponse:
    """Send the picture of one side of a pair to practise on, to those who take part."""
    invitation = admission.invitation_by(token)
    voter = admission.voter_by(request.session, invitation) if invitation else None
    pairs = voter.campaign.config.study.protocol.practice if voter else ()
    if voter is None or int(number) >= len(pairs):
        raise Http404("There is no such pair.")
    return _picture_of(request, voter.campaign, own_pair(pairs[int(number)], voter.campaign), side)
