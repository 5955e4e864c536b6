"""How people come to a campaign: what is set up, and what everybody's page asks of it.

The recruiter, the limits and all of the protocol that comes before the end do not change once the campaign has started,
so a process remembers what of them each vote needs.
Consent, codes, pay, the way back, the debriefing, places and how large a budget is may change later
(`campaigns/lifecycle/changes.py`), and are read when they are needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache

from django.db.models import Exists, OuterRef, QuerySet

from prefmh_web.campaigns.engine.transactions import lock_people
from prefmh_web.campaigns.errors import NotPossible
from prefmh_web.campaigns.models import Campaign
from prefmh_web.config import OwnPair, Study, misfits
from prefmh_web.participants.models import Participation
from prefmh_web.recruiters import ANYBODY, Recruiter
from sampler.judges import Shares

_REMEMBERED = 1000
NO_TRIALS = Shares()


@dataclass(frozen=True)
class Terms:
    """What does not change once a campaign has started.

    Args:
        recruiter: where its people come from.
        votes_each: after how many votes somebody's part is complete; None for no limit.
        budget: all that people can answer; None for no limit.
        minutes_each: so many minutes after they joined, somebody's part is over; None for no limit.
        most_active_minutes: after so many minutes before pairs somebody's part is complete; None for no limit.
        shares: how often a vote is followed by which trial that is no vote.
        gold: the pairs of gold checks.
        wait_minutes: after so long without a pair, somebody's part ends; None for never.
        wait_is_paid: people are told that the time they wait is paid.
        checks_ids: a person's id must look like one of the recruiter.
    """

    recruiter: Recruiter = ANYBODY
    votes_each: int | None = None
    budget: int | None = None
    minutes_each: int | None = None
    most_active_minutes: int | None = None
    shares: Shares = NO_TRIALS
    gold: tuple[OwnPair, ...] = ()
    wait_minutes: int | None = None
    wait_is_paid: bool = False
    checks_ids: bool = True

    @property
    def may_be_paid_for(self) -> bool:
        """True where what the campaign can cost may be known."""
        return self.recruiter.knows_people or self.budget is not None

    @property
    def has_trials(self) -> bool:
        """True if people are shown trials that are no votes."""
        return self.shares.total > 0


def terms_of(campaign: Campaign) -> Terms:
    """Return the terms on which people take part."""
    if campaign.started_at is None:
        return _read(campaign.pk)
    return _remembered(campaign.pk, campaign.started_at)


@lru_cache(maxsize=_REMEMBERED)
def _remembered(campaign_id: int, _started_at: datetime) -> Terms:
    # Started again under the same number, as tests do, it is another one.
    return _read(campaign_id)


def _read(campaign_id: int) -> Terms:
    study = Campaign.objects.get(pk=campaign_id).config.study
    if not study.platform.knows_people:
        return Terms(study.platform, study.votes_each, study.budget, study.minutes_each)
    protocol = study.protocol
    return Terms(
        recruiter=study.platform,
        votes_each=study.votes_each,
        budget=study.budget,
        minutes_each=study.minutes_each,
        most_active_minutes=study.most_active_minutes,
        shares=protocol.shares,
        gold=protocol.gold,
        wait_minutes=study.longest_wait,
        wait_is_paid=protocol.wait_is_paid,
        checks_ids=study.checks_ids,
    )


def locked_study(campaign_id: int) -> Study:
    """Return what a campaign asks of people, and let nobody else join, take a place or change it until the end of the
    transaction."""
    lock_people(campaign_id)
    return Campaign.objects.get(pk=campaign_id).config.study


def going_on() -> QuerySet[Campaign]:
    """Return the campaigns in which somebody has a part that has not ended."""
    parts = Participation.objects.filter(campaign=OuterRef("pk"), outcome="")
    return Campaign.objects.filter(Exists(parts))


def demand_startable(campaign: Campaign) -> None:
    """Demand that the pairs of a draft's protocol fit its setup, which may have changed since, and that a panel, whose
    people are known, is not sent by a platform or stopped by a limit.

    Raises:
        NotPossible: one does not, or is not; the message says which.
    """
    study = campaign.config.study
    for path, reason in misfits(campaign.config):
        # What else is wrong, whoever saved the configuration was told.
        if path.startswith("study.protocol."):
            raise NotPossible(f"A practice or gold pair does not fit the setup: {path} {reason}.")
    if not campaign.config.panelists:
        return
    if study.platform.knows_people:
        raise NotPossible(
            f"A panel has a link for each person, so {study.platform.title} cannot send its people. On the page "
            "Participants choose that anybody with the link may vote, or choose a crowd in the setup."
        )
    if study.votes_each is not None or study.minutes_each is not None:
        raise NotPossible(
            "Every step of a panel may need an answer of everybody. Remove the limit of votes or minutes on the page "
            "Participants."
        )
