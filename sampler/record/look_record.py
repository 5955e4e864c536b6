"""Whether looks.csv says what the rest of a record says: what the stopping rule saw, and what followed.

The looks are the declared ones, in their order. What was seen is computed again from the samples, and the rule again
from that. Nothing else decides how long a chain is: after a look that stops, no chain walks on.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sampler.objects.properties import measure_of
from sampler.objects.stopping import Look, StoppingRecipe, look_at
from sampler.recipe import Recipe
from sampler.record import schema
from sampler.record.check_chain import Difference, Row, Tables, reading, step_key

# Sums of floats differ between machines.
_TOLERANCE = 1e-6
_SEEN = ("r_hat", "bulk_ess", "tail_ess")


@dataclass(frozen=True)
class LookDifference(Difference):
    """A difference that is about a look: `step` is the step that was looked at."""

    file: str = schema.LOOKS.file

    def __str__(self) -> str:
        return f"looks.csv, step {self.step}: {self.what}: the export has {self.recorded}, expected {self.recomputed}"


def length_by_looks(recipe: Recipe, rows: Sequence[Row] | None) -> int | None:
    """Return how far every chain of a record may have walked by its looks; None without a stopping rule.

    Raises:
        ValueError: the recipe has a rule and there is no looks.csv; or there is one, and it has none.
    """
    rule = recipe.stopping
    if (rule is None) != (rows is None):
        raise ValueError(
            "there is a looks.csv, although the recipe has no stopping rule"
            if rule is None
            else "there is no looks.csv, although the recipe has a stopping rule"
        )
    if rule is None or rows is None:
        return None
    if rows and rows[-1]["stops"] == "1":
        with reading(schema.LOOKS.file, rows[-1]):
            return int(rows[-1]["step"])
    return rule.length_after(len(rows), recipe.steps)


def compare_looks(recipe: Recipe, rows: Sequence[Row], tables: Tables) -> Iterator[Difference]:
    """Yield where looks.csv cannot be right.

    Raises:
        KeyError: a row lacks a column.
        ValueError: a cell is not what its column holds.
    """
    rule = recipe.stopping
    if rule is None:
        return
    looks = rule.looks(recipe.steps)
    numbers = _numbers(recipe, rule, tables) if rows else {}
    steps = _by_step(tables) if rows else {}
    for number, row in enumerate(rows):
        with reading(schema.LOOKS.file, row):
            seen = _seen_in(row)
        if number >= len(looks) or seen.step != looks[number]:
            expected = f"{looks[number]}" if number < len(looks) else f"none: there are {len(looks)} looks at most"
            yield LookDifference(0, seen.step, "the step", row["step"], expected, row=row)
            return
        yield from _compare_reached(recipe, seen.step, row, tables)
        yield from _compare_waited(steps, seen.step, rule.length_after(number + 1, recipe.steps), row)
        yield from _compare_seen(row, seen, look_at(seen.step, recipe.left_out, _at(numbers, seen.step)))
        stops = "1" if rule.is_met(seen) else "0"
        if row["stops"] != stops:
            yield LookDifference(0, seen.step, "stops", row["stops"], stops, row=row)
        if row["stops"] == "1" and number + 1 < len(rows):
            yield LookDifference(0, seen.step, "stops", "1", "0, because looks follow", row=row)


def _by_step(tables: Tables) -> dict[int, list[Row]]:
    """Return the rows of steps.csv, by the step's number."""
    found: dict[int, list[Row]] = {}
    for row in tables.steps:
        found.setdefault(step_key(row)[1], []).append(row)
    return found


def _compare_reached(recipe: Recipe, looked_at: int, row: Row, tables: Tables) -> Iterator[Difference]:
    """Yield which chains had neither come to the step of a look, nor been ended before it."""
    for chain in range(recipe.chains):
        decided = tables.decided.get(chain, 0)
        if decided < looked_at < tables.ended.get(chain, looked_at + 1):
            expected = f"{looked_at}, or its end before"
            yield LookDifference(0, looked_at, f"the steps of chain {chain}", f"{decided}", expected, row=row)


def _compare_waited(steps: Mapping[int, list[Row]], looked_at: int, last: int, row: Row) -> Iterator[Difference]:
    """Yield which steps from a look to the next one, or to the last step, had opened before it."""
    for place in range(looked_at + 1, last + 1):
        for step in steps.get(place, ()):
            # Moments of one zone, written in one way: their order is that of their letters.
            if step["opened_at"] < row["looked_at"]:
                what = f"when step {place} of chain {step['chain']} opened"
                expected = f"no earlier than the look, {row['looked_at']}"
                yield LookDifference(0, looked_at, what, step["opened_at"], expected, row=row)


def _numbers(recipe: Recipe, rule: StoppingRecipe, tables: Tables) -> dict[int, list[float]]:
    """Return the property of the state after each step, the start's first, by chain."""
    measure = measure_of(recipe.space.model_dump(mode="json"))
    if measure is None:
        raise ValueError("the property of the stopping rule cannot be measured from a record")
    states = {row["state"]: row for row in tables.states}
    measured: dict[str, float] = {}
    found: dict[int, list[float]] = {}
    for row in sorted(tables.samples, key=step_key):
        state = row["state"]
        if state not in measured and state in states:
            measured[state] = _number_of(measure(states[state]["content"], states[state].get("code", "")), rule)
        found.setdefault(int(row["chain"]), []).append(measured.get(state, math.nan))
    return found


def _number_of(properties: Mapping[str, float], rule: StoppingRecipe) -> float:
    value = properties.get(rule.property)
    return math.nan if value is None else float(value)


def _at(numbers: Mapping[int, list[float]], step: int) -> list[list[float]]:
    """Return the chains that have reached a step; one that was ended before has no part in the look.

    Any other that has not is a difference of its own.
    """
    return [each for _, each in sorted(numbers.items()) if len(each) > step]


def _seen_in(row: Row) -> Look:
    values = [float(row[name]) if row[name] else None for name in _SEEN]
    return Look(int(row["step"]), *values)


def _compare_seen(row: Row, seen: Look, again: Look) -> Iterator[Difference]:
    for name in _SEEN:
        one, other = getattr(seen, name), getattr(again, name)
        is_same = one is other if one is None or other is None else math.isclose(one, other, rel_tol=_TOLERANCE)
        if not is_same:
            yield LookDifference(0, seen.step, name, f"“{row[name]}”", f"“{'' if other is None else other}”", row=row)
