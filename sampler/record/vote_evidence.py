"""A record's votes, from which a replay recomputes the verdicts of a rule that counts them."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from functools import partial
from typing import Any

from sampler.acceptance import Verdict
from sampler.chain import Comparison, Tally, tell
from sampler.config import ChainConfig
from sampler.judges.presentations import draws_of, presentations_of
from sampler.record import schema
from sampler.record.check_chain import Difference, Row, Tables, compare_outcome, reading, step_key


class VoteEvidence:
    """Each step's counted votes in order.

    Raises:
        KeyError: a row lacks a column.
        ValueError: a cell is not what its column holds, or there are ratings.
    """

    def __init__(self, config: ChainConfig, tables: Tables) -> None:
        if tables.ratings:
            raise ValueError("ratings.csv must be empty where votes decide")
        self._config, self._votes_of = config, tables.counted_votes
        self._waits_for_seed = tables.waits_for_seed
        self._objects = {step_key(row): (row["current"], row["proposal"]) for row in tables.steps}

    def settle(
        self, comparison: Comparison[Any], numbers: tuple[int, int], row: Row
    ) -> Generator[Difference, None, Verdict]:
        """Return the verdict of the step's votes; see `Evidence`."""
        cast = self._votes_of.get((comparison.chain, comparison.step), [])
        yield from _compare_voters(comparison, cast)
        tally, verdict = yield from _count(comparison, cast)
        yield from compare_outcome(comparison, row, tally, verdict)
        return verdict

    def compare_vote(self, row: Row) -> Iterator[Difference]:
        """Compare a vote's question with its judge's, for_proposal with its sides, and the states that it names with
        those of its step; see `Evidence`.
        """
        judges = self._config.judges
        judge, name = int(row["judge"]), f"vote {row['number']}" if row["number"] else "a late vote"
        if not 0 <= judge < len(judges):
            raise ValueError(f"judge must be 0 to {len(judges) - 1}, not {judge}")
        question, for_proposal = judges[judge].question, str(int(_is_for_proposal(row)))
        if row["question"] != question:
            yield Difference(*step_key(row), f"{name}'s question", f"“{row['question']}”", f"“{question}”", *_at(row))
        if row["for_proposal"] != for_proposal:
            yield Difference(*step_key(row), f"{name}'s for_proposal", row["for_proposal"], for_proposal, *_at(row))
        yield from self._compare_states(row, name)
        if not row["annotator"]:
            yield from _compare_slot(self._config, row, judge, name, drawn_again=not self._waits_for_seed)

    def _compare_states(self, row: Row, name: str) -> Iterator[Difference]:
        """Compare which objects stood where, and which one was chosen; older records do not say it."""
        objects = self._objects.get(step_key(row))
        if objects is None or "first_state" not in row:
            # A vote without its step is told of for that.
            return
        current, proposal = objects
        first, second = (proposal, current) if row["proposal_side"] == "first" else (current, proposal)
        chosen = first if row["chosen_side"] == "first" else second
        for column, expected in (("first_state", first), ("second_state", second), ("chosen_state", chosen)):
            if row[column] != expected:
                yield Difference(*step_key(row), f"{name}'s {column}", f"“{row[column]}”", f"“{expected}”", *_at(row))


def _is_for_proposal(vote: Row) -> bool:
    """Return what a vote's sides say.

    Raises:
        ValueError: a side is neither first nor second.
    """
    for column in ("proposal_side", "chosen_side"):
        if vote[column] not in ("first", "second"):
            raise ValueError(f"{column} must be first or second, not “{vote[column]}”")
    return vote["chosen_side"] == vote["proposal_side"]


def _compare_voters(comparison: Comparison[Any], cast: list[Row]) -> Iterator[Difference]:
    differs = partial(Difference, comparison.chain, comparison.step)
    answered: set[tuple[int, str]] = set()
    for expected, vote in enumerate(cast, start=1):
        name = f"vote {vote['number']}"
        if int(vote["number"]) != expected:
            yield differs(name, vote["number"], str(expected), *_at(vote))
        answer = int(vote["judge"]), vote["annotator"] or f"slot {vote['slot']}"
        if answer in answered:
            whose = f"annotator {vote['annotator']}" if vote["annotator"] else f"the model for slot {vote['slot']}"
            yield differs(name, "counted", f"not counted: a second vote of {whose}", *_at(vote))
        answered.add(answer)


def _count(comparison: Comparison[Any], cast: list[Row]) -> Generator[Difference, None, tuple[Tally, Verdict]]:
    """Return the tally of the votes that count and the verdict it gives."""
    tally = Tally.empty(len(comparison.budgets))
    verdict = tell(comparison, tally)
    for vote in cast:
        judge = int(vote["judge"])
        with reading(schema.VOTES.file, vote):
            counted = tally.add(judge, _is_for_proposal(vote))
        if verdict is not Verdict.UNDECIDED:
            problem = f"not counted: {verdict.value} was settled before it"
        elif counted.votes_cast[judge] > comparison.budgets[judge]:
            problem = f"not counted: judge {judge} has used its budget"
        else:
            tally, verdict = counted, tell(comparison, counted)
            continue
        yield Difference(comparison.chain, comparison.step, f"vote {vote['number']}", "counted", problem, *_at(vote))
    return tally, verdict


def _compare_slot(config: ChainConfig, row: Row, judge: int, name: str, *, drawn_again: bool) -> Iterator[Difference]:
    """Compare a model's vote with what its slot says: which object it showed first and, drawn from p, what it is."""
    slot, asked = int(row["slot"]), (config.seed, *step_key(row), config.budgets, judge)
    if not 0 <= slot < config.judges[judge].votes:
        raise ValueError(f"slot must be 0 to {config.judges[judge].votes - 1}, not {slot}")
    if not drawn_again:
        return
    side = "first" if presentations_of(*asked, config.judges[judge].order)[slot] else "second"
    if row["proposal_side"] != side:
        yield Difference(*step_key(row), f"{name}'s proposal_side", row["proposal_side"], side, *_at(row))
    if row["preference"]:
        drawn = int(draws_of(*asked)[slot] < float(row["preference"]))
        if int(_is_for_proposal(row)) != drawn:
            recorded = str(int(_is_for_proposal(row)))
            yield Difference(*step_key(row), f"{name}'s answer", recorded, f"{drawn}, drawn from p", *_at(row))


def _at(row: Row) -> tuple[str, Row]:
    return schema.VOTES.file, row
