"""Walk the chains of a record again, from the seed and its evidence alone, and say where the record differs.

Starting states, proposals, base ratios and uniforms are drawn again; every verdict is recomputed from the votes in
their order, or from ratings or scores where the rule goes by these.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import numpy as np

from sampler.acceptance import Verdict
from sampler.chain import Comparison, Tally, advance, tell
from sampler.record import tables
from sampler.record.draws import Draws, Parsed, States, opened
from sampler.record.record import Difference, Row, StepKey, of_step, quoted, reading, step_key
from sampler.rules.base import tell_by_numbers
from sampler.rules.pointwise import PointwiseConfig, mean_ratings
from sampler.rules.scored import ScoredConfig, numbers_of


class Evidence(ABC):
    """What a record's steps were decided by."""

    @abstractmethod
    def settle(
        self, comparison: Comparison[Any], numbers: tuple[int, int], is_decided: bool
    ) -> Generator[Difference, None, Verdict]:
        """Return the verdict it gives, and yield where it is not as it should be.

        Args:
            numbers: of the current state and of the proposal.
            is_decided: whether the record says so.
        """

    def unused(self) -> Iterator[Difference]:
        """Yield rows of evidence of no step."""
        yield from ()


def compare_chains(parsed: Parsed) -> Iterator[Difference]:
    """Yield where steps, samples and states differ from what the seed and the evidence give.

    Raises:
        RecordError: a cell names what there is not.
    """
    config, record, (walk_length, _) = parsed.config, parsed.record, parsed.tuned
    evidence = _EVIDENCE[config.rule.evidence](parsed)
    with reading(tables.CONFIG):
        draws, index = opened(parsed)
    last = config.steps if config.warm_up is None or walk_length is not None else config.warm_up.steps
    visits: dict[StepKey, int] = {}
    for row in record["samples"]:
        if step_key(row) in visits:
            yield _in_samples(step_key(row), "a second sample", row["state_index"], "one sample per step", row)
        visits[step_key(row)] = int(row["state_index"])
    rows: dict[int, list[Row]] = defaultdict(list)
    for row in parsed.steps:
        rows[int(row["chain_index"])].append(row)
    for chain in range(parsed.chains):
        with reading(tables.STEPS.file):
            yield from _Walk(parsed, draws, index, evidence, visits, last).differences(chain, rows[chain])
    yield from _compare_leftovers(parsed, visits)
    yield from evidence.unused()


def _compare_leftovers(parsed: Parsed, visits: dict[StepKey, int]) -> Iterator[Difference]:
    steps, chains = {step_key(row) for row in parsed.steps}, parsed.chains
    for chain, step in sorted(steps):
        if not 0 <= chain < chains:
            yield of_step((chain, step), "the step", "one", f"none: there are {chains} chains")
    votes = {step_key(row): row for row in reversed(parsed.record["votes"])}
    for key in sorted(votes.keys() - steps):
        yield of_step(key, "a vote", "one", "none: steps.csv has no such step", tables.VOTES.file, votes[key])
    for key in sorted(visits):
        yield _in_samples(key, "the sample", visits[key], "none: the chain does not reach this step")


def _in_samples(key: StepKey, what: str, recorded: object, expected: object, row: Row | None = None) -> Difference:
    return of_step(key, what, recorded, expected, tables.SAMPLES.file, row)


