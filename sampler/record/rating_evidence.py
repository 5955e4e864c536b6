"""A record's ratings, from which a replay recomputes the verdicts of a rule that rates."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Generator, Iterable, Iterator
from functools import partial
from typing import Any, cast

from sampler.acceptance import Verdict
from sampler.chain import Comparison, Tally
from sampler.config import ChainConfig
from sampler.record import schema
from sampler.record.check_chain import Difference, Row, Tables, compare_outcome, reading, step_key
from sampler.rules.config import PointwiseConfig
from sampler.rules.ratings import Ratings, mean_ratings, tell_by_ratings


class RatingEvidence:
    """The ratings by which steps were decided.

    Raises:
        KeyError: a row lacks a column.
        ValueError: a rating is of no state, judge or slot, off the scale, or there twice.
    """

    def __init__(self, config: ChainConfig, tables: Tables) -> None:
        # Rules of this evidence are of this kind.
        rule = cast(PointwiseConfig, config.rule)
        budgets, states = config.budgets, {int(row["state"]) for row in tables.states}
        self._rule, self._budgets = rule, budgets
        self._given: dict[int, dict[tuple[int, int], int]] = defaultdict(dict)
        for row in tables.ratings:
            with reading(schema.RATINGS.file, row):
                self._note(row, states)

    def _note(self, row: Row, states: set[int]) -> None:
        state, judge, slot = int(row["state"]), int(row["judge"]), int(row["slot"])
        name, budgets = f"the rating of state {state} by judge {judge} in slot {slot}", self._budgets
        if state not in states or not 0 <= judge < len(budgets) or not 0 <= slot < budgets[judge]:
            raise ValueError(f"{name} is not possible: there is no such judge, slot or state")
        if (judge, slot) in self._given[state]:
            raise ValueError(f"{name} occurs twice")
        if row["rating"] not in self._rule.scale.answers:
            raise ValueError(f"{name} must be {self._rule.lowest} to {self._rule.highest}, not “{row['rating']}”")
        self._given[state][judge, slot] = int(row["rating"])

    def settle(
        self, comparison: Comparison[Any], numbers: tuple[int, int], row: Row
    ) -> Generator[Difference, None, Verdict]:
        """Return the verdict that the ratings give; yield where the row differs. See `check_chain.Evidence`."""
        ratings = [self._ratings(number) for number in numbers]
        verdict = tell_by_ratings(self._rule, comparison, *ratings)
        if not row["verdict"] and not comparison.is_identity:
            # Another chain at the same object may have brought the last rating while the record was written.
            verdict = Verdict.UNDECIDED
        elif not comparison.is_identity:
            yield from self._compare_counts(comparison, numbers, ratings)
        is_settled = verdict is not Verdict.UNDECIDED and not comparison.is_identity
        yield from self._compare_means(comparison, ratings if is_settled else [], row)
        yield from compare_outcome(comparison, row, Tally.empty(len(self._budgets)), verdict)
        return verdict

    def compare_vote(self, row: Row) -> Iterator[Difference]:
        """Yield that there should be no vote."""
        yield Difference(*step_key(row), "a vote", "one", "none: ratings decide", schema.VOTES.file, row)

    def _ratings(self, number: int) -> Ratings:
        given = sorted(self._given[number].items())
        return [[rating for (by, _), rating in given if by == judge] for judge in range(len(self._budgets))]

    def _compare_counts(
        self, comparison: Comparison[Any], numbers: tuple[int, int], ratings: list[Ratings]
    ) -> Iterator[Difference]:
        for number, given in zip(numbers, ratings, strict=True):
            counts = tuple(map(len, given))
            if counts != tuple(self._budgets):
                what = f"the number of ratings of state {number}"
                found, expected = _joined(counts), _joined(self._budgets)
                yield Difference(comparison.chain, comparison.step, what, found, expected, schema.RATINGS.file)

    def _compare_means(self, comparison: Comparison[Any], ratings: list[Ratings], row: Row) -> Iterator[Difference]:
        differs = partial(Difference, comparison.chain, comparison.step)
        means = [mean_ratings(self._rule, self._budgets, given) or () for given in ratings] or [(), ()]
        for column, expected in zip(schema.MEAN_RATINGS, means, strict=True):
            if tuple(map(float, row[column].split())) != expected:
                yield differs(column, f"“{row[column]}”", f"“{_joined(expected)}”")


def _joined(numbers: Iterable[float]) -> str:
    return " ".join(map(str, numbers))
