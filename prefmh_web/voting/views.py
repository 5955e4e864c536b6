"""The voter's pages: welcome, vote, and the pictures of the pair."""

from dataclasses import replace
from uuid import UUID

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from prefmh_web.campaigns import objects
from prefmh_web.campaigns.engine import leases
from prefmh_web.campaigns.frozen import started_campaign
from prefmh_web.campaigns.models import Annotator, Campaign, Comparison, Invitation, Lease, Side
from prefmh_web.campaigns.monitoring.judging import waits_in
from prefmh_web.objects import StoredObject, media
from prefmh_web.participants import attention, completion, consent, erasure, payments, stages
from prefmh_web.participants.erasure import Scope
from prefmh_web.participants.markdown import rendered
from prefmh_web.participants.models import Stage
from prefmh_web.participants.recruiting import terms_of
from prefmh_web.participants.stages import PracticeForm
from prefmh_web.transport import rate_limits
from prefmh_web.voting import admission, arriving, practice, reporting
from prefmh_web.voting.language import spoken_by_link
from prefmh_web.voting.screens import ResponseError, response_in, screen_for
from prefmh_web.voting.screens.pair import PairResponse


@spoken_by_link
@require_http_methods(["GET", "HEAD", "POST"])
@rate_limits.posts("join", rate_limits.by_address)
def welcome(request: HttpRequest, token: str) -> HttpResponse:
    """Say what the campaign is about; a click joins it."""
    invitation = admission.invitation_by(token)
    if invitation is None:
        raise Http404("There is no such link.")
    recruiter = terms_of(invitation.campaign).recruiter
    if recruiter.person and request.method != "POST" and request.GET:
        return arriving.arrive(request, invitation, recruiter)
    arrival = arriving.arrival_in(request, invitation, recruiter)
    try:
        if request.method == "POST":
            joined = admission.join(request.session, invitation, arrival, consent.answer_in(request.POST))
            return arriving.joined(token) if joined else redirect("voting:welcome", token=token)
        annotator = admission.demand_admission(request.session, invitation, arrival)
    except admission.NotAdmitted as reason:
        context = {"reason": reason, "has_nothing_left": isinstance(reason, admission.NothingLeft), "arrival": arrival}
        return render(request, "voting/not_admitted.html", context, status=403)
    except admission.PartEnded as part:
        return render(request, "voting/part_ended.html", {"end": part.end, **_asked(invitation.campaign)})
    page = render(request, "voting/welcome.html", _about(invitation, annotator))
    return arriving.kept(page, arrival, invitation) if arrival and recruiter.is_open else page


def _asked(campaign: Campaign) -> dict[str, object]:
    """Return what people are asked to agree to, where a platform sends them."""
    if not terms_of(campaign).recruiter.knows_people:
        return {}
    text = campaign.config.study.consent
    return {"consent": rendered(text), "version": consent.version_of(text)} if text else {}


def _must_agree(annotator: Annotator | None, campaign: Campaign) -> bool:
    if not terms_of(campaign).recruiter.knows_people:
        return False
    return consent.is_needed(annotator, campaign.config.study)


