"""The voter's pages: welcome, vote, and the pictures of the pair."""

from uuid import UUID

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from prefmh_web.annotate import admission, arriving
from prefmh_web.annotate.screens import ResponseError, response_in, screen_for
from prefmh_web.campaigns.engine import leases
from prefmh_web.campaigns.models import Annotator, Campaign, Comparison, Lease, Side
from prefmh_web.campaigns.started import objects, started_campaign
from prefmh_web.objects import media
from prefmh_web.participants import completion, consent
from prefmh_web.participants.markdown import rendered
from prefmh_web.participants.recruiting import recruitment_of, terms_of
from prefmh_web.transport import rate_limits


@require_http_methods(["GET", "HEAD", "POST"])
@rate_limits.posts("join", rate_limits.by_address)
def welcome(request: HttpRequest, token: str) -> HttpResponse:
    """Say what the campaign is about; a click joins it."""
    invitation = admission.invitation_by(token)
    if invitation is None:
        raise Http404("There is no such link.")
    recruiter = terms_of(invitation.campaign).recruiter
    if recruiter.knows_people and request.method != "POST" and request.GET:
        return arriving.arrive(request, invitation, recruiter)
    arrival = arriving.arrival_in(request, token) if recruiter.knows_people else None
    try:
        if request.method == "POST":
            joined = admission.join(request.session, invitation, arrival, consent.answer_in(request.POST))
            return arriving.joined(token) if joined else redirect("annotate:welcome", token=token)
        annotator = admission.demand_admission(request.session, invitation, arrival)
    except admission.NotAdmitted as reason:
        return render(request, "annotate/not_admitted.html", {"reason": reason}, status=403)
    except admission.PartEnded as part:
        return render(request, "annotate/part_ended.html", {"end": part.end, **_asked(invitation.campaign)})
    return render(request, "annotate/welcome.html", _about(invitation.campaign, annotator))


def _asked(campaign: Campaign) -> dict[str, object]:
    """Return what people are asked to agree to, where a platform sends them."""
    text = recruitment_of(campaign).consent if terms_of(campaign).recruiter.knows_people else ""
    return {"consent": rendered(text), "version": consent.version_of(text)} if text else {}


def _must_agree(annotator: Annotator | None, campaign: Campaign) -> bool:
    if not terms_of(campaign).recruiter.knows_people:
        return False
    return consent.is_needed(annotator, recruitment_of(campaign))


def _about(campaign: Campaign, annotator: Annotator | None) -> dict[str, object]:
    started = started_campaign(campaign)
    return {
        **(_asked(campaign) if _must_agree(annotator, campaign) else {}),
        "is_back": annotator is not None,
        "campaign": campaign,
        "questions": [judge.question for judge in started.judges],
        "nouns": started.object_kind.nouns if started.is_readable else "objects",
        "votes_each": terms_of(campaign).votes_each,
    }


@require_http_methods(["GET", "HEAD", "POST"])
@rate_limits.polite
def vote(request: HttpRequest, token: str) -> HttpResponse:
    """Show the pair. A vote comes by socket; by POST where no socket can open or no script runs."""
    annotator = admission.annotator_by(request.session, token)
    if annotator is None:
        return redirect("annotate:welcome", token=token)
    if request.method == "POST":
        rate_limits.spend("votes", annotator.pk)
        try:
            response_in(request.POST).respond(annotator)
        except ResponseError as error:
            return render(request, "annotate/bad_response.html", {"error": error, "token": token}, status=400)
        except Comparison.DoesNotExist as error:
            raise Http404("This pair was never shown to you.") from error
        return redirect("annotate:vote", token=token)
    if request.method == "HEAD":
        # Whoever asks only whether the page is there holds no pair.
        return HttpResponse()
    if _must_agree(annotator, annotator.campaign):
        return redirect("annotate:welcome", token=token)
    leases.wake(annotator)
    may_withdraw = terms_of(annotator.campaign).recruiter.knows_people
    context = {"screen": screen_for(annotator.pk), "token": token, "may_withdraw": may_withdraw}
    return render(request, "annotate/vote.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@rate_limits.posts("join", rate_limits.by_address)
def withdraw(request: HttpRequest, token: str) -> HttpResponse:
    """Ask somebody who was sent by a platform whether they want to leave for good, and let them."""
    annotator = admission.annotator_by(request.session, token)
    if annotator is None or not terms_of(annotator.campaign).recruiter.knows_people:
        return redirect("annotate:welcome", token=token)
    if request.method != "POST":
        return render(request, "annotate/withdraw.html", {"token": token})
    end = completion.withdraw(annotator, annotator.campaign, erase="erase" in request.POST)
    return render(request, "annotate/part_ended.html", {"end": end})


@require_safe
def picture(request: HttpRequest, lease: UUID, side: str) -> HttpResponse:
    """Send the picture of one side of a pair to the person it was leased to.

    Named by the lease, because an object's own number would tell which of the two is the proposal.
    """
    found = Lease.objects.select_related("comparison__current__campaign", "comparison__proposal__campaign")
    pair = get_object_or_404(found, key=lease)
    joined = admission.annotator_in(request.session, pair.comparison.current.campaign_id)
    if joined is None or joined.pk != pair.annotator_id:
        raise PermissionDenied
    shown, beside = (pair.left, pair.right) if Side(side) == Side.LEFT else (pair.right, pair.left)
    kind = shown.campaign.object_kind
    return media.response(kind, objects.stored(shown), media.look_of(request), objects.stored(beside))
