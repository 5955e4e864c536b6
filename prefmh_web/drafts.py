"""From a setup to a draft, through the doors by which a researcher's own comes about: created, copied, or a pilot."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any, Final

from django.contrib.auth.models import User
from django.core.files.base import File
from django.db import transaction
from django.db.models import Q

import sampler
from prefmh_web import config_files
from prefmh_web.campaigns.lifecycle import changes
from prefmh_web.campaigns.models import Campaign, NotPossible
from prefmh_web.config import LONGEST_NAME, CampaignConfig
from prefmh_web.config_yaml import Problem, SetupError
from prefmh_web.endpoints.local import model_names
from prefmh_web.endpoints.models import Endpoint
from prefmh_web.recruiters import OPEN
from prefmh_web.scorers import offered

MANY_ANSWERS = 6
"""From more answers of a panel on, a step is accepted less than once in a hundred times."""


def create(
    config: CampaignConfig,
    owner: User,
    file: File[Any] | None = None,
    *,
    key: str = "",
    kept: CampaignConfig | None = None,
) -> Campaign:
    """Create a draft from a setup; queue the reading of its file, if it has one.

    Args:
        file: with the bytes of the setup's file, at their beginning.
        kept: of a copy, what the owner's campaign has; see `config_files.of_owner`.
        key: of the campaign; the owner's campaign that was created under it before is returned as it is.

    Raises:
        SetupError: it does not fit what the owner has.
        NotPossible: the campaign was changed in this very moment.
    """
    if problems := [
        Problem(message=message, path=path) for path, message in config_files.of_owner(config, owner, kept)
    ]:
        raise SetupError(problems)
    with transaction.atomic():
        if key:
            # Whoever creates under a key holds the owner's row, so that two at once create one.
            User.objects.select_for_update().get(pk=owner.pk)
            if found := Campaign.objects.filter(owner=owner, creation_key=key).first():
                return found
        return changes.create(owner=owner, config=config, file=file, key=key)


def warnings(config: CampaignConfig, owner: User) -> Iterator[str]:
    """Yield what a start would refuse as things stand, and what a researcher should know. None of it makes a file
    unusable: an endpoint may be registered after the campaign is set up.
    """
    known = {*Endpoint.objects.filter(owner=owner).values_list("name", flat=True)}
    for source in (judge.source for judge in config.judges):
        if isinstance(source, sampler.ModelSource) and source.endpoint not in known:
            yield f"{owner} has no endpoint “{source.endpoint}”. Register it before the start."
    space = config.space
    if isinstance(space, sampler.ServedTextsConfig) and space.model not in {*known, *model_names()}:
        yield f"{owner} has no endpoint “{space.model}”, which writes the texts. Register it before the start."
    names = [*config.rule.scorers, *config.scorers, *filter(None, [getattr(space, "estimate", "")])]
    scorers = offered(space.objects) if names else {}
    yield from (f"This site offers no scorer “{name}” for these objects." for name in names if name not in scorers)
    if (answers := sum(isinstance(judge.source, sampler.PanelistSource) for judge in config.judges)) > MANY_ANSWERS:
        percent = 100 * sampler.best_acceptance(answers)
        yield (
            f"All {answers} answers of the panel must be a yes for a step to be accepted: {percent:.1f} % of the steps "
            "at best, if nobody cares."
        )
    if told := needs_others(config):
        yield told
    if told := warning_of_seed(config.seed, owner):
        yield told


def needs_others(config: CampaignConfig) -> str:
    """Return that nobody can finish alone, where each vote on a pair has to come from another person; else nothing."""
    most = max((each.votes for each in config.judges if each.source.kind == "people"), default=1)
    if most == 1:
        return ""
    return (
        f"Each pair takes up to {most} votes, each from another person, so nobody can finish this campaign alone. "
        f"Let at least {most} people vote, or set the votes on a pair to 1."
    )


def warning_of_seed(seed: int | None, owner: User, campaign: Campaign | None = None) -> str:
    """Return what a researcher should know whose campaign has the seed of another one of theirs; nothing if none has.

    Args:
        seed: that somebody has typed; None where none was.
        campaign: the one that has it, if it is stored.
    """
    if seed is None:
        return ""
    others = Campaign.objects.filter(owner=owner, seed=seed).exclude(status=Campaign.Status.DELETING)
    # Of a seed that was drawn and is hidden not even a guess is confirmed.
    is_known = Q(config_data__seed=seed) | Q(status=Campaign.Status.FINISHED) | Q(seed_revealed_at__isnull=False)
    others = others.filter(is_known)
    found = (others.exclude(pk=campaign.pk) if campaign else others).order_by("pk").first()
    if found is None:
        return ""
    return (
        f"Your campaign “{found.name}” (number {found.pk}) has the same seed: the random numbers of the two are the "
        "same, so they are not independent. Empty the seed, and one is drawn."
    )


def warning_of(campaign: Campaign) -> str:
    """Return the same of a draft; nothing once it has started, when its seed cannot change."""
    if not (campaign.is_draft and campaign.is_seed_typed):
        return ""
    return warning_of_seed(campaign.seed, campaign.owner, campaign)


MAX_PEOPLE: Final = 100
MAX_VOTES_PER_PERSON: Final = 200


def duplicate(campaign: Campaign, owner: User, **changes: Any) -> Campaign:
    """Create a draft with the setup of a campaign, in whatever state this is, under a seed of its own.

    Nobody comes with it: a panel is as large, and has numbers for names.

    Args:
        changes: fields of the setup that are other in the copy.

    Raises:
        NotPossible: its file is gone, or it speaks of something that the owner does not have.
    """
    config = config_files.config_of(campaign)
    name = f"Copy of {config.name}"[:LONGEST_NAME].rstrip()
    # Under the same seed the two would have the same random numbers, also where somebody has typed it.
    copied = config.model_copy(update={"name": name, "seed": None, "judges": sampler.unnamed(config.judges)} | changes)
    try:
        kept = campaign.catalog.file if config.file else None
        # A file of its own, or the draft would point at the one of the other campaign.
        with kept.storage.open(str(kept.name), "rb") if kept else nullcontext() as file:
            return create(copied, owner, file and File(file), kept=config if owner == campaign.owner else None)
    except SetupError as error:
        raise NotPossible(f"This setup cannot be copied. {error.problems[0]}") from error


def pilot(campaign: Campaign, owner: User, people: int, votes_per_person: int) -> Campaign:
    """Create the draft of a pilot: a copy whose votes do not come into the campaign's record, without a budget.

    People need places, so an open link is one with a protocol.

    Args:
        people: so many can take part.
        votes_per_person: after so many votes somebody's part is complete.

    Raises:
        NotPossible: no crowd votes in the campaign, or it cannot be copied.
    """
    if not can_have_one(campaign):
        raise NotPossible("No crowd votes in this campaign, so nobody can try it out.")
    config = config_files.config_of(campaign)
    limits: dict[str, object] = {"quota": people, "votes_per_person": votes_per_person, "budget": None}
    if not config.study.platform.knows_people:
        # An open link has no places; with a protocol, though an empty one, it has.
        limits["recruiter"] = OPEN.name
    name = f"Pilot of {config.name}"[:LONGEST_NAME].rstrip()
    return duplicate(campaign, owner, name=name, study=config.study.model_copy(update=limits))


def can_have_one(campaign: Campaign) -> bool:
    """Return whether a crowd votes in a campaign."""
    return any(judge.source.kind == "people" for judge in campaign.config.judges)
