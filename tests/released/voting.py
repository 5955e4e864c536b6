"""Simulated people of the released campaigns: they join by the link, and always vote in the same way."""

import zlib
from datetime import timedelta
from importlib import import_module

import numpy as np
from django.conf import settings
from django.utils import timezone

import sampler
from prefmh_web.annotate import admission
from prefmh_web.campaigns.engine import leases
from prefmh_web.campaigns.models import Annotator, Campaign, Chain, Lease, Side, Turn
from prefmh_web.endpoints.models import Endpoint
from tests.support.stack import sweep_everything, wait_until_idle

_SWEEPS = 20


def join(campaign: Campaign, count: int) -> list[Annotator]:
    """Let so many people, each with a session of their own, open the campaign's link and join."""
    invitation = campaign.invitations.first()
    return [_joined(invitation) for _ in range(count)]


def vote(campaign: Campaign, crowd: list[Annotator], rng: np.random.Generator, most: float = float("inf")) -> int:
    """Let people vote until the campaign is finished, or so many votes are cast; return how many were.

    Raises:
        AssertionError: the campaign is not finished, and nobody is asked anything though the clock has swept often.
    """
    cast, swept = 0, 0
    while cast < most:
        wait_until_idle()
        campaign.refresh_from_db()
        if campaign.status == Campaign.Status.FINISHED:
            break
        if _vote_once(crowd, rng, 1000 + 10 * cast):
            cast, swept = cast + 1, 0
        else:
            assert swept < _SWEEPS, f"{campaign} is {campaign.status}, and nobody is asked anything"
            sweep_everything()
            swept += 1
    return cast


def hold(annotator: Annotator) -> None:
    """Let somebody be asked, and not answer."""
    leases.take(annotator)


def skip(annotator: Annotator) -> None:
    """Let somebody be asked, skip, and go."""
    if lease := leases.take(annotator):
        leases.skip(lease.key, annotator)


def fall_asleep(annotator: Annotator) -> Lease | None:
    """Let somebody be asked, and not answer until the time is over; return what they still hold in their hands."""
    lease = leases.take(annotator)
    if lease:
        let_time_pass()
        leases.expire()
    return lease


def wake_up(annotator: Annotator, lease: Lease | None) -> None:
    """Answer what was asked long ago."""
    if lease:
        leases.answer(lease.key, annotator, Side.LEFT, 90_000)


def let_time_pass() -> None:
    """End every wait: for somebody's answer, for a model that failed, for a circuit that is open."""
    past = timezone.now() - timedelta(minutes=1)
    Lease.objects.filter(ended_at__isnull=True).update(expires_at=past)
    Turn.objects.filter(until__isnull=False).update(until=past)
    Chain.objects.filter(waits_until__isnull=False).update(waits_until=past)
    Endpoint.objects.update(open_until=None, failures=0)


def _joined(invitation) -> Annotator:
    session = import_module(settings.SESSION_ENGINE).SessionStore()
    annotator = admission.join(session, invitation)
    session.save()
    return annotator


def _vote_once(crowd: list[Annotator], rng: np.random.Generator, elapsed_ms: int) -> bool:
    for place in rng.permutation(len(crowd)):
        if lease := leases.take(crowd[place]):
            prefers_right = sampler.BradleyTerry(_score).vote(rng, lease.left.content, lease.right.content)
            leases.answer(lease.key, crowd[place], Side.RIGHT if prefers_right else Side.LEFT, elapsed_ms)
            return True
    return False


def _score(content: str) -> float:
    return (zlib.crc32(content.encode()) % 5) / 2
