"""Why there is no pair: the person rests, the next one is not there yet, or the campaign is paused, over or cannot be
read."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from prefmh_web.campaigns.engine import leases, reading
from prefmh_web.campaigns.frozen import started_campaign
from prefmh_web.campaigns.models import Annotator, Campaign
from prefmh_web.campaigns.proposals import drawing
from prefmh_web.participants.recruiting import terms_of
from prefmh_web.voting.visit import Visit

# Whether the making of pairs is held up is the same for all pages of a campaign, and asked once in this time.
_HELD_UP_S = 1.0
_held_up: dict[int, tuple[float, bool]] = {}


class Idle:
    """Words in place of a pair."""

    name = "idle"
    choices: tuple[str, ...] = ("continue",)

    def is_due(self, visit: Visit) -> bool:
        """Always true: there is nothing else to see."""
        return True

    def standing(self, visit: Visit) -> str:
        """Return resting, waiting, or the campaign's status when that is why there is no pair."""
        if not visit.campaign.is_running:
            return visit.campaign.status
        return "resting" if visit.annotator.resting else "waiting"

    def context(self, visit: Visit) -> dict[str, Any]:
        """Return the standing, whether there may be no pair because none could be made, and how long people wait."""
        standing = self.standing(visit)
        return {
            "standing": standing,
            "is_held_up": standing == "waiting" and is_held_up(visit.campaign),
            "lease_seconds": started_campaign(visit.campaign).config.answering.seconds,
            "terms": terms_of(visit.campaign),
        }

    def parse(self, fields: Mapping[str, object]) -> "Continue":
        """Read that the person goes on."""
        return Continue()


@dataclass(frozen=True)
class Continue:
    """A person who rested is there."""

    def respond(self, annotator: Annotator) -> None:
        """Ask the person again."""
        leases.wake(annotator)
        # The caller's annotator may be as old as its socket, and the person has perhaps voted on another page.
        reading.refresh(annotator)


def is_held_up(campaign: Campaign) -> bool:
    """True when there may be no pair because one could not be made for some time."""
    now = time.monotonic()
    asked_at, is_overdue = _held_up.get(campaign.pk, (float("-inf"), False))
    if now - asked_at > _HELD_UP_S:
        is_overdue = drawing.is_overdue(campaign)
        _held_up[campaign.pk] = now, is_overdue
    return is_overdue
