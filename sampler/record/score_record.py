"""A record's scorers.json and scores.csv: numbers that models gave objects. Verdicts depend on them where the rule
names their scorers (`score_evidence.py`), and nowhere else.

A replay needs no scorer. What it checks: scores are of objects and scorers that the record has, each pair has one, and
those that this program measures itself come out again, where the record holds the objects.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sampler.config import ChainConfig
from sampler.objects.properties import Measure, measure_of
from sampler.record import schema
from sampler.record.check_chain import Difference, Row

MEASURED, COMMAND = "measured", "command"
"""The kinds of scorers: computed by this program, or by one that the site has declared."""
# RDKit's properties may differ in their last digits from one version to the next.
TOLERANCE = 1e-6


@dataclass(frozen=True)
class ScoreDifference(Difference):
    """A difference that is about a score and no step."""

    file: str = schema.SCORES.file

    def __str__(self) -> str:
        return f"{schema.SCORES.file}: {self.what}: the export has {self.recorded}, expected {self.recomputed}"


def compare_scores(
    config: ChainConfig, states: Sequence[Row], scores: Sequence[Row], scorers: Sequence[Mapping[str, Any]]
) -> Iterator[Difference]:
    """Yield where scores.csv names what the record does not have, says something twice, or differs from what is
    measured: by more than 1e-6, relative to the number or, below 1, absolute.

    Raises:
        KeyError: a row lacks a column, or a scorer its name.
        ValueError: a cell is no number, or an object cannot be measured.
    """
    declared = {scorer["name"]: scorer.get("kind") for scorer in scorers}
    rows = {row["state"]: row for row in states}
    measure = None
    if MEASURED in declared.values():
        measure = measure_of(config.space.model_dump(mode="json"))
    seen: set[tuple[str, str]] = set()
    for row in scores:
        state, name, cell = row["state"], row["scorer"], row["score"]
        about = f"the score of state {state} by {name}"
        if state not in rows:
            yield _difference(row, about, cell, "none: states.csv has no such state")
        elif name not in declared:
            yield _difference(row, about, cell, f"none: {schema.SCORERS} has no such scorer")
        elif (state, name) in seen:
            yield _difference(row, about, f"{cell} as well", "one score")
        elif declared[name] == MEASURED and measure is not None:
            yield from _compare_measured(measure, rows[state], row, about)
        elif cell and not math.isfinite(float(cell)):
            yield _difference(row, about, cell, "a finite number")
        seen.add((state, name))


def _compare_measured(measure: Measure, state: Row, row: Row, about: str) -> Iterator[Difference]:
    value = measure(state["content"], state.get("code", "")).get(row["scorer"])
    recorded = float(row["score"]) if row["score"] else None
    if value is None or recorded is None:
        if value is not recorded:
            yield _difference(row, about, row["score"], "none" if value is None else repr(value))
    elif not math.isclose(value, recorded, rel_tol=TOLERANCE, abs_tol=TOLERANCE):
        yield _difference(row, about, row["score"], repr(value))


def _difference(row: Row, what: str, recorded: str, expected: str) -> Difference:
    return ScoreDifference(0, 0, what, recorded or "none", expected, row=row)