@dataclass(frozen=True)
class _Walk:
    """How chains are walked.

    Args:
        visits: the sampled states; those that the chains reach are taken out.
        last: the last step that there can be; that of the warm-up while its length is not chosen.
    """

    parsed: Parsed
    draws: Draws
    index: States
    evidence: Evidence
    visits: dict[StepKey, int]
    last: int

    def differences(self, chain: int, rows: list[Row]) -> Iterator[Difference]:
        """Yield where a chain's steps, in order, and its samples differ."""
        position = self.draws.begin(chain)
        number = self.index.number(chain, 0, position.state)
        yield from self._compare_state((chain, 0), number, position.state)
        yield from self._compare_sample((chain, 0), number)
        verdict = None
        for row in rows:
            if stop := self._cannot_be(chain, position.step, verdict, row):
                yield stop
                return
            with reading(tables.STEPS.file, row):
                comparison = self.draws.ask(position, row)
                new = (
                    number if comparison.is_identity else self.index.number(chain, comparison.step, comparison.proposal)
                )
                drawn_differently = list(self._compare_draw(comparison, number, new, row))
            yield from drawn_differently
            if drawn_differently:
                # Whatever follows in this chain rests on the draw that differs.
                return
            with reading(tables.STEPS.file, row):
                verdict = yield from self.evidence.settle(comparison, (number, new), row["verdict"] != "")
            recorded = row["verdict"] or Verdict.UNDECIDED.value
            if recorded != verdict.value:
                yield of_step(step_key(row), "the verdict", recorded, verdict.value, row=row)
            if verdict is not Verdict.UNDECIDED:
                position = advance(position, comparison, verdict)
                number = new if verdict is Verdict.ACCEPT else number
                yield from self._compare_sample((chain, position.step), number)

    def _cannot_be(self, chain: int, step: int, verdict: Verdict | None, row: Row) -> Difference | None:
        """Return that a row cannot follow the step before it."""
        if int(row["step"]) != step + 1 or verdict is Verdict.UNDECIDED:
            expected = "no step after an open one" if verdict is Verdict.UNDECIDED else str(step + 1)
            return of_step(step_key(row), "the step's number", row["step"], expected, row=row)
        if step == self.last:
            until = "" if step >= self.parsed.config.steps else " until tuning.json says how far the others walk"
            return of_step((chain, step + 1), "the step", "one", f"none: the last step is {step}{until}", row=row)
        return None

    def _compare_draw(self, comparison: Comparison[Any], current: int, new: int, row: Row) -> Iterator[Difference]:
        key, config = step_key(row), self.parsed.config
        differs = partial(of_step, key, row=row)
        if config.has_parts and not self.parsed.is_sealed:
            part = config.part_of(*key)
            if row["part_index"] != (expected := "" if part is None else str(part)):
                yield differs("part_index", quoted(row["part_index"]), quoted(expected))
        elif row["part_index"] and not config.has_parts:
            yield differs("part_index", quoted(row["part_index"]), "none: the config has no parts")
        recomputed: dict[str, tuple[object, object]] = {
            "current_state": (int(row["current_state"]), current),
            "proposal_state": (int(row["proposal_state"]), new),
        }
        # The uniform of a step that is still open is kept from everybody, also from who reads the export.
        if row["uniform"]:
            recomputed["uniform"] = float(row["uniform"]), comparison.uniform
        for what, (recorded, value) in recomputed.items():
            if recorded != value:
                yield differs(what, recorded, value)
        if not np.isclose(comparison.log_r0, float(row["log_r0"]), rtol=1e-12, atol=1e-12):
            yield differs("log_r0", float(row["log_r0"]), comparison.log_r0)
        yield from self._compare_state(key, new, comparison.proposal)
        yield from (differs("proposal_state", *said) for said in self.draws.impossible(comparison))

    def _compare_state(self, key: StepKey, number: int, state: Any) -> Iterator[Difference]:
        for recorded, recomputed in self.index.compare(number, state):
            row = self.index.row(number)
            yield of_step(key, f"state {number}", recorded, recomputed, tables.STATES.file, row)

    def _compare_sample(self, key: StepKey, number: int) -> Iterator[Difference]:
        recorded = self.visits.pop(key, None)
        if recorded != number:
            yield _in_samples(key, "the sample", "missing" if recorded is None else recorded, number)


def _refuse(parsed: Parsed, *names: str) -> None:
    for name in names:
        if rows := parsed.record[name]:
            with reading(f"{name}.csv", rows[0]):
                raise ValueError(f"{name}.csv must be empty where {parsed.config.rule.evidence} decide")


