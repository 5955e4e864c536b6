"""A pilot: a few people try a draft out in a campaign of their own, and what they took is what its plan then goes by.

A pilot has the draft's setup under a seed of its own, so nothing of it is in the campaign's record. Three things are
other: its people and votes are few, chains open for whoever would wait, so that everybody's time goes into votes, and
there is no budget. People need places, so an open link is one with a protocol.
"""

from __future__ import annotations

from typing import Final

from django.contrib.auth.models import User
from django.db import transaction

import sampler
from prefmh_web.campaigns.errors import NotPossible
from prefmh_web.campaigns.models import Campaign
from prefmh_web.participants.recruiters import OPEN, recruiter_by
from prefmh_web.setup import duplicate, export
from prefmh_web.setup.model import LONGEST_NAME, Setup
from prefmh_web.setup.problems import SetupError

MOST_PEOPLE: Final = 100
MOST_VOTES_EACH: Final = 200


def make(campaign: Campaign, owner: User, people: int, votes_each: int) -> Campaign:
    """Create the draft of a pilot of a draft.

    Args:
        people: so many can take part.
        votes_each: after so many votes somebody's part is complete.

    Raises:
        NotPossible: the campaign has started, is a pilot itself, or is one in which no crowd votes; or it cannot be
            copied.
    """
    if reason := refusal(campaign):
        raise NotPossible(reason)
    try:
        setup = export.setup_of(campaign)
    except SetupError as error:
        raise NotPossible(f"This setup cannot be copied. {error.problems[0]}") from error
    with transaction.atomic():
        pilot = duplicate.duplicate(campaign, owner, **_changes(setup, people, votes_each))
        Campaign.objects.filter(pk=pilot.pk).update(pilot_of=campaign)
        pilot.refresh_from_db()
    return pilot


def refusal(campaign: Campaign) -> str:
    """Say why there can be no pilot of a campaign; nothing if there can."""
    if campaign.pilot_of_id is not None:
        return "This is a pilot. Run another pilot of its campaign."
    if not campaign.is_draft:
        return "A pilot is run before the start: this campaign has started."
    recipe = campaign.parsed_recipe
    if not any(judge.source.kind == "people" for judge in recipe.judges):
        return "No crowd votes in this campaign, so there is nothing that a pilot could time."
    return ""


def _changes(setup: Setup, people: int, votes_each: int) -> dict[str, object]:
    # An open link has no places; with a protocol, though an empty one, it has.
    knows_people = recruiter_by(setup.people.recruiter).knows_people
    recruiter = {} if knows_people else {"recruiter": OPEN.name}
    limits = {"places": people, "votes_each": votes_each, "budget": None}
    return {
        "name": f"Pilot of {setup.name}"[:LONGEST_NAME].rstrip(),
        "most_chains": _most_chains(setup, people, votes_each),
        "people": setup.people.model_copy(update=limits | recruiter),
    }


def _most_chains(setup: Setup, people: int, votes_each: int) -> int | None:
    """Return so many chains that nobody waits, where chains may open: each step stands still once all have answered."""
    most = min(sampler.MOST_CHAINS, sampler.MOST_STEPS // setup.steps)
    if any(judge.source.kind != "people" for judge in setup.judges) or setup.chains >= most:
        return setup.most_chains
    return min(most, max(setup.most_chains or 0, setup.chains + people * votes_each))
