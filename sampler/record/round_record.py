"""Whether rounds.csv says what the rest of a record says: when every chain could walk on, and that it was paid for.

Nothing decides how long a chain is but the declared steps and these rounds. Each opens when all chains have walked as
far as the rounds before allow, and only if the answers that were left cover all that it can take. The votes until then
and what a round can take are counted again; of the trials until then, which may have been deleted since, it is only
known that they were not fewer than none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sampler.judges.attention import trials_beside
from sampler.judges.rounds import Rounds
from sampler.recipe import Recipe
from sampler.record import schema
from sampler.record.check_chain import Difference, Row, Tables, step_key
from sampler.record.protocol_record import Declared, declared_in


@dataclass(frozen=True)
class RoundDifference(Difference):
    """A difference that is about a round of further steps: `step` is its number."""

    file: str = schema.ROUNDS.file

    def __str__(self) -> str:
        return f"rounds.csv, round {self.step}: {self.what}: the export has {self.recorded}, expected {self.recomputed}"


@dataclass(frozen=True)
class _Paid:
    """What pays for further steps."""

    budget: int
    declared: Declared

    def needed(self, votes: int) -> int:
        """Return how many answers so many votes come to, with the trials of the declared shares."""
        return votes + trials_beside(votes, self.declared.shares, self.declared.waiting_share)


def length_in(recipe: Recipe, rows: Sequence[Row] | None) -> int:
    """Return how long every chain of a record is at its end.

    Raises:
        ValueError: the recipe allows further steps, and there is no rounds.csv; or there is one, and it allows none.
    """
    if recipe.rounds is None and rows is not None:
        raise ValueError("there is a rounds.csv, although the recipe has no further_steps")
    if recipe.rounds is None:
        return recipe.steps
    if rows is None:
        raise ValueError("there is no rounds.csv, although the recipe has further_steps")
    return recipe.rounds.length_after(len(rows))


def compare_rounds(
    recipe: Recipe,
    rows: Sequence[Row],
    tables: Tables,
    chains: int,
    protocol: Mapping[str, Any] | None,
    checks: Sequence[Row],
) -> Iterator[Difference]:
    """Yield where rounds.csv cannot be right.

    Args:
        chains: how many the record has.
        protocol: what protocol.json holds: the budget and the declared shares.
        checks: the rows of checks.csv, if there are some.

    Raises:
        KeyError: a row lacks a column.
        ValueError: a number is none, or protocol.json has no budget.
    """
    if recipe.rounds is None:
        return
    paid, walks = _paid(protocol), _Walks(recipe, recipe.rounds, tables)
    latest = ""
    for number, row in enumerate(rows, start=1):
        yield from _compare_form(recipe, number, row, latest, chains)
        yield from _compare_moment(walks, number, row)
        yield from _compare_payment(walks, paid, number, row)
        latest = row["opened_at"]
    yield from _compare_last(walks, paid, len(rows), chains, protocol or {}, checks)


class _Walks:
    """How far the chains of a record have walked, and what that took."""

    def __init__(self, recipe: Recipe, rounds: Rounds, tables: Tables) -> None:
        self.rounds, self.steps = rounds, tables.steps
        models = {place for place, judge in enumerate(recipe.judges) if judge.source.kind == "model"}
        self._votes = [row for row in tables.votes if row["number"] and int(row["judge"]) not in models]
        self.of_people = sum(int(row["judge"]) not in models for row in tables.votes)
        self._ended, self._decided = tables.ended, tables.decided

    def before(self, number: int) -> int:
        """Return how long every chain is before a round."""
        return self.rounds.length_after(number - 1)

    def walking(self, number: int, opened: int) -> list[int]:
        """Return which of the first chains were not ended before a round."""
        length = self.before(number)
        return [chain for chain in range(opened) if self._ended.get(chain, length + 1) > length]

    def behind(self, number: int, opened: int) -> list[int]:
        """Return which of them had not walked all steps before a round."""
        return [c for c in self.walking(number, opened) if self._decided.get(c, 0) < self.before(number)]

    def votes_before(self, number: int, opened: int) -> int:
        """Return how many votes of people had counted when a round opened."""
        keys = map(step_key, self._votes)
        return sum(chain < opened and step <= self.before(number) for chain, step in keys)


def _paid(protocol: Mapping[str, Any] | None) -> _Paid:
    budget = None if protocol is None else protocol.get("budget")
    if protocol is None or not isinstance(budget, Mapping) or not isinstance(budget.get("answers"), int):
        raise ValueError("the recipe has further_steps, and protocol.json has no budget that pays for them")
    return _Paid(budget["answers"], declared_in(protocol))


def _compare_form(recipe: Recipe, number: int, row: Row, latest: str, chains: int) -> Iterator[Difference]:
    expected = {"round": number, "steps": recipe.further_steps}
    for column, value in expected.items():
        if int(row[column]) != value:
            yield RoundDifference(0, number, column, row[column], f"{value}", row=row)
    if recipe.rounds is not None and number > recipe.rounds.most:
        yield RoundDifference(0, number, "the round", "one", f"none: there are {recipe.rounds.most} at most", row=row)
    if not recipe.chains <= int(row["chains"]) <= chains:
        yield RoundDifference(0, number, "chains", row["chains"], f"{recipe.chains} to {chains}", row=row)
    # Moments of one zone, written in one way: their order is that of their letters.
    if row["opened_at"] < latest:
        yield RoundDifference(0, number, "opened_at", row["opened_at"], f"{latest} or later", row=row)


def _compare_moment(walks: _Walks, number: int, row: Row) -> Iterator[Difference]:
    opened, length = int(row["chains"]), walks.before(number)
    for chain in walks.behind(number, opened):
        yield RoundDifference(
            0, number, f"chain {chain}", "a shorter one", f"{length} decided steps, or its end", row=row
        )
    if (walking := len(walks.walking(number, opened))) != int(row["walking"]):
        yield RoundDifference(0, number, "walking", row["walking"], f"{walking}", row=row)
    for step in walks.steps:
        chain, place = step_key(step)
        if chain < opened and length < place <= length + walks.rounds.steps and step["opened_at"] < row["opened_at"]:
            yield RoundDifference(
                0, number, f"when step {place} of chain {chain} opened", step["opened_at"],
                f"no earlier than the round, {row['opened_at']}", row=row,
            )  # fmt: skip


def _compare_payment(walks: _Walks, paid: _Paid, number: int, row: Row) -> Iterator[Difference]:
    opened, walking = int(row["chains"]), int(row["walking"])
    votes = walks.votes_before(number, opened)
    needed = paid.needed(walks.rounds.votes_at_most(number, opened, walking))
    for column, expected in {"votes": votes, "answers_needed": needed}.items():
        if int(row[column]) != expected:
            yield RoundDifference(0, number, column, row[column], f"{expected}", row=row)
    if not needed <= int(row["answers_left"]) <= paid.budget - votes:
        between = f"{needed}, which the round can take, to {paid.budget - votes} of the budget"
        yield RoundDifference(0, number, "answers_left", row["answers_left"], between, row=row)


def _compare_last(
    walks: _Walks, paid: _Paid, rounds: int, chains: int, protocol: Mapping[str, Any], checks: Sequence[Row]
) -> Iterator[Difference]:
    """Yield that a round is missing, if all chains have walked to their end and the next one is paid for."""
    upcoming = rounds + 1
    walking = walks.walking(upcoming, chains)
    if not walking or walks.behind(upcoming, chains) or upcoming > walks.rounds.most or _has_erased(protocol, checks):
        return
    needed = paid.needed(walks.rounds.votes_at_most(upcoming, chains, len(walking)))
    # Trials that were skipped may have been skipped afterwards: they were out when the round would have opened.
    left = paid.budget - walks.of_people - len(checks)
    if left >= needed:
        yield RoundDifference(0, upcoming, "the round", "none", f"one: {left} answers are left, and it takes {needed}")


def _has_erased(protocol: Mapping[str, Any], checks: Sequence[Row]) -> bool:
    """True where the record lacks trials of people who had who they are deleted."""
    spent = protocol["budget"].get("spent") or {}
    return int(spent.get("trials", 0)) > sum(row["chosen_side"] != "" for row in checks)
