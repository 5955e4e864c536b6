"""protocol.json of the record: all that shaped who voted and on what, as it was set up. No ids, codes or addresses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from prefmh_web.campaigns.models import Campaign
from prefmh_web.participants import budget, consent
from prefmh_web.participants.models import Outcome, Recruitment
from sampler import tables

LEFT_OUT = "(left out)"
"""What stands in the record for something that would let people pass, or be paid, who did not take part."""
_LIMITS = ("votes_each", "places", "most_minutes", "most_active_minutes", "absent_minutes", "most_a_minute")


def documents(campaign: Campaign) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the file's name and what it holds, where something of it is set up."""
    found = Recruitment.objects.filter(campaign=campaign).first()
    if found is not None and _shapes(found):
        yield tables.PROTOCOL, _described(found, campaign)


def _shapes(recruitment: Recruitment) -> bool:
    return recruitment.platform.knows_people or recruitment.budget is not None or recruitment.votes_each is not None


def _described(recruitment: Recruitment, campaign: Campaign) -> dict[str, Any]:
    return {
        "version": 1,
        "recruiter": recruitment.recruiter,
        "language": campaign.language,
        "seconds_to_answer": campaign.lease_seconds,
        "limits": {name: getattr(recruitment, name) for name in _LIMITS},
        "campaigns_whose_people_are_refused": recruitment.excluded.count(),
        "paid": {outcome.value: recruitment.pay_for(outcome).value for outcome in Outcome},
        "consent": _consent(recruitment),
        "budget": _budget(recruitment, campaign),
        "protocol": _protocol(recruitment, campaign),
    }


def _protocol(recruitment: Recruitment, campaign: Campaign) -> dict[str, Any]:
    """Return the protocol; whoever knows the answers of its comprehension check passes it, so they are told last."""
    held = recruitment.parsed_protocol.model_dump(mode="json")
    if campaign.status != Campaign.Status.FINISHED:
        held["comprehension"] = [check | {"right": LEFT_OUT} for check in held["comprehension"]]
    return held


def _consent(recruitment: Recruitment) -> dict[str, Any] | None:
    if not recruitment.consent:
        return None
    return {"version": consent.version_of(recruitment.consent), "text": recruitment.consent}


def _budget(recruitment: Recruitment, campaign: Campaign) -> dict[str, Any] | None:
    if recruitment.budget is None:
        return None
    needs, spent = budget.needs(campaign.config, recruitment.parsed_protocol), budget.spent(campaign)
    return {
        "answers": recruitment.budget,
        "set_aside": needs.votes,
        "trials_declared": needs.trials,
        "spent": {"votes": spent.votes, "late": spent.late, "trials": spent.trials},
    }
