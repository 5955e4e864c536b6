"""A record's checks.csv: the trials that people were shown between their pairs, drawn again.

Which vote is followed by a trial, of which kind, and what stands on which side, are functions of the seed, the person's
number, how many votes they had given, and the shares that the protocol declares. That a trial is missing cannot be
seen: its person may have left, or no pair could be repeated.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sampler.judges.presentation import Shares, Trial, check_after
from sampler.record import tables
from sampler.record.chains import Parsed
from sampler.record.differences import Difference, Row, of_file, quoted, reading

_OTHER = {"first": "second", "second": "first"}
_Key = tuple[int, int]
"""The voter, and how many votes they had given."""


@dataclass(frozen=True)
class Declared:
    """What campaign.json declares of trials that are no votes."""

    shares: Shares
    answers: tuple[str, ...]
    """Which side of each gold pair is right; empty while that is hidden."""


def compare_trials(parsed: Parsed) -> Iterator[Difference]:
    """Yield where checks.csv is not what campaign.json gives.

    Raises:
        RecordError: the study of campaign.json lacks a field, or a value is not what it should be.
    """
    if not parsed.record.study:
        return
    with reading(tables.CONFIG):
        declared = declared_in(parsed.record.study)
    voted = {_pair_key(row): row["chosen_side"] for row in parsed.record["votes"] if row["voter"]}
    seen: set[_Key] = set()
    for row in parsed.record["checks"]:
        key = int(row["voter"]), int(row["after_votes"])
        if key in seen:
            yield _of_trial(key, "the trial", "a second one", "one", row)
        seen.add(key)
        if not parsed.waits_for_seed:
            yield from _compare_trial(parsed.config.seed, declared, key, row)
        yield from _compare_answer(key, row, voted)


def compare_budget(parsed: Parsed) -> Iterator[Difference]:
    """Yield that more answers were given than the budget of campaign.json, or that it does not cover the steps."""
    if parsed.record.study.get("budget") is None:
        return
    with reading(tables.CONFIG):
        most = _number(parsed.record.study, "budget")
    config = parsed.config
    set_aside = config.chains_at_most * config.steps * config.votes_a_step
    answered = sum(row["chosen_side"] != "" for row in parsed.record["checks"])
    given = sum(row["voter"] != "" for row in parsed.record["votes"]) + answered
    if not set_aside <= most or given > most:
        expected = f"{max(set_aside, given)} or more, for the votes that were set aside and the {given} answers"
        yield of_file(tables.CONFIG, "study.budget", f"{most:g}", expected)


def _of_trial(key: _Key, what: str, recorded: str, expected: str, row: Row) -> Difference:
    where = f"checks.csv, voter {key[0]}, after {key[1]} votes"
    return Difference(where, what, recorded, expected, tables.CHECKS.file, row)


def _compare_trial(seed: int, declared: Declared, key: _Key, row: Row) -> Iterator[Difference]:
    trial = check_after(seed, *key, declared.shares, len(declared.answers))
    if trial is None:
        yield _of_trial(key, "the trial", row["kind"], "none: the declared shares give none", row)
        return
    for column, expected in _cells(trial, declared).items():
        if row[column] != expected:
            yield _of_trial(key, column, quoted(row[column]), quoted(expected), row)


def _cells(trial: Trial, declared: Declared) -> dict[str, str]:
    """Return what checks.csv says of a trial before anybody has answered."""
    is_swapped = trial.kind != "instructed" and trial.side == "second"
    expected = {"instructed": trial.side, "repeat": ""}.get(trial.kind, "")
    if trial.gold is not None:
        right = declared.answers[trial.gold]
        expected = _OTHER[right] if is_swapped and right else right
    gold = "" if trial.gold is None else str(trial.gold)
    return {"kind": trial.kind, "gold_index": gold, "swapped": str(int(is_swapped)), "expected_side": expected}


def _compare_answer(key: _Key, row: Row, voted: Mapping[tuple[str, ...], str]) -> Iterator[Difference]:
    chosen, expected = row["chosen_side"], row["expected_side"]
    passed = str(int(chosen == expected)) if chosen and expected else ""
    if row["passed"] != passed:
        yield _of_trial(key, "passed", quoted(row["passed"]), quoted(passed), row)
    before = voted.get(_pair_key(row)) if row["kind"] == "repeat" else None
    if before is None and row["kind"] == "repeat":
        # A record that is written while people vote may have the repeat of a vote that came after its moment.
        return
    agreed = str(int((chosen == before) != (row["swapped"] == "1"))) if chosen and before else ""
    if row["agreed"] != agreed:
        yield _of_trial(key, "agreed", quoted(row["agreed"]), quoted(agreed), row)


def declared_in(study: Mapping[str, Any]) -> Declared:
    """Return what the study of a record's campaign.json declares.

    Raises:
        ValueError: it lacks a field, or a value is not what it should be.
    """
    protocol = study.get("protocol")
    if not isinstance(protocol, Mapping):
        raise ValueError("study.protocol in campaign.json must be an object")
    golds = protocol.get("gold", [])
    if not isinstance(golds, list) or not all(_is_gold(each) for each in golds):
        raise ValueError("study.protocol.gold in campaign.json must hold pairs whose answer is first or second")
    shares = Shares(*(_number(protocol, name) for name in ("check_share", "gold_share", "repeat_share")))
    if not 0 <= shares.total <= 1 or (shares.gold and not golds):
        raise ValueError("the shares in campaign.json must be at most 1 together, and gold_share needs gold pairs")
    return Declared(shares, tuple(each.get("answer", "") for each in golds))


def _is_gold(pair: object) -> bool:
    return isinstance(pair, Mapping) and pair.get("answer", "first") in _OTHER


def _number(parent: Mapping[str, Any], name: str) -> float:
    found = parent.get(name)
    if isinstance(found, bool) or not isinstance(found, int | float) or found < 0:
        raise ValueError(f"{name} in campaign.json must be a number from 0 on")
    return found


def _pair_key(row: Row) -> tuple[str, ...]:
    return tuple(row[column] for column in ("voter", "chain_index", "step", "judge_index"))
