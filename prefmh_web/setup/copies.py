"""Copies of a campaign: a second one of the same configuration, and a pilot for a few people."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from django.contrib.auth.models import User
from django.core.files.base import File

import sampler
from prefmh_web.campaigns.errors import NotPossible
from prefmh_web.campaigns.models import Campaign
from prefmh_web.config import LONGEST_NAME, CampaignConfig
from prefmh_web.recruiters import OPEN, recruiter_by
from prefmh_web.setup import apply, export
from prefmh_web.setup.problems import SetupError

MOST_PEOPLE: Final = 100
MOST_VOTES_EACH: Final = 200


def duplicate(campaign: Campaign, owner: User, **changes: Any) -> Campaign:
    """Create a draft with the setup of a campaign, in whatever state this is, under a seed of its own.

    Nobody comes with it: a panel is as large, and has numbers for names.

    Args:
        changes: fields of the setup that are other in the copy.

    Raises:
        NotPossible: its file is gone, or it speaks of something that the owner does not have.
    """
    config = export.config_of(campaign)
    name = f"Copy of {config.name}"[:LONGEST_NAME].rstrip()
    # Under the same seed the two would have the same random numbers, also where somebody has typed it.
    copied = config.model_copy(update={"name": name, "seed": None, "judges": sampler.unnamed(config.judges)} | changes)
    try:
        with _file_of(campaign, has_file=config.file is not None) as file:
            return apply.create(copied, owner, file)
    except SetupError as error:
        raise NotPossible(f"This setup cannot be copied. {error.problems[0]}") from error


@contextmanager
def _file_of(campaign: Campaign, *, has_file: bool) -> Iterator[File[Any] | None]:
    if not has_file:
        yield None
        return
    kept = campaign.catalog.file
    # A file of its own, or the draft would point at the one of the other campaign.
    with kept.storage.open(str(kept.name), "rb") as opened:
        yield File(opened)


def pilot(campaign: Campaign, owner: User, people: int, votes_each: int) -> Campaign:
    """Create the draft of a pilot: a copy whose votes do not come into the campaign's record, without a budget.

    People need places, so an open link is one with a protocol.

    Args:
        people: so many can take part.
        votes_each: after so many votes somebody's part is complete.

    Raises:
        NotPossible: no crowd votes in the campaign, or it cannot be copied.
    """
    if not can_have_one(campaign):
        raise NotPossible("No crowd votes in this campaign, so nobody can try it out.")
    return duplicate(campaign, owner, **_changes(export.config_of(campaign), people, votes_each))


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
