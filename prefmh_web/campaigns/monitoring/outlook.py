"""Whether a campaign is getting on, and how long it will take from here. Reads only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.utils import timezone

from prefmh_web.campaigns.models import Campaign, Chain, Comparison

WINDOW = timedelta(minutes=5)
# A rate over less time than this says nothing.
_LEAST = timedelta(seconds=30)


@dataclass(frozen=True)
class Pace:
    """How fast steps are decided.

    Args:
        decided: steps that were decided within the window.
        seconds: its length: five minutes, or the time since the start where that is less.
        left: steps that chains have left, without those of chains that were ended.
    """

    decided: int
    seconds: float
    left: int

    @property
    def a_minute(self) -> float:
        """Steps decided a minute."""
        return 60 * self.decided / self.seconds

    @property
    def seconds_left(self) -> float | None:
        """How long the steps that are left take at this pace; None where nothing tells."""
        if not self.decided or self.seconds < _LEAST.total_seconds():
            return None
        return self.left * self.seconds / self.decided


def pace_of(campaign: Campaign, chains: Sequence[Chain], now: datetime | None = None) -> Pace:
    """Return how fast a started campaign's steps are decided.

    Args:
        chains: all of the campaign's.
        now: the end of the window; this moment if None.
    """
    now = now or timezone.now()
    since = max(now - WINDOW, campaign.started_at or now)
    lately = Comparison.objects.filter(chain__campaign=campaign, decided_at__gte=since).count()
    left = sum(chain.length - chain.step for chain in chains if chain.ended_at is None)
    return Pace(lately, max((now - since).total_seconds(), 1.0), left)