class VoteEvidence(Evidence):
    """Each step's counted votes in order.

    Raises:
        RecordError: there are ratings, or rows of evidence.csv.
    """

    def __init__(self, parsed: Parsed) -> None:
        _refuse(parsed, "ratings", "evidence")
        self._votes_of = parsed.counted_votes

    def settle(
        self, comparison: Comparison[Any], numbers: tuple[int, int], is_decided: bool
    ) -> Generator[Difference, None, Verdict]:
        """Return the verdict of the step's votes; see `Evidence`."""
        key = comparison.chain, comparison.step
        cast = self._votes_of.get(key, [])
        yield from _compare_voters(key, cast)
        tally = Tally.empty(len(comparison.max_votes))
        verdict = tell(comparison, tally)
        for vote in cast:
            judge = int(vote["judge_index"])
            with reading(tables.VOTES.file, vote):
                counted = tally.add(judge, vote["chosen_side"] == vote["proposal_side"])
            if verdict is not Verdict.UNDECIDED:
                problem = f"not counted: {verdict.value} was settled before it"
            elif counted.votes_cast[judge] > comparison.max_votes[judge]:
                problem = f"not counted: judge {judge} has given all its votes"
            else:
                tally, verdict = counted, tell(comparison, counted)
                continue
            yield of_step(key, f"vote {vote['number']}", "counted", problem, tables.VOTES.file, vote)
        return verdict


def _compare_voters(key: StepKey, cast: list[Row]) -> Iterator[Difference]:
    answered: set[tuple[int, str]] = set()
    for expected, vote in enumerate(cast, start=1):
        name = f"vote {vote['number']}"
        if int(vote["number"]) != expected:
            yield of_step(key, name, vote["number"], expected, tables.VOTES.file, vote)
        answer = int(vote["judge_index"]), vote["voter"] or f"slot {vote['slot']}"
        if answer in answered:
            whose = f"voter {vote['voter']}" if vote["voter"] else f"the model for slot {vote['slot']}"
            yield of_step(key, name, "counted", f"not counted: a second vote of {whose}", tables.VOTES.file, vote)
        answered.add(answer)


@dataclass(frozen=True)
class NumberEvidence(Evidence):
    """Numbers that objects were given alone; evidence.csv repeats those by which each step was decided.

    Args:
        rule: that decides.
        rows: of evidence.csv, by step; those of the steps that there are are taken out.
        given: what each state was given, by its number.
        names: the judge's index and the scorer's name of each number; one of the two is empty.
        numbers: of what a state was given, in the order of `names`; None where one is missing.
        incomplete: yields where a step's state has more or less than it should.
    """

    rule: PointwiseConfig | ScoredConfig
    rows: dict[StepKey, list[Row]]
    given: Mapping[int, Any]
    names: Sequence[tuple[str, str]]
    numbers: Callable[[Any], tuple[float, ...] | None]
    incomplete: Callable[[StepKey, int], Iterator[Difference]] = lambda key, number: iter(())

    def settle(
        self, comparison: Comparison[Any], numbers: tuple[int, int], is_decided: bool
    ) -> Generator[Difference, None, Verdict]:
        """Return the verdict that the numbers give; see `Evidence`."""
        key = comparison.chain, comparison.step
        if comparison.is_identity or not is_decided:
            yield from self._compare(key, {})
            # Another chain at the same object may have brought the last number while the record was written.
            return Verdict.ACCEPT if comparison.is_identity else Verdict.UNDECIDED
        yield from (each for number in numbers for each in self.incomplete(key, number))
        current, proposal = (self.numbers(self.given[number]) for number in numbers)
        pairs = zip(current, proposal, strict=True) if current and proposal else ()
        yield from self._compare(key, dict(zip(self.names, pairs, strict=False)))
        return tell_by_numbers(self.rule, comparison, current, proposal)

    def _compare(self, key: StepKey, left: dict[tuple[str, str], tuple[float, float]]) -> Iterator[Difference]:
        """Yield where evidence.csv has other rows of a step than these."""
        for row in self.rows.pop(key, ()):
            numbers = left.pop((row["judge_index"], row["scorer"]), None)
            recorded = float(row["current_number"]), float(row["proposal_number"])
            if recorded != numbers:
                shown = "none" if numbers is None else " and ".join(map(str, numbers))
                found = " and ".join(map(str, recorded))
                yield of_step(key, "the numbers", found, shown, tables.EVIDENCE.file, row)
        for judge, scorer in left:
            yield of_step(key, f"the numbers of {scorer or f'judge {judge}'}", "none", "a row", tables.EVIDENCE.file)

    def unused(self) -> Iterator[Difference]:
        """Yield rows of steps that there are not."""
        for key, rows in self.rows.items():
            yield of_step(key, "the numbers", "a row", "none: there is no such step", tables.EVIDENCE.file, rows[0])


