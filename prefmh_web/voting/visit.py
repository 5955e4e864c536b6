"""What is known of a person who looks at their page: the pair that is theirs, if there is one, and how far all are."""

import time
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Sum

from prefmh_web.campaigns.engine import leases, reading
from prefmh_web.campaigns.frozen import started_campaign
from prefmh_web.campaigns.models import Annotator, Campaign, Lease
from prefmh_web.config import Outcome
from prefmh_web.participants import attention, limits
from prefmh_web.participants.completion import is_time_over, outcome_due
from prefmh_web.participants.models import Check
from prefmh_web.participants.recruiting import Terms, terms_of

# All pages of a campaign show the same progress bar. Its sum goes over every chain, so a vote does not wait for it
# when another page of this process has asked in the last second.
PROGRESS_S = 1.0
_progress: dict[tuple[int, datetime | None], tuple[float, int, int]] = {}


@dataclass(frozen=True)
class Visit:
    """One annotator and their campaign, now."""

    campaign: Campaign
    annotator: Annotator
    lease: Lease | None
    votes: int
    steps_decided: int
    steps: int
    check: Check | None = None
    """The trial that comes before the next pair, if one is due: a check, or a repeat."""
    votes_each: int | None = None
    """After how many votes the person's part is complete, if that is limited."""
    minutes: float | None = None
    """How long the person was active, where that is limited."""
    minutes_each: int | None = None
    """After how many of these minutes the person's part is complete."""

    @property
    def outcome(self) -> Outcome | None:
        """How the person's part has ended; None while it goes on."""
        return None if self.lease or self.check else outcome_due(self.annotator, self.campaign)

    @property
    def percent(self) -> int:
        """How much of the campaign is decided."""
        return 100 * self.steps_decided // self.steps if self.steps else 0


def visit_of(annotator_id: int) -> Visit:
    """Return what there is to know, after leasing a pair to the annotator if there is one for them."""
    return visit_by(reading.person(annotator_id))


def visit_by(annotator: Annotator) -> Visit:
    """Return the same for an annotator whom the engine has just read with their campaign."""
    campaign, started, votes = annotator.campaign, started_campaign(annotator.campaign), annotator.votes_cast
    terms, check, lease = terms_of(campaign), None, None
    minutes = limits.minutes_done(annotator)
    if _is_done(annotator, terms, minutes):
        # The pair on the screen may still be answered.
        lease = leases.live_lease_of(annotator) if annotator.holds_a_lease else None
    elif annotator.holds_a_lease or (check := attention.due(annotator, campaign)) is None:
        lease = leases.take(annotator, terms.votes_each)
        limits.note(annotator, is_waiting=not (lease or annotator.resting or annotator.removed_at))
    config = started.config
    decided, steps = _progress_of(campaign, None if config.is_elastic else config.chains * config.steps)
    return Visit(
        campaign=campaign,
        annotator=annotator,
        lease=lease,
        check=check,
        votes=votes,
        steps_decided=decided,
        steps=steps,
        votes_each=terms.votes_each,
        minutes=minutes,
        minutes_each=terms.most_active_minutes,
    )


def _is_done(annotator: Annotator, terms: Terms, minutes: float | None) -> bool:
    has_voted_enough = terms.votes_each is not None and annotator.votes_cast >= terms.votes_each
    was_active_enough = minutes is not None and minutes >= (terms.most_active_minutes or 0)
    return has_voted_enough or was_active_enough or is_time_over(annotator) or limits.has_ended(annotator)


def _progress_of(campaign: Campaign, steps: int | None) -> tuple[int, int]:
    """Return how many steps are decided, and how many there are.

    Args:
        steps: how many there are; None where that changes, because chains open, or get longer, while the campaign runs.
    """
    # Started again under the same number, as tests do, it is another one.
    key, now = (campaign.pk, campaign.started_at), time.monotonic()
    asked_at, decided, opened = _progress.get(key, (float("-inf"), 0, 0))
    if not campaign.is_running or now - asked_at > PROGRESS_S:
        sums = {"decided": Sum("step")} | ({"opened": Sum("length")} if steps is None else {})
        found = campaign.chains.aggregate(**sums)
        decided, opened = found["decided"] or 0, found.get("opened") or 0
        _progress[key] = now, decided, opened
    return decided, opened if steps is None else steps
