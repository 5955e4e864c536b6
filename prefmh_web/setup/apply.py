"""From a setup to a draft, through the doors by which a researcher's own comes about."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from typing import Any

from django.contrib.auth.models import User
from django.core.files.base import File
from django.db import transaction

import sampler
from prefmh_web.campaigns.lifecycle import drafts
from prefmh_web.campaigns.models import Campaign
from prefmh_web.endpoints.local.models import model_names
from prefmh_web.endpoints.models import Endpoint
from prefmh_web.participants import recruiting
from prefmh_web.participants.protocol import Protocol
from prefmh_web.scorers import offered
from prefmh_web.setup import fitting
from prefmh_web.setup.model import Setup
from prefmh_web.setup.people import People
from prefmh_web.setup.problems import Problem, SetupError
from prefmh_web.setup.reading import config_of, recruitment_fields
from prefmh_web.setup.twins import warning_of_seed

_SEEDS = 2**53
MANY_ANSWERS = 6
"""From more answers of a panel on, a step is accepted less than once in a hundred times."""


def create(setup: Setup, owner: User, file: File[Any] | None = None, *, key: str = "") -> Campaign:
    """Create a draft from a setup; queue the reading of its file, if it has one.

    Args:
        file: with the bytes of the setup's file, at their beginning.
        key: of the campaign; the owner's campaign that was created under it before is returned as it is.

    Raises:
        SetupError: it does not fit what the owner has.
        NotPossible: the campaign was changed in this very moment.
    """
    if misfits := [Problem(message, path) for path, message in fitting.of_owner(setup, owner)]:
        raise SetupError(misfits)
    with transaction.atomic():
        if key:
            # Whoever creates under a key holds the owner's row, so that two at once create one.
            User.objects.select_for_update().get(pk=owner.pk)
            if found := Campaign.objects.filter(owner=owner, creation_key=key).first():
                return found
        campaign = _draft(setup, owner, file, key)
        _set_up_people(setup, campaign)
    return campaign


def warnings(setup: Setup, owner: User) -> Iterator[str]:
    """Yield what a start would refuse as things stand, and what a researcher should know. None of it makes a file
    unusable: an endpoint may be registered after the campaign is set up.
    """
    config = config_of(setup)
    known = {*Endpoint.objects.filter(owner=owner).values_list("name", flat=True)}
    for source in (judge.source for judge in config.judges):
        if isinstance(source, sampler.ModelSource) and source.endpoint not in known:
            yield f"{owner} has no endpoint “{source.endpoint}”. Register it before the start."
    space = config.space
    if isinstance(space, sampler.ServedTextsConfig) and space.model not in {*known, *model_names()}:
        yield f"{owner} has no endpoint “{space.model}”, which writes the texts. Register it before the start."
    names = [*config.rule.scorers, *setup.scorers, *filter(None, [getattr(space, "estimate", "")])]
    scorers = offered(space.objects) if names else {}
    yield from (f"This site offers no scorer “{name}” for these objects." for name in names if name not in scorers)
    if (answers := sum(isinstance(judge.source, sampler.PanelistSource) for judge in config.judges)) > MANY_ANSWERS:
        percent = 100 * sampler.best_acceptance(answers)
        yield (
            f"All {answers} answers of the panel must be a yes for a step to be accepted: {percent:.1f} % of the steps "
            "at best, if nobody cares."
        )
    if told := warning_of_seed(setup.seed, owner):
        yield told


def draft_fields(setup: Setup, config: sampler.ChainConfig) -> dict[str, Any]:
    """Return the columns of a draft of a setup: what the form and a file alike come to."""
    return {
        "name": setup.name,
        "instructions": setup.instructions,
        "language": setup.language,
        "layout": setup.layout or "",
        "config_data": config.model_dump(mode="json"),
        "is_seed_typed": setup.seed is not None,
        "scorer_names": " ".join(setup.scorers),
        "lease_seconds": setup.answering.seconds,
        "suspend_after_skips": setup.answering.suspend_after_skips,
        "suspend_after_reports": setup.answering.suspend_after_reports,
        "cost_cap": setup.caps.cost,
        "request_cap": setup.caps.requests,
    }


def _draft(setup: Setup, owner: User, file: File[Any] | None, key: str) -> Campaign:
    fields = draft_fields(setup, config_of(setup, secrets.randbelow(_SEEDS)))
    return drafts.create(
        owner=owner,
        creation_key=key,
        config=fields.pop("config_data"),
        file=file,
        filename=setup.file.name if setup.file else "",
        **fields,
    )


def _set_up_people(setup: Setup, campaign: Campaign) -> None:
    people = setup.people
    named = [fitting.campaign_named(each.number, each.name, campaign.owner) for each in people.refused]
    excluded = [each for each in named if each is not None]
    if people.model_copy(update={"protocol": Protocol()}) != People():
        recruiting.set_up(campaign, recruitment_fields(people), excluded)
    if people.protocol != Protocol():
        recruiting.set_protocol(campaign, people.protocol)
