"""A report on one exported campaign, line by line."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from sampler.diagnostics import (
    Comparisons,
    NoFit,
    acceptance_rate,
    bradley_terry_intervals,
    cohen_kappa,
    convergence,
    cycle_test,
    fleiss_kappa,
    fleiss_kappa_interval,
    side_lean,
)
from sampler.record import Record, Row
from sampler.replay import RecordError

_SHOWN_ITEMS = 10
_SHOWN_PAIRS = 5
# With fewer questions in common, two people's kappa says nothing.
_FEWEST_SHARED = 10

Chain = list[Row]


@dataclass(frozen=True)
class _Answer:
    """One vote: which of two objects, told apart by their order in the catalog, this annotator chose."""

    annotator: str
    pair: tuple[int, int]
    winner: int

    @property
    def loser(self) -> int:
        return self.pair[0] if self.winner == self.pair[1] else self.pair[1]


def diagnose(record: Record, rng: np.random.Generator, column: str = "state", resamples: int = 1_000) -> Iterator[str]:
    """Yield the report: acceptance, convergence of a column, lean, and for each judge scores and agreement.

    Args:
        column: a column of numbers in samples.csv or states.csv, followed along the chains.
        resamples: bootstrap resamples behind the scores' intervals.

    Raises:
        RecordError: the record lacks a column, or a cell is not what its column holds.
        MissingExtra: a library of the extra [analysis] is not installed.
    """
    values = _column(record, column)
    try:
        opening = [*_chains(record), _convergence(column, values), _lean(record.votes)]
        names, by_judge = _names(record), list(_answers(record))
    except KeyError as error:
        raise RecordError(f"the record cannot be read: there is no column or row {error}") from error
    except (IndexError, ValueError) as error:
        raise RecordError(f"the record cannot be read: {error}") from error
    yield from opening
    for judge, question, answers in by_judge:
        yield ""
        yield f"Judge {judge}: {question}"
        yield from (f"  {line}" for line in _judge(answers, names, rng, resamples))


def _chains(record: Record) -> Iterator[str]:
    decided = _by_chain([row for row in record.steps if row["verdict"]])
    open_steps = len(record.steps) - sum(map(len, decided.values()))
    late = sum(not row["number"] for row in record.votes)
    yield (
        f"{_many(len(_by_chain(record.samples)), 'chain')}, {_many(sum(map(len, decided.values())), 'decided step')}, "
        f"{open_steps} open; {_many(len(record.votes), 'vote')}, {late} of them late"
    )
    if not decided:
        return
    accepted = [[row["verdict"] == "accept" for row in chain] for chain in decided.values()]
    moved = [
        [row["verdict"] == "accept" and row["current"] != row["proposal"] for row in chain]
        for chain in decided.values()
    ]
    rate = acceptance_rate(accepted, moved)
    yield (
        f"Acceptance rate: {rate.accepted:.1%} of steps (by chain {min(rate.by_chain):.1%} to "
        f"{max(rate.by_chain):.1%}); {rate.moved:.1%} moved to another object"
    )


def _convergence(column: str, chains: Sequence[Sequence[float]]) -> str:
    try:
        found = convergence(chains)
    except ValueError as reason:
        return f"Convergence of {column}: cannot be measured; {reason}"
    r_hat = "needs two chains" if math.isnan(found.r_hat) else f"{found.r_hat:.3f}"
    return (
        f"Convergence of {column}: R-hat {r_hat}, effective sample size {found.bulk_ess:.0f} (bulk), "
        f"{found.tail_ess:.0f} (tail), from {_many(found.chains, 'chain')} of {_many(found.draws, 'draw')}"
    )


def _lean(votes: Sequence[Row]) -> str:
    if not votes:
        return "Lean to one side: there is no vote"
    left = sum(row["chosen_side"] == "left" for row in votes)
    lean = side_lean(left, len(votes))
    return (
        f"Lean to the left side: log-odds {lean.log_odds:+.3f}, 95 % interval {lean.low:+.3f} to {lean.high:+.3f} "
        f"(Wilson), left chosen in {left} of {_many(lean.votes, 'vote')}"
    )


def _judge(answers: list[_Answer], names: dict[int, str], rng: np.random.Generator, resamples: int) -> Iterator[str]:
    # Late votes are honest votes: they came too late for the chain, not for the scores.
    comparisons = Comparisons.of((names[each.winner], names[each.loser]) for each in answers)
    try:
        scores = bradley_terry_intervals(comparisons, rng, resamples)
    except NoFit as reason:
        yield f"Bradley-Terry scores cannot be fitted: {reason}"
    else:
        order = np.argsort(-scores.estimate)
        shown = order if len(order) <= 2 * _SHOWN_ITEMS else [*order[:_SHOWN_ITEMS], *order[-_SHOWN_ITEMS:]]
        yield f"Bradley-Terry scores of {len(order)} objects from {comparisons.votes} votes, with 95 % intervals"
        for place, i in enumerate(shown):
            if len(shown) < len(order) and place == _SHOWN_ITEMS:
                yield f"  … {len(order) - len(shown)} more"
            interval = f"{scores.low[i]:+.2f} to {scores.high[i]:+.2f}"
            yield f"  {scores.estimate[i]:+.2f}  ({interval})  {scores.items[i]}"
        yield _cycles(comparisons, rng)
    yield from _agreement(answers, rng)


def _cycles(comparisons: Comparisons, rng: np.random.Generator) -> str:
    try:
        test = cycle_test(comparisons, rng)
    except ValueError as reason:
        return f"Cycles: {reason}"
    return f"Cycles: X² = {test.statistic:.1f} on {_many(test.cycles, 'independent cycle')}, p = {test.p_value:.2g}"


def _agreement(answers: list[_Answer], rng: np.random.Generator) -> Iterator[str]:
    first: dict[tuple[int, int], dict[str, int]] = defaultdict(dict)
    repeats: list[tuple[bool, bool]] = []
    for each in answers:
        if each.annotator:
            before = first[each.pair].setdefault(each.annotator, each.winner)
            repeats.append((before == each.pair[0], each.winner == each.pair[0]))
    shared = {pair: given for pair, given in first.items() if len(given) > 1}
    if shared:
        counts = [[sum(w == side for w in given.values()) for side in pair] for pair, given in shared.items()]
        low, high = fleiss_kappa_interval(counts, rng)
        interval = (
            "" if math.isnan(low) else f", 95 % interval {low:.2f} to {high:.2f}; biased where voting stopped early"
        )
        yield f"Fleiss' kappa of {_many(len(shared), 'shared question')}: {_kappa(fleiss_kappa(counts))}{interval}"
        yield from _pairs_of_people(shared)
    else:
        yield "Shared questions: none was answered by two people"
    again = len(repeats) - sum(len(given) for given in first.values())
    if again:
        # First answers met themselves above; what is left are true second answers.
        yield f"Repeated questions: {_many(again, 'second answer')}, Cohen's kappa {_kappa(_self_kappa(answers))}"


def _pairs_of_people(shared: dict[tuple[int, int], dict[str, int]]) -> Iterator[str]:
    both: dict[tuple[str, str], list[tuple[bool, bool]]] = defaultdict(list)
    for pair, given in shared.items():
        for one, other in combinations(sorted(given), 2):
            both[one, other].append((given[one] == pair[0], given[other] == pair[0]))
    enough = sorted((item for item in both.items() if len(item[1]) >= _FEWEST_SHARED), key=lambda item: -len(item[1]))
    for (one, other), chosen in enough[:_SHOWN_PAIRS]:
        kappa = cohen_kappa([a for a, _ in chosen], [b for _, b in chosen])
        yield f"  Cohen's kappa of annotators {one} and {other}: {_kappa(kappa)} on {len(chosen)} questions"
    if len(enough) > _SHOWN_PAIRS:
        yield f"  … {len(enough) - _SHOWN_PAIRS} more pairs of annotators"


def _self_kappa(answers: list[_Answer]) -> float:
    before: dict[tuple[str, tuple[int, int]], int] = {}
    chosen = []
    for each in answers:
        key = (each.annotator, each.pair)
        if each.annotator and key in before:
            chosen.append((before[key] == each.pair[0], each.winner == each.pair[0]))
        before.setdefault(key, each.winner)
    return cohen_kappa([a for a, _ in chosen], [b for _, b in chosen])


def _answers(record: Record) -> Iterator[tuple[int, str, list[_Answer]]]:
    """Yield each judge's number, question and answers, these in the order in which they were given."""
    asked = {(row["chain"], row["step"]): (int(row["current"]), int(row["proposal"])) for row in record.steps}
    by_judge: dict[int, list[_Answer]] = defaultdict(list)
    # One format and one time zone, so that times sort as text; votes without a time stay as they stand.
    for row in sorted(record.votes, key=lambda row: row.get("cast_at", "")):
        current, proposal = asked[row["chain"], row["step"]]
        winner = proposal if row["for_proposal"] == "1" else current
        pair = (min(current, proposal), max(current, proposal))
        by_judge[int(row["judge"])].append(_Answer(row["annotator"], pair, winner))
    judges = record.recipe["judges"]
    for judge in sorted(by_judge):
        yield judge, judges[judge]["question"], by_judge[judge]


