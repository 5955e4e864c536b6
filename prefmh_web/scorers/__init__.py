"""Models that give an object a number: a quality estimate, an aesthetic predictor, a reward model, RDKit's QED.

scorer      what each of them offers, and how it says that it has no number
measured    what is measured in this process
commands    programs that the site declares, each kept running: a line in, a line out

A score decides nothing. It is stored with its object and exported, so that whoever reads a record needs no scorer.
"""

from collections.abc import Mapping

from django.conf import settings

from prefmh_web.scorers import commands, measured
from prefmh_web.scorers.scorer import Answer, NoScore, Scorer, ScorerError, ScorerInterrupted


def offered(objects: str) -> dict[str, Scorer]:
    """Return the scorers that this site offers for a kind of object, by name.

    Args:
        objects: a name of `OBJECT_KINDS`.
    """
    found: list[Scorer] = [*commands.offered(objects), *measured.offered(objects)]
    # Of two with one name the last one holds: see `clashing_names`.
    return {scorer.name: scorer for scorer in found}


def found_again(objects: str, frozen: Mapping[str, str]) -> Scorer:
    """Return the scorer that a campaign has started with.

    Raises:
        ScorerError: this site offers it no more, or another one under its name.
    """
    scorer = offered(objects).get(frozen["name"])
    if scorer is None:
        raise ScorerError(f"this server offers no scorer “{frozen['name']}”. Declare it in SCORERS as before")
    now = scorer.description()
    if any(now.get(key) != frozen.get(key) for key in ("kind", "command_sha256")):
        raise ScorerError(
            f"the command of “{frozen['name']}” is no longer the one that the campaign started with. Restore it in "
            "SCORERS, or declare the new command under another name for new campaigns"
        )
    return scorer


def clashing_names() -> list[str]:
    """Return the names in SCORERS that mean something that is measured already."""
    # What is measured is asked only where it matters: RDKit takes long to load.
    return sorted(measured.names() & settings.SCORERS.keys()) if settings.SCORERS else []


__all__ = [
    "Answer",
    "NoScore",
    "Scorer",
    "ScorerError",
    "ScorerInterrupted",
    "clashing_names",
    "found_again",
    "offered",
]
