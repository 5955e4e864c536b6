"""protocol.json of the record: all that shaped who voted and on what, as it was set up. No ids, codes or addresses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from prefmh_web.campaigns.models import Campaign
from prefmh_web.config import Outcome, Study
from prefmh_web.participants import budget, consent
from sampler import tables

LEFT_OUT = "(left out)"
"""What stands in the record for something that would let people pass, or be paid, who did not take part."""
_LIMITS = ("votes_each", "places", "most_minutes", "most_active_minutes", "absent_minutes", "most_a_minute")


def documents(campaign: Campaign) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the file's name and what it holds, where something of it is set up."""
    study = campaign.config.study
    if _shapes(study):
        yield tables.PROTOCOL, _described(study, campaign)


def _shapes(study: Study) -> bool:
    return study.platform.knows_people or study.budget is not None or study.votes_each is not None


def _described(study: Study, campaign: Campaign) -> dict[str, Any]:
    return {
        "version": 1,
        "recruiter": study.recruiter,
        "language": campaign.config.language,
        "seconds_to_answer": campaign.config.answering.seconds,
        "limits": {name: getattr(study, name) for name in _LIMITS},
        "campaigns_whose_people_are_refused": len(study.refused),
        "paid": {outcome.value: study.pay_for(outcome).value for outcome in Outcome},
        "consent": _consent(study),
        "budget": _budget(study, campaign),
        "protocol": _protocol(study, campaign),
    }


def _protocol(study: Study, campaign: Campaign) -> dict[str, Any]:
    """Return the protocol; whoever knows the answers of its comprehension check passes it, so they are told last."""
    held = study.protocol.model_dump(mode="json")
    if campaign.status != Campaign.Status.FINISHED:
        held["comprehension"] = [check | {"right": LEFT_OUT} for check in held["comprehension"]]
    return held


def _consent(study: Study) -> dict[str, Any] | None:
    if not study.consent:
        return None
    return {"version": consent.version_of(study.consent), "text": study.consent}


def _budget(study: Study, campaign: Campaign) -> dict[str, Any] | None:
    if study.budget is None:
        return None
    needs, spent = budget.needs(campaign.config, study.protocol), budget.spent(campaign)
    return {
        "answers": study.budget,
        "set_aside": needs.votes,
        "trials_declared": needs.trials,
        "spent": {"votes": spent.votes, "late": spent.late, "trials": spent.trials},
    }