def _recorded_numbers(parsed: Parsed) -> dict[StepKey, list[Row]]:
    rows: dict[StepKey, list[Row]] = defaultdict(list)
    for row in parsed.record["evidence"]:
        rows[step_key(row)].append(row)
    return rows


def _rating_evidence(parsed: Parsed) -> NumberEvidence:
    """Return the ratings by which steps were decided.

    Raises:
        RecordError: a rating is of no state, judge or slot, off the scale, or there twice.
    """
    # Rules of this evidence are of this kind.
    rule, max_votes = cast(PointwiseConfig, parsed.config.rule), parsed.config.max_votes
    states = {int(row["state_index"]) for row in parsed.states}
    by_slot: dict[int, dict[tuple[int, int], int]] = defaultdict(dict)
    for row in parsed.record["ratings"]:
        with reading(tables.RATINGS.file, row):
            state, judge, slot = int(row["state_index"]), int(row["judge_index"]), int(row["slot"])
            name = f"the rating of state {state} by judge {judge} in slot {slot}"
            if state not in states or not 0 <= judge < len(max_votes) or not 0 <= slot < max_votes[judge]:
                raise ValueError(f"{name} is not possible: there is no such judge, slot or state")
            if (judge, slot) in by_slot[state]:
                raise ValueError(f"{name} occurs twice")
            if row["rating"] not in rule.scale.answers:
                raise ValueError(f"{name} must be {rule.lowest} to {rule.highest}, not “{row['rating']}”")
            by_slot[state][judge, slot] = int(row["rating"])
    given: dict[int, list[list[int]]] = defaultdict(lambda: [[] for _ in max_votes])
    for state, ratings in by_slot.items():
        for (judge, _), rating in sorted(ratings.items()):
            given[state][judge].append(rating)

    def incomplete(key: StepKey, number: int) -> Iterator[Difference]:
        counts = list(map(len, given[number]))
        if counts != list(max_votes):
            what = f"the numbers of ratings of state {number}"
            yield of_step(key, what, counts, list(max_votes), tables.RATINGS.file)

    names = [(str(judge), "") for judge in range(len(max_votes))]
    return NumberEvidence(
        rule, _recorded_numbers(parsed), given, names, partial(mean_ratings, rule, max_votes), incomplete
    )


def _score_evidence(parsed: Parsed) -> NumberEvidence:
    """Return the numbers of scorers by which steps were decided.

    Raises:
        RecordError: a score of the rule's scorers is there twice or no number that the rule can use, or there are
            votes or ratings.
    """
    _refuse(parsed, "votes", "ratings")
    # Rules of this evidence are of this kind.
    rule = cast(ScoredConfig, parsed.config.rule)
    given: dict[int, dict[str, float]] = defaultdict(dict)
    for row in parsed.record["scores"]:
        state, scorer = int(row["state_index"]), row["scorer"]
        if scorer not in rule.scorers or not row["score"]:
            continue
        with reading(tables.SCORES.file, row):
            if scorer in given[state]:
                raise ValueError(f"the score of state {state} by {scorer} occurs twice")
            given[state][scorer] = float(row["score"])
            numbers_of(rule, given[state])
    names = [("", scorer) for scorer in rule.scorers]
    return NumberEvidence(rule, _recorded_numbers(parsed), given, names, partial(numbers_of, rule))


class NoEvidence(Evidence):
    """Of rule base: nothing decides, every proposal is accepted.

    Raises:
        RecordError: there are votes, ratings or rows of evidence.csv.
    """

    def __init__(self, parsed: Parsed) -> None:
        _refuse(parsed, "votes", "ratings", "evidence")

    def settle(
        self, comparison: Comparison[Any], numbers: tuple[int, int], is_decided: bool
    ) -> Generator[Difference, None, Verdict]:
        """Return that the step is accepted; see `Evidence`."""
        yield from ()
        return Verdict.ACCEPT


_EVIDENCE: dict[str, Callable[[Parsed], Evidence]] = {
    "votes": VoteEvidence,
    "ratings": _rating_evidence,
    "scores": _score_evidence,
    "none": NoEvidence,
}
"""By what decides a step: `evidence` of the rule."""
