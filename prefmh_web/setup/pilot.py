"""A pilot: a copy of a campaign for a few people, whose votes do not come into the campaign's record.

It has the setup under a seed of its own and no budget. People need places, so an open link is one with a protocol.
"""

from __future__ import annotations

from typing import Final

from django.contrib.auth.models import User

from prefmh_web.campaigns.errors import NotPossible
from prefmh_web.campaigns.models import Campaign
from prefmh_web.config import LONGEST_NAME, CampaignConfig
from prefmh_web.recruiters import OPEN, recruiter_by
from prefmh_web.setup import duplicate, export

MOST_PEOPLE: Final = 100
MOST_VOTES_EACH: Final = 200


def make(campaign: Campaign, owner: User, people: int, votes_each: int) -> Campaign:
    """Create the draft of a pilot.

    Args:
        people: so many can take part.
        votes_each: after so many votes somebody's part is complete.

    Raises:
        NotPossible: no crowd votes in the campaign, or it cannot be copied.
    """
    if not can_have_one(campaign):
        raise NotPossible("No crowd votes in this campaign, so nobody can try it out.")
    return duplicate.duplicate(campaign, owner, **_changes(export.config_of(campaign), people, votes_each))


def can_have_one(campaign: Campaign) -> bool:
    """Return whether a crowd votes in a campaign."""
    return any(judge.source.kind == "people" for judge in campaign.config.judges)


def _changes(config: CampaignConfig, people: int, votes_each: int) -> dict[str, object]:
    # An open link has no places; with a protocol, though an empty one, it has.
    knows_people = recruiter_by(config.study.recruiter).knows_people
    recruiter = {} if knows_people else {"recruiter": OPEN.name}
    limits = {"places": people, "votes_each": votes_each, "budget": None}
    return {
        "name": f"Pilot of {config.name}"[:LONGEST_NAME].rstrip(),
        "study": config.study.model_copy(update=limits | recruiter),
    }
