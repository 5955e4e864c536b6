"""What is known of a person who looks at their page: the pair that is theirs, if there is one, and how far all are."""

import time
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Sum

from prefmh_web.campaigns.engine import leases, reading
from prefmh_web.campaigns.models import Annotator, Campaign, Lease
from prefmh_web.campaigns.started import started_campaign
from prefmh_web.participants.completion import outcome_due
from prefmh_web.participants.models import Outcome
from prefmh_web.participants.recruiting import terms_of

# All pages of a campaign show the same progress bar. Its sum goes over every chain, so a vote does not wait for it
# when another page of this process has asked in the last second.
PROGRESS_S = 1.0
_progress: dict[tuple[int, datetime | None], tuple[float, int]] = {}


@dataclass(frozen=True)
class Visit:
    """One annotator and their campaign, now."""

    campaign: Campaign
    annotator: Annotator
    lease: Lease | None
    votes: int
    steps_decided: int
    steps: int
    is_readable: bool = True
    """False where this version of the program cannot read the campaign's setup."""
    votes_each: int | None = None
    """After how many votes the person's part is complete, if that is limited."""

    @property
    def outcome(self) -> Outcome | None:
        """How the person's part has ended; None while it goes on."""
        return None if self.lease or not self.is_readable else outcome_due(self.annotator, self.campaign)

    @property
    def percent(self) -> int:
        """How much of the campaign is decided."""
        return 100 * self.steps_decided // self.steps if self.steps else 0


def visit_of(annotator_id: int) -> Visit:
    """Return what there is to know, after leasing a pair to the annotator if there is one for them."""
    return visit_by(reading.person(annotator_id))


def visit_by(annotator: Annotator) -> Visit:
    """Return the same for an annotator whom the engine has just read with their campaign."""
    campaign, started, votes = annotator.campaign, started_campaign(annotator.campaign), annotator.votes_cast or 0
    if not started.is_readable:
        return Visit(campaign, annotator, None, votes, _steps_decided(campaign), steps=0, is_readable=False)
    votes_each = terms_of(campaign).votes_each
    return Visit(
        campaign=campaign,
        annotator=annotator,
        lease=_lease_of(annotator, votes_each),
        votes=votes,
        steps_decided=_steps_decided(campaign),
        steps=started.recipe.chains * started.recipe.steps,
        votes_each=votes_each,
    )


def _lease_of(annotator: Annotator, votes_each: int | None) -> Lease | None:
    if votes_each is None or (annotator.votes_cast or 0) < votes_each:
        return leases.take(annotator, votes_each)
    # The pair on the screen may still be answered.
    return leases.live_lease_of(annotator) if annotator.holds_a_lease else None


def _steps_decided(campaign: Campaign) -> int:
    # Started again under the same number, as tests do, it is another one.
    key, now = (campaign.pk, campaign.started_at), time.monotonic()
    asked_at, decided = _progress.get(key, (float("-inf"), 0))
    if not campaign.is_running or now - asked_at > PROGRESS_S:
        decided = campaign.chains.aggregate(decided=Sum("step"))["decided"] or 0
        _progress[key] = now, decided
    return decided
