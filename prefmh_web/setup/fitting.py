"""What is wrong with a setup, and whether it fits this site and its owner: the same rules for a form and a file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from django.contrib.auth.models import User

import sampler
from prefmh_web.campaigns.models import Campaign
from prefmh_web.config import CampaignConfig
from prefmh_web.objects import OBJECT_KINDS
from prefmh_web.scorers import offered

Misfit = tuple[str, str]
"""Where in a setup, and why."""


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong with a file.

    Args:
        message: what is wrong and what would be accepted.
        path: where in the setup, such as judges.0.votes; empty for the file as a whole.
        line: in campaign.yaml, from 1; None where no line is meant.
        column: in that line, from 1.
    """

    message: str
    path: str = ""
    line: int | None = None
    column: int | None = None

    def __str__(self) -> str:
        where = "" if self.line is None else f"line {self.line}, column {self.column}: "
        return where + (f"{self.path}: " if self.path else "") + self.message


class SetupError(ValueError):
    """A file that makes no campaign; `problems` lists every reason, in the order of the lines."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = sorted(problems, key=lambda each: (each.line or 0, each.column or 0))
        super().__init__("; ".join(map(str, self.problems)))


def refused(message: str) -> SetupError:
    """Return the error of a file that is wrong as a whole."""
    return SetupError([Problem(message)])


def misfit_scorer(names: Iterable[str], objects: str) -> str:
    """Return the first of these scorers that this site offers, but for other objects; nothing if there is none.

    One that the site does not have at all may be declared before the start, which refuses it otherwise.

    Args:
        objects: a name of `OBJECT_KINDS`.
    """
    wanted = [*names]
    here = offered(objects) if wanted else {}
    missing = [name for name in wanted if name not in here]
    elsewhere = {name for kind in OBJECT_KINDS if missing for name in offered(kind)}
    return next((name for name in missing if name in elsewhere), "")


def of_scorers(config: CampaignConfig) -> Iterator[Misfit]:
    """Yield each scorer of a setup that is for other objects."""
    field = "scorer" if isinstance(config.rule, sampler.QuestConfig) else "scorers"
    objects = config.space.objects
    for path, names in ((f"rule.{field}", config.rule.scorers), ("scorers", config.scorers)):
        if name := misfit_scorer(names, objects):
            among = ", ".join(offered(objects))
            yield path, f"“{name}” is not offered for {OBJECT_KINDS[objects].nouns}; there are {among}"


def of_owner(config: CampaignConfig, owner: User) -> Iterator[Misfit]:
    """Yield what a setup speaks of and its owner does not have, or has of another kind."""
    yield from of_scorers(config)
    for place, each in enumerate(config.study.refused):
        if campaign_named(each.number, each.name, owner) is None:
            yield (
                f"study.refused.{place}",
                f"{owner} has no started campaign {each.number} of the name “{each.name}”; remove it here",
            )


def campaign_named(number: int, name: str, owner: User) -> Campaign | None:
    """Return a started campaign of the owner's; None if they have none of this number and name."""
    found = Campaign.objects.filter(pk=number, owner=owner, name=name).exclude(status=Campaign.Status.DELETING).first()
    return None if found is None or found.is_draft else found