def _about(invitation: Invitation, annotator: Annotator | None) -> dict[str, object]:
    campaign = invitation.campaign
    started = started_campaign(campaign)
    return {
        **(_asked(campaign) if _must_agree(annotator, campaign) else {}),
        "is_back": annotator is not None,
        **_panelist(invitation),
        "campaign": campaign,
        "instructions": campaign.config.instructions,
        "questions": [judge.question for judge in started.judges if judge.panelist in (None, invitation.panelist)],
        "kind": started.object_kind,
        "votes_each": terms_of(campaign).votes_each,
        "minutes_each": terms_of(campaign).most_active_minutes,
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


@spoken_by_link
@require_http_methods(["GET", "HEAD", "POST"])
@rate_limits.polite
def vote(request: HttpRequest, token: str) -> HttpResponse:
    """Show the pair. A vote comes by socket; by POST where no socket can open or no script runs."""
    annotator = admission.annotator_by(request.session, token)
    if annotator is None:
        return redirect("voting:welcome", token=token)
    if request.method == "POST":
        rate_limits.spend("votes", annotator.pk)
        if not stages.has_come_to_votes(annotator):
            return redirect("voting:stage", token=token)
        try:
            response_in(request.POST).respond(annotator)
        except ResponseError as error:
            return render(request, "voting/bad_response.html", {"error": error, "token": token}, status=400)
        except Comparison.DoesNotExist as error:
            raise Http404("This pair was never shown to you.") from error
        return redirect("voting:vote", token=token)
    if request.method == "HEAD":
        # Whoever asks only whether the page is there holds no pair.
        return HttpResponse()
    if _must_agree(annotator, annotator.campaign):
        return redirect("voting:welcome", token=token)
    was_sent = terms_of(annotator.campaign).recruiter.knows_people
    if was_sent and stages.arrive(annotator) != Stage.VOTES:
        return redirect("voting:stage", token=token)
    leases.wake(annotator)
    context = {
        "screen": screen_for(annotator.pk),
        "token": token,
        "may_withdraw": was_sent,
        "may_undo": annotator.campaign.config.answering.undo,
    }
    return render(request, "voting/vote.html", context)


@spoken_by_link
@require_http_methods(["GET", "HEAD", "POST"])
@rate_limits.polite
def stage(request: HttpRequest, token: str) -> HttpResponse:
    """Show the stage at which somebody is, before the votes or after them, and take what they answer."""
    annotator = admission.annotator_by(request.session, token)
    if annotator is None or _must_agree(annotator, annotator.campaign):
        return redirect("voting:welcome", token=token)
    if stages.arrive(annotator) == Stage.VOTES:
        return redirect("voting:vote", token=token)
    if request.method == "POST":
        rate_limits.spend("votes", annotator.pk)
        page = stages.go_on(annotator, request.POST.get("stage", ""), request.POST)
        if page is None:
            return redirect("voting:stage", token=token)
    elif (page := stages.page(annotator)) is None:
        # Their part has ended: the first page tells how.
        return redirect("voting:welcome", token=token)
    context = {"page": page, "token": token}
    if isinstance(page.form, PracticeForm):
        return render(request, practice.TEMPLATE, {**context, **practice.context(page.form.exercise, annotator, token)})
    return render(request, "voting/stage.html", context)


@spoken_by_link
@require_http_methods(["GET", "HEAD", "POST"])
@rate_limits.posts("join", rate_limits.by_address)
def withdraw(request: HttpRequest, token: str) -> HttpResponse:
    """Ask somebody who was sent by a platform whether they want to leave for good, and let them."""
    annotator = admission.annotator_by(request.session, token)
    if annotator is None or not terms_of(annotator.campaign).recruiter.knows_people:
        return redirect("voting:welcome", token=token)
    if request.method != "POST":
        context = {"token": token, "is_owed": payments.would_be_owed(annotator), "has_id": _has_id(annotator)}
        return render(request, "voting/withdraw.html", context)
    is_owed, wish = payments.would_be_owed(annotator), request.POST.get("erase")
    # The code is on this page for the last time, if they want to be forgotten.
    end, erased = completion.withdraw(annotator, annotator.campaign), None
    if wish:
        scope = Scope.PARTICIPANT if "everywhere" in request.POST else Scope.PARTICIPATION
        erased = erasure.erase(annotator, scope, is_forced=wish == "now")
    if is_owed and wish == "now":
        # Nobody could tell any more whom to pay for it.
        end = replace(end, code="", address="", is_paid=False)
    return render(request, "voting/part_ended.html", {"end": end, "erased": erased})


def _has_id(annotator: Annotator) -> bool:
    return not terms_of(annotator.campaign).recruiter.is_open


@spoken_by_link
@require_http_methods(["GET", "HEAD", "POST"])
@rate_limits.polite
def report(request: HttpRequest, token: str, lease: UUID) -> HttpResponse:
    """Ask what is wrong with a pair; who says so skips it."""
    annotator = admission.annotator_by(request.session, token)
    if annotator is None:
        return redirect("voting:welcome", token=token)
    form = reporting.ProblemForm(request.POST if request.method == "POST" else None)
    if request.method != "POST" or not form.is_valid():
        return render(request, "voting/report.html", {"form": form, "token": token})
    rate_limits.spend("votes", annotator.pk)
    try:
        PairResponse(lease, choice=None, elapsed_ms=None).respond(annotator)
    except Comparison.DoesNotExist as error:
        raise Http404("This pair was never shown to you.") from error
    reporting.report(lease, annotator, **form.cleaned_data)
    return redirect("voting:vote", token=token)


@require_safe
def picture(request: HttpRequest, lease: UUID, side: str) -> HttpResponse:
    """Send the picture of one side of a pair to the person it was leased to.

    Named by the lease, because an object's own number would tell which of the two is the proposal.
    """
    annotator, first, second = _pair_of(lease)
    joined = admission.annotator_in(request.session, annotator.campaign_id)
    if joined is None or joined.pk != annotator.pk:
        raise PermissionDenied
    return _picture_of(request, annotator.campaign, first, second, Side(side))


def _pair_of(key: UUID) -> tuple[Annotator, StoredObject, StoredObject]:
    pairs = Lease.objects.select_related("comparison__current__campaign", "comparison__proposal__campaign")
    if lease := pairs.select_related("annotator__campaign").filter(key=key).first():
        return lease.annotator, objects.stored(lease.first), objects.stored(lease.second)
    # A trial between two pairs stands in the place of one.
    check = attention.by_key(key)
    if check is None:
        raise Http404("There is no such pair.")
    annotator = check.participation.annotator
    shown = attention.shown_pair(check, annotator.campaign)
    return annotator, shown.first, shown.second


def _picture_of(
    request: HttpRequest, campaign: Campaign, first: StoredObject, second: StoredObject, side: Side
) -> HttpResponse:
    shown, beside = (first, second) if side == Side.FIRST else (second, first)
    return media.response(request, campaign.object_kind, shown, beside)
