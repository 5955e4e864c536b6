"""What is wrong with a setup, and whether it fits this site and its owner: the same rules for a form and a file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from django.contrib.auth.models import User

import sampler
from prefmh_web.campaigns.models import Campaign
from prefmh_web.config import CampaignConfig
from prefmh_web.config.misfits import Misfit
from prefmh_web.objects import OBJECT_KINDS
from prefmh_web.scorers import offered


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


def refused(message: str, path: str = "", line: int | None = None, column: int | None = None) -> SetupError:
    """Return the error of a file in which one thing is wrong."""
    return SetupError([Problem(message, path, line, column)])


def of_scorers(config: CampaignConfig) -> Iterator[Misfit]:
    """Yield each scorer of a setup that this site offers, but for other objects.

    One that the site does not have at all may be declared before the start, which refuses it otherwise.
    """
    field = "scorer" if isinstance(config.rule, sampler.QuestConfig) else "scorers"
    objects = config.space.objects
    for path, names in ((f"rule.{field}", config.rule.scorers), ("scorers", config.scorers)):
        here = offered(objects) if names else {}
        missing = [name for name in names if name not in here]
        elsewhere = {name for kind in OBJECT_KINDS if missing for name in offered(kind)}
        if name := next((name for name in missing if name in elsewhere), ""):
            yield path, f"“{name}” is not offered for {OBJECT_KINDS[objects].nouns}; there are {', '.join(here)}"


def of_owner(config: CampaignConfig, owner: User) -> Iterator[Misfit]:
    """Yield what a setup speaks of and its owner does not have, or has of another kind."""
    yield from of_scorers(config)
    for place, each in enumerate(config.study.refused):
        mine = Campaign.objects.filter(pk=each.number, owner=owner, name=each.name)
        found = mine.exclude(status=Campaign.Status.DELETING).first()
        if found is None or found.is_draft:
            yield (
                f"study.refused.{place}",
                f"{owner} has no started campaign {each.number} of the name “{each.name}”; remove it here",
            )