def _column(record: Record, column: str) -> list[list[float]]:
    """Return the column's number after each step, one list a chain; the start is no draw."""
    drawn = [row for row in record.samples if row["step"] != "0"]
    of_state = {row["state"]: row for row in record.states}
    in_samples = bool(record.samples) and column in record.samples[0]
    try:
        rows = [(row["chain"], float((row if in_samples else of_state[row["state"]])[column])) for row in drawn]
    except (KeyError, ValueError) as error:
        columns = sorted(
            {name for row in (*record.samples[:1], *record.states[:1]) for name in row if _is_number(row[name])}
        )
        raise RecordError(f"there is no column of numbers {column!r}; there are {', '.join(columns)}") from error
    values: dict[str, list[float]] = defaultdict(list)
    for chain, value in rows:
        values[chain].append(value)
    return list(values.values())


def _names(record: Record) -> dict[int, str]:
    """Return what to call each object: the first line of its content, and its number where two read alike."""
    short = {int(row["state"]): (row["content"].splitlines() or [""])[0][:60] for row in record.states}
    taken = Counter(short.values())
    return {state: name if name and taken[name] == 1 else f"{name} #{state}".strip() for state, name in short.items()}


def _by_chain(rows: Sequence[Row]) -> dict[str, Chain]:
    chains: dict[str, Chain] = defaultdict(list)
    for row in rows:
        chains[row["chain"]].append(row)
    return chains


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _many(count: int, noun: str) -> str:
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def _kappa(value: float) -> str:
    return "undefined (one answer only)" if math.isnan(value) else f"{value:.2f}"
