"""A record's tuning.json: what a warm-up has counted and chosen.

The application writes with `tuned` and `ended_early` what a replay compares by `chosen_in`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from sampler.acceptance import Verdict
from sampler.config import ChainConfig
from sampler.kernels.warm_up import (
    CLOSE,
    FAR_AT_ONCE,
    FEWEST_VOTES,
    LEAST_SHARE_WON,
    MOST_OF_THE_WAY,
    WarmUp,
    chosen_length,
    says_too_little,
    trials,
)
from sampler.objects.properties import measure_of
from sampler.record import tables
from sampler.record.record import Difference, of_file, reading, step_key

if TYPE_CHECKING:
    from sampler.record.draws import Parsed

RULE_VERSION = 1
RULE = (
    f"Of the lengths with at least {LEAST_SHARE_WON:.1%} of their votes for the proposal, the longest whose squared "
    f"jump per vote is at least {CLOSE:.0%} of the largest. The jump is that of the slowest property, in units of its "
    f"spread, less one standard error. If the proposals of the shortest length lie at least {FAR_AT_ONCE:.0%} as far, "
    f"squared, as those of the length that goes farthest, lengths beyond the first that goes {MOST_OF_THE_WAY:.0%} as "
    f"far are left out. The middle length if there are fewer than {FEWEST_VOTES} votes, or if no property has changed."
)
TUNED, MIDDLE, ENDED = (
    "chosen by the rule",
    "the middle of the grid: too little to choose by",
    "the warm-up was ended early",
)
# RDKit's properties may differ in their last digits from one version to the next.
_CLOSE_ENOUGH = 1e-6
# Of a whole number in a file, which may be too large for a float.
_LARGEST = 1e300


@dataclass(frozen=True)
class WarmUpStep:
    """A decided step of a warm-up.

    Args:
        chain, step: which one.
        votes, votes_for: counted votes of all judges, and those of them for the proposal.
        before, proposal: content and code of the state before the step, and of the one that was proposed.
        accepted: whether the chain moved there.
    """

    chain: int
    step: int
    votes: int
    votes_for: int
    before: tuple[str, str]
    proposal: tuple[str, str]
    accepted: bool

    @property
    def after(self) -> tuple[str, str]:
        """Content and code of the state after the step."""
        return self.proposal if self.accepted else self.before


def tuned(config: ChainConfig, steps: Sequence[WarmUpStep]) -> dict[str, Any]:
    """Return tuning.json for the decided steps of a warm-up, of the chains that the campaign started with.

    Raises:
        ValueError: the config has no warm-up, or an object cannot be measured.
    """
    warm_up, measure = config.warm_up, measure_of(config.space.model_dump(mode="json"))
    if warm_up is None or measure is None:
        raise ValueError("the config has no warm-up")

    def properties(state: tuple[str, str]) -> list[float]:
        measured = measure(*state)
        # A property that some molecule lacks is left out.
        return [number(measured.get(name)) for name in warm_up.properties]

    def number(value: float | None) -> float:
        return math.nan if value is None else float(value)

    tried = trials(
        warm_up.grid,
        [config.part_of(each.chain, each.step) or 0 for each in steps],
        [each.votes for each in steps],
        [each.votes_for for each in steps],
        [properties(each.before) for each in steps],
        [properties(each.proposal) for each in steps],
        [properties(each.after) for each in steps],
    )
    because = MIDDLE if says_too_little(tried) else TUNED
    told = [asdict(each) | {"share_won": each.share_won} for each in tried]
    return _described(warm_up, chosen_length(tried), because) | {"trials": told}


def ended_early(config: ChainConfig, moment: str) -> dict[str, Any]:
    """Return tuning.json of a warm-up that somebody has ended.

    Raises:
        ValueError: the config has no warm-up.
    """
    if config.warm_up is None:
        raise ValueError("the config has no warm-up")
    kernel: Any = config.kernel
    return _described(config.warm_up, int(kernel.length[0].length), ENDED) | {"ended_at": moment}


def _described(warm_up: WarmUp, length: int, because: str) -> dict[str, Any]:
    about = {"steps": warm_up.steps, "grid": list(warm_up.grid), "properties": list(warm_up.properties)}
    return about | {"rule_version": RULE_VERSION, "rule": RULE, "length": length, "because": because}


def chosen_in(parsed: Parsed) -> tuple[int | None, list[Difference]]:
    """Return how far the steps after the warm-up should walk, and where tuning.json differs.

    None where nothing is chosen yet, or where there is no warm-up.

    Raises:
        KeyError: a row or a file lacks something.
        ValueError: a cell or a value is not what it should be.
    """
    config, tuning = parsed.config, parsed.record.documents.get(tables.TUNING)
    if config.warm_up is None:
        expected = "none: the config has no warm-up"
        return None, [] if tuning is None else [of_file(tables.TUNING, "the file", "one", expected)]
    if tuning is None:
        return None, []
    if not isinstance(tuning, Mapping):
        raise ValueError(f"{tables.TUNING} must hold an object")
    if tuning["rule_version"] != RULE_VERSION:
        raise ValueError(f"{tables.TUNING} follows rule {tuning['rule_version']}, which this version does not know")
    if tuning["because"] == ENDED:
        if not isinstance(tuning["ended_at"], str) or not tuning["ended_at"]:
            raise ValueError(f"ended_at in {tables.TUNING} must be a time")
        return _compared(tuning, ended_early(config, tuning["ended_at"]))
    warm = list(_warm_up_steps(parsed, config.warm_up.steps))
    if missing := config.chains * config.warm_up.steps - len(warm):
        expected = f"none: {missing} steps are not decided"
        return None, [of_file(tables.TUNING, "the choice", str(tuning["length"]), expected)]
    return _compared(tuning, tuned(config, warm))


def _compared(tuning: Mapping[str, Any], expected: Mapping[str, Any]) -> tuple[int, list[Difference]]:
    """Return the length that was recomputed, and what differs."""
    return int(expected["length"]), list(_compare(tuning, expected, ""))


def _warm_up_steps(parsed: Parsed, last: int) -> Iterator[WarmUpStep]:
    held = {row["state_index"]: (row["content"], row["code"]) for row in parsed.states}
    for row in parsed.steps:
        chain, step = key = step_key(row)
        if row["verdict"] and step <= last and chain < parsed.config.chains:
            cast = parsed.counted_votes.get(key, ())
            votes_for = sum(vote["for_proposal"] == "1" for vote in cast)
            with reading(tables.STEPS.file, row):
                objects = held[row["current_state"]], held[row["proposal_state"]]
            yield WarmUpStep(chain, step, len(cast), votes_for, *objects, row["verdict"] == Verdict.ACCEPT.value)


def _compare(recorded: Any, expected: Any, what: str) -> Iterator[Difference]:
    if isinstance(expected, Mapping) and isinstance(recorded, Mapping):
        for name in {**recorded, **expected}:
            yield from _compare(recorded.get(name), expected.get(name), f"{what}.{name}" if what else name)
    elif isinstance(expected, list) and isinstance(recorded, list) and len(recorded) == len(expected):
        for place, (one, other) in enumerate(zip(recorded, expected, strict=True)):
            yield from _compare(one, other, f"{what}.{place}")
    elif not _is_same(recorded, expected):
        yield of_file(tables.TUNING, what or "the file", _short(recorded), _short(expected))


def _is_same(recorded: Any, expected: Any) -> bool:
    if isinstance(expected, float) and type(recorded) in (int, float):
        near = -_LARGEST < recorded < _LARGEST
        return near and math.isclose(recorded, expected, rel_tol=_CLOSE_ENOUGH, abs_tol=_CLOSE_ENOUGH)
    return type(recorded) is type(expected) and bool(recorded == expected)


def _short(value: object) -> str:
    return "one" if isinstance(value, Mapping) else str(value).lower() if value is None else str(value)[:80]
