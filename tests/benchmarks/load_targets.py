"""The targets of the issue, for the loads that it names; for any other load there are none."""

from __future__ import annotations

from dataclasses import dataclass

from tests.benchmarks.load_compare import THIS
from tests.benchmarks.load_run import Load

# Version 0.1.0, against which ratios have a limit.
RELEASED = "a832601"
PINNED_SOCKETS, PINNED_S, THINK_S = 500, 600, 4.0
LEAST_VOTES_PER_S, MOST_P95_MS, MOST_PROCESSOR_MS = 115, 60, 6.5
# The line through the samples of memory rises by chance, and caches fill: whichever is larger of a share and some MiB.
FLAT_SHARE, FLAT_MIB = 0.05, 2.0


@dataclass(frozen=True)
class Limits:
    """What this revision may be of the released one at most; statements are of a vote."""

    processor: float
    p95: float = float("inf")
    statements: float = float("inf")


# By sockets, chains and the judge's budget.
LIMITS = {
    (150, 150, 2): Limits(0.40, 0.4, 10),
    (150, 150, 1): Limits(0.50),
    (300, 30, 2): Limits(0.50),
}


def of_comparison(load: Load, found: dict) -> dict[str, bool]:
    """Return, for each target of a comparison, whether it is met."""
    limits = LIMITS.get((load.sockets, load.chains, load.budget))
    is_named = load.think_s == THINK_S and found["against"].startswith(RELEASED)
    if limits is None or not is_named or load.is_durable or load.is_pinned:
        return {}
    ratio = {name: each["median"] for name, each in found["ratios"].items()}
    met = {
        "offered load reached by both": found["offered_load_reached"],
        f"processor ms a vote <= {limits.processor} of the other's": ratio["processor ms a vote, all"]
        <= limits.processor,
    }
    if limits.p95 < float("inf"):
        met[f"p95 <= {limits.p95} of the other's"] = ratio["p95 ms"] <= limits.p95
    if limits.statements < float("inf"):
        most = max(runs[THIS]["statements_a_vote"] for runs in found["pairs"])
        met[f"statements a vote <= {limits.statements}"] = most <= limits.statements
    return met


def of_run(load: Load, found: dict) -> dict[str, bool]:
    """Return, for each target of a run on cores of its own, whether it is met."""
    is_named = load.sockets == PINNED_SOCKETS and load.seconds >= PINNED_S and load.think_s == THINK_S
    if not is_named or not load.is_pinned or load.is_durable:
        return {}
    return {
        f"votes/s >= {LEAST_VOTES_PER_S}": found["votes_per_s"] >= LEAST_VOTES_PER_S,
        f"p95 < {MOST_P95_MS} ms": found["acknowledged_ms"]["p95"] < MOST_P95_MS,
        f"processor ms a vote <= {MOST_PROCESSOR_MS}": found["processor_ms_a_vote"]["all"] <= MOST_PROCESSOR_MS,
        "memory flat": all(map(is_flat, found["memory_mib"].values())),
    }


def is_flat(memory: dict[str, float]) -> bool:
    """True when the line through the samples rises by no more than chance and caches explain."""
    return memory["risen"] <= max(FLAT_MIB, FLAT_SHARE * memory["start"])
