"""A record's protocol.json: what it says of the trials that people were shown between their pairs, drawn again.

Which vote is followed by a trial, of which kind, and what stands on which side, are functions of the seed, the person's
number, how many votes they had given, and the shares that the protocol declares. That a trial is missing cannot be
seen: its person may have left, or no pair could be repeated.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sampler.config import ChainConfig
from sampler.judges.attention import Shares, Trial, check_after
from sampler.record import schema
from sampler.record.check_chain import Difference, Row

_OTHER = {"first": "second", "second": "first"}


@dataclass(frozen=True)
class TrialDifference(Difference):
    """A difference that is about a trial: `chain` is the person's number, `step` how many votes they had given."""

    file: str = schema.CHECKS.file

    def __str__(self) -> str:
        return (
            f"checks.csv, annotator {self.chain}, after {self.step} votes: {self.what}: the export has "
            f"{self.recorded}, expected {self.recomputed}"
        )


@dataclass(frozen=True)
class ProtocolDifference(Difference):
    """A difference that is about the whole campaign."""

    file: str = schema.PROTOCOL

    def __str__(self) -> str:
        return f"protocol.json: {self.what}: the export has {self.recorded}, expected {self.recomputed}"


@dataclass(frozen=True)
class Declared:
    """What protocol.json declares of trials that are no votes."""

    shares: Shares
    answers: tuple[str, ...]
    """Which side of each gold pair is right."""


def compare_protocol(
    config: ChainConfig,
    protocol: Mapping[str, Any],
    checks: Sequence[Row],
    votes: Sequence[Row],
    *,
    waits_for_seed: bool = False,
) -> Iterator[Difference]:
    """Yield where checks.csv is not what protocol.json gives, or protocol.json does not fit the rest.

    Args:
        waits_for_seed: the seed is not told yet, so which trials there should be cannot be drawn again.

    Raises:
        KeyError: a row lacks a column.
        ValueError: protocol.json lacks a field, or a value is not what it should be.
    """
    declared = declared_in(protocol)
    voted = {_pair_key(row): row["chosen_side"] for row in votes if row["annotator"]}
    seen: set[tuple[int, int]] = set()
    for row in checks:
        key = int(row["annotator"]), int(row["after_votes"])
        if key in seen:
            yield TrialDifference(*key, "the trial", "a second one", "one", row=row)
        seen.add(key)
        if not waits_for_seed:
            yield from _compare_trial(config.seed, declared, key, row)
        yield from _compare_answer(key, row, voted)
    yield from _compare_consent(protocol)
    yield from _compare_budget(config, protocol, checks, votes)


def _compare_trial(seed: int, declared: Declared, key: tuple[int, int], row: Row) -> Iterator[TrialDifference]:
    annotator, after = key
    trial = check_after(seed, annotator, after, declared.shares, len(declared.answers))
    if trial is None:
        yield TrialDifference(annotator, after, "the trial", _kind(row), "none: the declared shares give none", row=row)
        return
    for column, expected in _cells(trial, declared).items():
        recorded = row.get(column, expected if column != "kind" else "instructed")
        if recorded != expected:
            yield TrialDifference(annotator, after, column, f"“{recorded}”", f"“{expected}”", row=row)


def _cells(trial: Trial, declared: Declared) -> dict[str, str]:
    """Return what checks.csv says of a trial before anybody has answered."""
    is_swapped = trial.kind != "instructed" and trial.side == "second"
    expected = {"instructed": trial.side, "repeat": ""}.get(trial.kind, "")
    if trial.gold is not None:
        right = declared.answers[trial.gold]
        expected = _OTHER[right] if is_swapped else right
    gold = "" if trial.gold is None else str(trial.gold)
    return {"kind": trial.kind, "gold": gold, "swapped": str(int(is_swapped)), "expected_side": expected}


def _compare_answer(key: tuple[int, int], row: Row, voted: Mapping[tuple[str, ...], str]) -> Iterator[Difference]:
    chosen, expected = row["chosen_side"], row["expected_side"]
    passed = str(int(chosen == expected)) if chosen and expected else ""
    if row["passed"] != passed:
        yield TrialDifference(*key, "passed", f"“{row['passed']}”", f"“{passed}”", row=row)
    # A record that is written while people vote may have the repeat of a vote that came after its moment.
    before = voted.get(_pair_key(row)) if _kind(row) == "repeat" else None
    if before is None:
        return
    agreed = str(int((chosen == before) != (row["swapped"] == "1"))) if chosen else ""
    if row["agreed"] != agreed:
        yield TrialDifference(*key, "agreed", f"“{row['agreed']}”", f"“{agreed}”", row=row)


def _compare_consent(protocol: Mapping[str, Any]) -> Iterator[ProtocolDifference]:
    if protocol.get("consent") is None:
        return
    consent = _object(protocol, "consent")
    version = hashlib.sha256(str(consent.get("text")).encode()).hexdigest()
    if consent.get("version") != version:
        yield ProtocolDifference(0, 0, "the version of the consent text", f"“{consent.get('version')}”", f"“{version}”")


def _compare_budget(
    config: ChainConfig, protocol: Mapping[str, Any], checks: Iterable[Row], votes: Iterable[Row]
) -> Iterator[ProtocolDifference]:
    if protocol.get("budget") is None:
        return
    budget = _object(protocol, "budget")
    set_aside, most = config.chains_at_most * config.steps * config.votes_a_step, _number(budget, "answers")
    if budget.get("set_aside") != set_aside:
        yield ProtocolDifference(0, 0, "budget.set_aside", f"{budget.get('set_aside')}", f"{set_aside}")
    given = sum(row["annotator"] != "" for row in votes) + sum(row["chosen_side"] != "" for row in checks)
    if not set_aside <= most or given > most:
        expected = f"{max(set_aside, given)} or more, for the votes that were set aside and the {given} answers"
        yield ProtocolDifference(0, 0, "budget.answers", f"{most:g}", expected)


def declared_in(document: Mapping[str, Any]) -> Declared:
    """Return what a record's protocol.json declares.

    Raises:
        ValueError: it lacks a field, or a value is not what it should be.
    """
    protocol = _object(document, "protocol")
    golds = protocol.get("gold", [])
    if not isinstance(golds, list) or not all(_is_gold(each) for each in golds):
        raise ValueError("protocol.gold of protocol.json must hold pairs with an answer, first or second")
    shares = Shares(*(_number(protocol, name) for name in ("check_share", "gold_share", "repeat_share")))
    if not 0 <= shares.total <= 1 or (shares.gold and not golds):
        raise ValueError("the shares in protocol.json must be at most 1 together, and gold_share needs gold pairs")
    return Declared(shares, tuple(each["answer"] for each in golds))


def _is_gold(pair: object) -> bool:
    return isinstance(pair, Mapping) and pair.get("answer") in _OTHER


def _object(parent: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = parent.get(name)
    if not isinstance(found, Mapping):
        raise ValueError(f"{name} in protocol.json must be an object")
    return found


def _number(parent: Mapping[str, Any], name: str) -> float:
    found = parent.get(name)
    if isinstance(found, bool) or not isinstance(found, int | float) or found < 0:
        raise ValueError(f"{name} in protocol.json must be a number from 0 on")
    return found


def _kind(row: Row) -> str:
    return row.get("kind", "instructed")


def _pair_key(row: Row) -> tuple[str, ...]:
    return tuple(row.get(column, "") for column in ("annotator", "chain", "step", "judge"))
