"""Whether suspended.csv says of the steps what steps.csv says: which of them were decided, and where a chain was ended.

A step at which its chain was ended has no verdict, and is the only one without a verdict whose uniform is told. So a
chain that ends early is told from one that goes on in both files, and neither can be changed alone. When a step was
suspended, and by how many skips, cannot be worked out again.
"""

from __future__ import annotations

from collections.abc import Iterator

from sampler.record import schema
from sampler.record.check_chain import Difference, Row, StepKey, step_key

_FILE = schema.SUSPENDED.file
_OUTCOMES = ("", schema.TRIED_AGAIN, schema.DECIDED, schema.ENDED)


def compare_suspended(steps: list[Row], rows: list[Row]) -> Iterator[Difference]:
    """Yield where suspended.csv cannot be right.

    Args:
        rows: of suspended.csv; none where there is no such file.

    Raises:
        ValueError: an outcome is none.
    """
    by_key = {step_key(row): row for row in steps}
    ended: set[StepKey] = set()
    for row in rows:
        if row["outcome"] not in _OUTCOMES:
            raise ValueError(f"outcome must be {', '.join(_OUTCOMES[1:])} or empty, not “{row['outcome']}”")
        if step_key(row) not in by_key:
            yield Difference(
                *step_key(row), "the suspended step", "one", "none: steps.csv has no such step", _FILE, row
            )
        elif row["outcome"] == schema.ENDED:
            ended.add(step_key(row))
        elif row["outcome"] != schema.TRIED_AGAIN:
            yield from _compare_decision(by_key[step_key(row)], row)
    yield from _compare_ends(steps, ended)


def _compare_decision(step: Row, row: Row) -> Iterator[Difference]:
    expected = schema.DECIDED if step["verdict"] else ""
    if row["outcome"] != expected:
        what = "what became of the suspended step"
        yield Difference(*step_key(row), what, f"“{row['outcome']}”", f"“{expected}”", _FILE, row)


def _compare_ends(steps: list[Row], ended: set[StepKey]) -> Iterator[Difference]:
    for step in steps:
        key = step_key(step)
        if key in ended and step["verdict"]:
            yield Difference(*key, "the end of the chain", "at this step", "none: the step has a verdict")
        elif key in ended and not step["uniform"]:
            yield Difference(*key, "uniform", "none", "one: the chain was ended at this step")
        elif key not in ended and step["uniform"] and not step["verdict"]:
            yield Difference(
                *key, "the end of the chain", "none in suspended.csv", "one: the step has a uniform and no verdict"
            )
