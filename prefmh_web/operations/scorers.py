"""Trying the programs in SCORERS, and which scorers have stopped, for `manage.py doctor`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from prefmh_web.campaigns.models import CampaignScorer
from prefmh_web.objects import OBJECT_KINDS, StoredObject
from prefmh_web.scorers import NoScore, Scorer, ScorerError, clashing_names, offered
from prefmh_web.scorers.kinds import commands

_SAMPLES = {
    "texts": StoredObject("A short text, to try a scorer on."),
    "molecules": StoredObject("CCO"),
    "images": StoredObject("grey", pixels=lambda: np.full((64, 64, 3), 128, dtype=np.uint8)),
}


def failing() -> Iterator[tuple[str, str]]:
    """Try each program on a text, then a molecule, then an image, until it gives a number; yield the name and the
    reasons of those that give none. Each is started for this, and ended again.
    """
    try:
        for name in commands.names():
            if reasons := _reasons(offered("texts")[name]):
                yield name, "; ".join(reasons)
    finally:
        commands.close_all()


def stopped() -> Iterator[CampaignScorer]:
    """Yield the scorers of campaigns that are asked no more."""
    yield from CampaignScorer.objects.exclude(stopped_because="").select_related("campaign")


def _reasons(scorer: Scorer) -> list[str]:
    reasons: list[str] = []
    for kind, sample in _SAMPLES.items():
        try:
            [answer] = scorer.scores(OBJECT_KINDS[kind], [sample])
        except ScorerError as error:
            return [*reasons, str(error)]
        if not isinstance(answer, NoScore):
            return []
        reasons.append(f"{OBJECT_KINDS[kind].noun}: {answer.reason}")
    return reasons


__all__ = ["clashing_names", "failing", "stopped"]
