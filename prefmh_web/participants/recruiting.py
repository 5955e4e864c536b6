"""How people come to a campaign: what is set up, and what everybody's page asks of it.

The recruiter, the limits and the protocol do not change once the campaign has started, so a process remembers what of
them each vote needs.
Consent, codes, pay and the way back may change later, and are read when they are shown.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

from django.db import transaction

from prefmh_web.campaigns.errors import Deleted, NotPossible
from prefmh_web.campaigns.lifecycle import events
from prefmh_web.campaigns.lifecycle.status import lock_draft
from prefmh_web.campaigns.models import Campaign, CampaignEvent
from prefmh_web.participants import consent, own_pairs, wording
from prefmh_web.participants.models import Recruitment
from prefmh_web.participants.protocol import OwnPair, Protocol
from prefmh_web.participants.recruiters import ANYBODY, Recruiter
from sampler.judges import Shares

_REMEMBERED = 1000
AFTER_START = frozenset({"consent", "consents", "codes", "pay", "way_back", "place_pay", "currency"})
"""What may change once a campaign has started: platforms give out codes when the study is set up there."""


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
        has_common_repeats: repeats are of pairs that everybody is asked, not of the person's own earlier ones.
        waiting_share: which share of all that somebody answers may be repeats while they wait.
        wait_minutes: after so long without a pair, somebody's part ends; None for never.
    """

    recruiter: Recruiter = ANYBODY
    votes_each: int | None = None
    budget: int | None = None
    minutes_each: int | None = None
    most_active_minutes: int | None = None
    shares: Shares = NO_TRIALS
    gold: tuple[OwnPair, ...] = ()
    has_common_repeats: bool = False
    waiting_share: float = 0
    wait_minutes: int | None = None

    @property
    def may_be_paid_for(self) -> bool:
        """True where what the campaign can cost may be known."""
        return self.recruiter.knows_people or self.budget is not None

    @property
    def has_trials(self) -> bool:
        """True if people are shown trials that are no votes."""
        return self.shares.total > 0 or self.waiting_share > 0

    @property
    def minds_waits(self) -> bool:
        """True if something happens for those who wait for a pair."""
        return self.waiting_share > 0 or self.wait_minutes is not None


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
    found = Recruitment.objects.filter(campaign=campaign_id).first()
    if found is None:
        return Terms()
    if not found.platform.knows_people:
        return Terms(found.platform, found.votes_each, found.budget, found.minutes_each)
    protocol = found.parsed_protocol
    return Terms(
        recruiter=found.platform,
        votes_each=found.votes_each,
        budget=found.budget,
        minutes_each=found.minutes_each,
        most_active_minutes=found.most_active_minutes,
        shares=protocol.shares,
        gold=protocol.gold,
        has_common_repeats=protocol.repeats == "common",
        waiting_share=protocol.waiting_share,
        wait_minutes=protocol.wait_minutes,
    )


def recruitment_of(campaign: Campaign) -> Recruitment:
    """Return what is set up; the default, unsaved, where nothing is."""
    return Recruitment.objects.filter(campaign=campaign).first() or Recruitment(campaign=campaign)


def set_up(campaign: Campaign, fields: Mapping[str, Any], excluded: Collection[Campaign]) -> None:
    """Store how people come to a campaign; of one that has started only what `AFTER_START` names.

    Raises:
        NotPossible: the campaign is deleted.
    """
    if campaign.is_draft:
        with suppress(Started), transaction.atomic():
            _set_up_draft(campaign, fields, excluded)
            return
    # Not under the campaign's lock: people who join hold the recruitment's, and wait for the campaign's at the end.
    with transaction.atomic():
        allowed = {name: value for name, value in fields.items() if name in AFTER_START}
        before = recruitment_of(campaign)
        changed = sorted(name for name, value in allowed.items() if getattr(before, name) != value)
        found, _ = Recruitment.objects.update_or_create(campaign=campaign, defaults=allowed)
        consent.keep(found)
        if changed:
            # Their names only: codes, and where people are sent, are nobody else's.
            events.note(campaign.pk, CampaignEvent.Kind.PARTICIPANTS_SET, changed=" ".join(changed))


class Started(Exception):  # noqa: N818 - not an error
    """The draft has started in this very moment."""


def set_protocol(campaign: Campaign, protocol: Protocol) -> None:
    """Store what a draft's study asks of people beside their votes.

    Raises:
        NotPossible: the campaign has started, or is deleted, or cannot show a pair of the protocol.
    """
    with transaction.atomic():
        own_pairs.demand_fit(protocol, lock_draft(campaign.pk))
        described = protocol.model_dump(mode="json")
        Recruitment.objects.update_or_create(campaign=campaign, defaults={"protocol": described})


def demand_startable(campaign: Campaign) -> None:
    """Demand that the pairs of a draft's protocol fit its setup, which may have changed since; that every text is there
    in every language; and that a panel, whose people are known, is not sent by a platform or stopped by a limit.

    Raises:
        NotPossible: one does not, or is not; the message says which.
    """
    recruitment = recruitment_of(campaign)
    own_pairs.demand_fit(recruitment.parsed_protocol, campaign)
    wording.demand_whole(campaign, recruitment)
    if not campaign.readable_recipe.seats:
        return
    if recruitment.platform.knows_people:
        raise NotPossible(
            f"A panel has a link for each seat, so {recruitment.platform.title} cannot send its people. On the page "
            "Participants choose that anybody with the link may vote, or choose a crowd in the setup."
        )
    if recruitment.votes_each is not None or recruitment.minutes_each is not None:
        raise NotPossible(
            "Every step of a panel may need an answer of every seat. Remove the limit of votes or minutes on the page "
            "Participants."
        )


def _set_up_draft(campaign: Campaign, fields: Mapping[str, Any], excluded: Collection[Campaign]) -> None:
    try:
        lock_draft(campaign.pk)
    except Deleted:
        raise
    except NotPossible as reason:
        raise Started from reason
    found, _ = Recruitment.objects.update_or_create(campaign=campaign, defaults=dict(fields))
    found.excluded.set(excluded)
    consent.keep(found)
