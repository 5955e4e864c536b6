"""A person comes by a platform's link: its parameters leave the address at once, and stay with the browser until the
person presses the first button.
"""

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse

from prefmh_web.campaigns.models import Invitation
from prefmh_web.participants import joining
from prefmh_web.participants.joining import Arrival
from prefmh_web.participants.recruiting import terms_of
from prefmh_web.recruiters import Recruiter
from prefmh_web.voting import admission

COOKIE = "prefmh_arrival"
_SECONDS = 24 * 60 * 60


def arrive(request: HttpRequest, invitation: Invitation, recruiter: Recruiter) -> HttpResponse:
    """Keep what the address says of the person in their browser, and send them to the address without it."""
    try:
        checks_ids = terms_of(invitation.campaign).checks_ids
        arrival = joining.read(recruiter, request.GET.dict(), checks_ids=checks_ids)
    except joining.Preview:
        return render(request, "voting/preview.html")
    except joining.NotFromThere as reason:
        return render(request, "voting/not_from_there.html", {"reason": reason, "platform": recruiter}, status=400)
    admission.leave_unless(request.session, invitation.campaign, arrival)
    return kept(redirect("voting:welcome", token=invitation.token), arrival, invitation)


def kept(response: HttpResponse, arrival: Arrival, invitation: Invitation) -> HttpResponse:
    """Let the browser keep who has come."""
    response.set_cookie(
        COOKIE,
        joining.sign(arrival, invitation.token),
        max_age=_SECONDS,
        path=_path(invitation.token),
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Lax",
    )
    return response


def arrival_in(request: HttpRequest, invitation: Invitation, recruiter: Recruiter) -> Arrival | None:
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


def joined(token: str) -> HttpResponse:
    """Send somebody who has pressed the button to their pair."""
    response = redirect("voting:vote", token=token)
    response.delete_cookie(COOKIE, path=_path(token), samesite="Lax")
    return response


def _path(token: str) -> str:
    return reverse("voting:welcome", args=[token])
