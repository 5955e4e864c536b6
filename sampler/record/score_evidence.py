"""A record's scores, from which a replay recomputes the verdicts of a rule that goes by them; and no evidence."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Generator, Iterator
from typing import Any, cast

from sampler.acceptance import Verdict
from sampler.chain import Comparison, Tally
from sampler.config import ChainConfig
from sampler.record import schema
from sampler.record.check_chain import Difference, Row, Tables, compare_outcome
from sampler.rules.scored import ScoredConfig, numbers_of
from sampler.rules.scores import tell_by_scores

_NO_VOTES = Tally((), ())


class ScoreEvidence:
    """The numbers of scorers by which steps were decided.

    Raises:
        KeyError: a row lacks a column.
        ValueError: a score of the rule's scorers is there twice or no number that the rule can use, or there are
            votes or ratings.
    """

    def __init__(self, config: ChainConfig, tables: Tables) -> None:
        _refuse_answers(tables)
        # Rules of this evidence are of this kind.
        self._rule = rule = cast(ScoredConfig, config.rule)
        self._given: dict[int, dict[str, float]] = defaultdict(dict)
        for row in tables.scores:
            state, scorer = int(row["state"]), row["scorer"]
            if scorer not in rule.scorers or not row["score"]:
                continue
            if scorer in self._given[state]:
                raise ValueError(f"the score of state {state} by {scorer} occurs twice")
            self._given[state][scorer] = float(row["score"])
        for given in self._given.values():
            numbers_of(rule, given)

    def settle(
        self, comparison: Comparison[Any], numbers: tuple[int, int], row: Row
    ) -> Generator[Difference, None, Verdict]:
        """Return the verdict that the scores give; yield where the row differs. See `check_chain.Evidence`."""
        given = [self._given[number] for number in numbers]
        verdict = tell_by_scores(self._rule, comparison, *given)
        if not row["verdict"] and not comparison.is_identity:
            # The last score may have come while the record was written.
            verdict = Verdict.UNDECIDED
        decides = verdict is not Verdict.UNDECIDED and not comparison.is_identity
        yield from self._compare_scores(comparison, given if decides else [{}, {}], row)
        yield from compare_outcome(comparison, row, _NO_VOTES, verdict)
        return verdict

    def compare_vote(self, row: Row) -> Iterator[Difference]:
        """Yield nothing: there is no vote."""
        yield from ()

    def _compare_scores(
        self, comparison: Comparison[Any], given: list[dict[str, float]], row: Row
    ) -> Iterator[Difference]:
        for column, of_object in zip(schema.SCORES_OF_STEP, given, strict=True):
            expected = schema.numbers(numbers_of(self._rule, of_object) or ())
            if row[column] != expected:
                yield Difference(comparison.chain, comparison.step, column, f"“{row[column]}”", f"“{expected}”")


class NoEvidence:
    """Of rule base: nothing decides, every proposal is accepted.

    Raises:
        ValueError: there are votes or ratings.
    """

    def __init__(self, config: ChainConfig, tables: Tables) -> None:
        _refuse_answers(tables)

    def settle(
        self, comparison: Comparison[Any], numbers: tuple[int, int], row: Row
    ) -> Generator[Difference, None, Verdict]:
        """Return that the step is accepted; yield where the row differs. See `check_chain.Evidence`."""
        yield from compare_outcome(comparison, row, _NO_VOTES, Verdict.ACCEPT)
        return Verdict.ACCEPT

    def compare_vote(self, row: Row) -> Iterator[Difference]:
        """Yield nothing: there is no vote."""
        yield from ()


def _refuse_answers(tables: Tables) -> None:
    for name, rows in (("votes", tables.votes), ("ratings", tables.ratings)):
        if rows:
            raise ValueError(f"{name}.csv must be empty where nobody is asked")
