"""How people come to a campaign: what is set up, and what everybody's page asks of it.

The recruiter, the limits and all of the protocol that comes before the end do not change once the campaign has started,
so a process remembers what of them each vote needs.
Consent, codes, pay, the way back, the debriefing, places and how large a budget is may change later, and are read when
they are needed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction

from prefmh_web.campaigns import events
from prefmh_web.campaigns.errors import Deleted, NotPossible
from prefmh_web.campaigns.lifecycle.fixed import demand_unchanged
from prefmh_web.campaigns.lifecycle.status import lock_draft
from prefmh_web.campaigns.models import Campaign
from prefmh_web.participants import consent, fixed, own_pairs
from prefmh_web.participants.models import USUAL_PAY, Outcome, Recruitment
from prefmh_web.participants.protocol import OwnPair, Protocol
from prefmh_web.participants.recruiters import ANYBODY, Recruiter
from sampler.judges import Shares

_REMEMBERED = 1000
AFTER_START = frozenset({"consent", "codes", "pay", "way_back", "place_pay", "currency", "places", "budget"})
"""What may change once a campaign has started, the budget only upwards: platforms give out codes when the study is set
up there. The rest is in `fixed.py`.
"""
_TOLD = {"places", "budget", "place_pay", "currency"}
"""Of which the record has the values, too: codes, and where people are sent, are nobody else's."""


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
        wait_minutes=found.longest_wait,
        wait_is_paid=protocol.wait_is_paid,
        checks_ids=found.checks_ids,
    )


def recruitment_of(campaign: Campaign) -> Recruitment:
    """Return what is set up; the default, unsaved, where nothing is."""
    return Recruitment.objects.filter(campaign=campaign).first() or Recruitment(campaign=campaign)


def set_up(
    campaign: Campaign, fields: Mapping[str, Any], excluded: Collection[Campaign], by: User | None = None
) -> None:
    """Store how people come to a campaign; of one that has started only what `AFTER_START` names.

    Raises:
        NotPossible: the campaign is deleted; or it has started, and something else would change: the message names it.
    """
    if campaign.is_draft:
        with suppress(Started), transaction.atomic():
            _set_up_draft(campaign, fields, excluded)
            return
    with transaction.atomic():
        # People who join hold the recruitment's lock, too, and wait for the campaign's at the end.
        locked = Recruitment.objects.select_for_update(no_key=True).filter(campaign=campaign).first()
        before = locked or Recruitment(campaign=campaign)
        _demand_fixed(before, fields, excluded)
        allowed = {name: value for name, value in fields.items() if name in AFTER_START}
        was = {name: getattr(before, name) for name in sorted(allowed)}
        changed = {name: value for name, value in was.items() if _meant(name, value) != _meant(name, allowed[name])}
        if "budget" in changed:
            _demand_raised(campaign, changed["budget"], allowed["budget"])
        found, _ = Recruitment.objects.update_or_create(campaign=campaign, defaults=allowed)
        consent.keep(found)
        if changed:
            told = sorted(changed.keys() & _TOLD)
            values = {name: f"{_shown(changed[name])} to {_shown(allowed[name])}" for name in told}
            events.note(campaign.pk, events.Kind.PARTICIPANTS_SET, by, {"changed": " ".join(changed), **values})


def _meant(name: str, value: Any) -> Any:
    """Return what a setting comes to: of codes and pay, what is left out is said as well."""
    if name == "codes":
        return {outcome: code for outcome, code in value.items() if code}
    return {outcome: value.get(outcome) or USUAL_PAY[outcome] for outcome in Outcome} if name == "pay" else value


def _shown(value: object) -> str:
    return "none" if value in (None, "") else str(value)


def _demand_fixed(before: Recruitment, fields: Mapping[str, Any], excluded: Collection[Campaign]) -> None:
    refused = set(before.excluded.values_list("pk", flat=True)) if before.pk else set()
    was = {name: getattr(before, name) for name in fixed.RECRUITMENT if name != "excluded"} | {"excluded": refused}
    demand_unchanged(fixed.RECRUITMENT, was, dict(fields) | {"excluded": {campaign.pk for campaign in excluded}})


def _demand_raised(campaign: Campaign, before: int | None, after: int | None) -> None:
    """Demand that a budget is raised, and that the campaign goes on: what is left decides whether it ends, and a replay
    would find that it could have gone on.
    """
    status = Campaign.objects.select_for_update(no_key=True).values_list("status", flat=True).get(pk=campaign.pk)
    if before is None or after is None or after < before:
        now = "none" if before is None else before
        raise NotPossible(f"{fixed.BUDGET.sentence} It is {now}. Nothing was saved.")
    if status == Campaign.Status.FINISHED:
        raise NotPossible(f"“{fixed.BUDGET.label}” cannot be raised: the campaign is finished. Nothing was saved.")


class Started(Exception):  # noqa: N818 - not an error
    """The draft has started in this very moment."""


def set_protocol(campaign: Campaign, protocol: Protocol, by: User | None = None) -> None:
    """Store what a draft's study asks of people beside their votes; of a started one, its debriefing.

    Raises:
        NotPossible: the campaign is deleted, or cannot show a pair of the protocol; or it has started, and something
            else than the debriefing would change: the message names it.
    """
    if not campaign.is_draft:
        _set_debriefing(campaign, protocol, by)
        return
    with transaction.atomic():
        own_pairs.demand_fit(protocol, lock_draft(campaign.pk))
        described = protocol.model_dump(mode="json")
        Recruitment.objects.update_or_create(campaign=campaign, defaults={"protocol": described})


def _set_debriefing(campaign: Campaign, protocol: Protocol, by: User | None) -> None:
    with transaction.atomic():
        found = Recruitment.objects.select_for_update(no_key=True).filter(campaign=campaign).first()
        before = Protocol() if found is None else found.parsed_protocol
        demand_unchanged(fixed.PROTOCOL, before.model_dump(mode="json"), protocol.model_dump(mode="json"))
        if before.debriefing != protocol.debriefing:
            described = protocol.model_dump(mode="json")
            Recruitment.objects.update_or_create(campaign=campaign, defaults={"protocol": described})
            versions = {"before": _version(before.debriefing), "after": _version(protocol.debriefing)}
            events.note(campaign.pk, events.Kind.DEBRIEFING_SET, by, versions)


def _version(text: str) -> str:
    """Return what names a text in the record: the beginning of its SHA-256."""
    return consent.version_of(text)[:16] if text else "none"


def demand_startable(campaign: Campaign) -> None:
    """Demand that the pairs of a draft's protocol fit its setup, which may have changed since, and that a panel, whose
    people are known, is not sent by a platform or stopped by a limit.

    Raises:
        NotPossible: one does not, or is not; the message says which.
    """
    recruitment = recruitment_of(campaign)
    own_pairs.demand_fit(recruitment.parsed_protocol, campaign)
    if not campaign.config.panelists:
        return
    if recruitment.platform.knows_people:
        raise NotPossible(
            f"A panel has a link for each person, so {recruitment.platform.title} cannot send its people. On the page "
            "Participants choose that anybody with the link may vote, or choose a crowd in the setup."
        )
    if recruitment.votes_each is not None or recruitment.minutes_each is not None:
        raise NotPossible(
            "Every step of a panel may need an answer of everybody. Remove the limit of votes or minutes on the page "
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
