"""Trying the programs in SCORERS, and which scorers have stopped, for `manage.py doctor`."""

from __future__ import annotations

from collections.abc import Iterator

from prefmh_web.campaigns.models import CampaignScorer
from prefmh_web.objects import OBJECT_KINDS
from prefmh_web.scorers import NoScore, ScorerError, clashing_names, commands, offered

# Markdown is a text to a program.
_TRIED = ("texts", "molecules", "images", "audio")


def failing() -> Iterator[tuple[str, str]]:
    """Try each program on a text, then a molecule, an image and a recording, until it gives a number; yield the name
    and the reasons of those that give none. Each is started for this, and ended again.
    """
    try:
        for name in commands.names():
            if reasons := _reasons(name):
                yield name, "; ".join(reasons)
    finally:
        commands.close_all()


def stopped() -> Iterator[CampaignScorer]:
    """Yield the scorers of campaigns that are asked no more."""
    yield from CampaignScorer.objects.exclude(stopped_because="").select_related("campaign")


def _reasons(program: str) -> list[str]:
    reasons: list[str] = []
    for kind in map(OBJECT_KINDS.__getitem__, _TRIED):
        try:
            [answer] = offered(kind.name)[program].scores(kind, kind.samples[:1])
        except ScorerError as error:
            return [*reasons, str(error)]
        if not isinstance(answer, NoScore):
            return []
        reasons.append(f"{kind.noun}: {answer.reason}")
        # A program that reads one kind only may end on each of the others, and must not be given up for that.
        commands.close_all()
        commands.forget()
    return reasons


__all__ = ["clashing_names", "failing", "stopped"]
