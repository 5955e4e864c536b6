"""What chains say: how often they accept, the numbers that can be followed along those of an exported campaign, whether
they have forgotten where they began, and how many independent draws they are worth.

Rank-normalised split R-hat, bulk and tail effective sample size (Vehtari, Gelman, Simpson, Carpenter and Bürkner,
"Rank-normalization, folding, and localization", Bayesian Analysis 16, 2021) are computed by ArviZ.

Numbers are measured by the sampler from states.csv, where it holds the object: texts, molecules, and pictures made of
their codes. Other pictures are measured by the application, which has them: its properties.csv holds what it found.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sampler.objects import measure_of
from sampler.record.record import Record, RecordError
from sampler.record.tables import SAMPLES, SCORERS, STATES, Row

FloatArray = npt.NDArray[np.float64]

# Of shares near 0 or 1; and beyond so much, a number has an exponent.
_MAX_DECIMALS, _LONG = 4, 1e15
# What ArviZ needs to split a chain in two.
MIN_DRAWS = 4
# The 5 % and the 95 % quantile, as in the paper above.
_TAIL = (0.05, 0.95)
# Of chains that stand still the variance within is 0, or what rounding leaves of 0: R-hat is then 1e15 or so, another
# number on each machine. Chains of which one moves once come nowhere near.
_NOTHING_WITHIN = 1e12


@dataclass(frozen=True)
class Convergence:
    """R-hat (aim: below 1.01) and effective sample sizes (aim: above 400), with what they were computed from."""

    r_hat: float
    """NaN for a single chain."""
    bulk_ess: float
    tail_ess: float
    chains: int
    draws: int
    """Of each chain."""
    within_ess: float
    """As the bulk's, if nothing but chance has kept the means of half chains apart."""

    def r_hat_by_chance(self, tail: float) -> float:
        """Return the R-hat that chains of one distribution exceed with a probability of about `tail`.

        R-hat² - 1 is the variance of the means of the 2 m half chains, in units of that of the draws: chi-square over
        its 2 m - 1 degrees, times 2 m over the effective draws.
        """
        from scipy.special import chdtri

        freedom = 2 * self.chains - 1
        effective = max(min(self.bulk_ess, self.tail_ess), self.within_ess, 1.0)
        return math.sqrt(1 + chdtri(freedom, tail) / freedom * 2 * self.chains / effective)


def convergence(chains: Sequence[npt.ArrayLike]) -> Convergence:
    """Return R-hat and effective sample sizes of a number followed along ragged chains.

    Args:
        chains: for each chain the number after each step, shape (T_c,); the lengths may differ.

    Raises:
        ValueError: no chain has 4 draws, a value is not finite, or all values are the same.
    """
    draws = _moving(chains)
    # Here and not above: importing it takes a second, and few who import this module compute anything.
    from arviz_stats.base import array_stats as statistics

    # Chains that stand still at different values have no variance within: their R-hat is infinite, rightly.
    with np.errstate(divide="ignore", invalid="ignore"):
        r_hat = float(statistics.rhat(draws, method="rank")) if len(draws) > 1 else float("nan")
        r_hat = float("inf") if r_hat > _NOTHING_WITHIN else r_hat
        bulk = float(statistics.ess(draws, method="bulk"))
        tail = float(statistics.ess(draws, method="tail", prob=_TAIL))
        within = _within_ess(draws, statistics)
    count, length = draws.shape
    return Convergence(r_hat, bulk, tail, count, length, within)


def bulk_ess(chains: Sequence[npt.ArrayLike]) -> float:
    """Return the effective sample size of the bulk alone, which takes a fraction of the time of `convergence`.

    Raises:
        ValueError: as `convergence`.
    """
    from arviz_stats.base import array_stats as statistics

    return float(statistics.ess(_moving(chains), method="bulk"))


def _moving(chains: Sequence[npt.ArrayLike]) -> FloatArray:
    draws = equal_lengths(chains)
    if np.ptp(draws) == 0:
        raise ValueError(f"every draw is {draws.flat[0]:g}")
    return draws


def _within_ess(draws: FloatArray, statistics: Any) -> float:
    """Return `Convergence.within_ess`, of the bulk or of the distances from the median, as R-hat compares both.

    A mean that is taken away hides about five times its effective draw of each half chain's autocorrelation.
    """
    from scipy.special import ndtri
    from scipy.stats import rankdata

    half = draws.shape[1] // 2
    halves = np.concatenate([draws[:, :half], draws[:, -half:]])
    sizes = []
    for each in (halves, np.abs(halves - np.median(halves))):
        scores = ndtri((rankdata(each) - 0.375) / (each.size + 0.25)).reshape(each.shape)
        sizes.append(float(statistics.ess(scores - scores.mean(axis=1, keepdims=True), method="mean")))
    return min(sizes) - 5 * len(halves)


@dataclass(frozen=True)
class OfTarget:
    """The statistics of the chains that sample one distribution, or why there are none.

    Args:
        target: what tells that distribution from the others, such as a prompt (`ChainConfig.target_of`).
    """

    target: str
    found: Convergence | None
    problem: str = ""

    @property
    def r_hat(self) -> float | None:
        """None where there is none: of one chain, too."""
        return None if self.found is None or math.isnan(self.found.r_hat) else self.found.r_hat

    @property
    def r_hat_text(self) -> str:
        """The same in words; empty where there is none."""
        return written(self.r_hat)


@dataclass(frozen=True)
class Grouped:
    """The statistics of several targets: chains that sample different distributions are not compared."""

    targets: tuple[OfTarget, ...]
    """The one that looks worst first: without statistics, without an R-hat, then by R-hat."""

    @property
    def measured(self) -> list[Convergence]:
        """Those that there are."""
        return [each.found for each in self.targets if each.found]

    @property
    def r_hat(self) -> float | None:
        """The largest; None where no target has two chains."""
        return max((each.r_hat for each in self.targets if each.r_hat is not None), default=None)

    @property
    def r_hat_text(self) -> str:
        """The same in words; empty where there is none."""
        return written(self.r_hat)

    @property
    def bulk_ess(self) -> float:
        """The smallest of a target. Sizes of several distributions do not add up to more draws of one."""
        return min(each.bulk_ess for each in self.measured)

    @property
    def tail_ess(self) -> float:
        """The smallest of a target."""
        return min(each.tail_ess for each in self.measured)

    @property
    def basis(self) -> str:
        """What they are computed from, in words."""
        draws = sorted(each.draws for each in self.measured)
        lengths = f"{draws[0]:,}" if draws[0] == draws[-1] else f"{draws[0]:,} to {draws[-1]:,}"
        chains = sum(each.chains for each in self.measured)
        words = f"{many(chains, 'chain')} of {lengths} draws"
        return words if len(self.targets) == 1 else f"{words}, the worst of {len(self.targets):,} prompts"


def written(r_hat: float | None) -> str:
    """Return an R-hat in words, as every page and report writes it; empty where there is none."""
    if r_hat is None:
        return ""
    return f"{r_hat:.3f}" if math.isfinite(r_hat) else "infinite"


def percent(share: float, decimals: int = 1) -> str:
    """Return a share as every page and report writes it: 12.5 %. Only none reads as 0 %, and only all as 100 %."""
    rounded = round(100 * share, decimals)
    if 0 < share < 1 and rounded in (0, 100):
        if decimals < _MAX_DECIMALS:
            return percent(share, decimals + 1)
        return f"<{0.1**decimals:.{decimals}f} %" if share < 0.5 else f">{100 - 0.1**decimals:.{decimals}f} %"
    return f"{rounded:.{decimals}f} %"


def figure(number: float, digits: int = 4) -> str:
    """Return a number in so many digits, or in all those before its point: 0.001235 and 12,346."""
    return f"{number:z,.0f}" if 10 ** (digits - 1) <= abs(number) < _LONG else f"{number:z.{digits}g}"


def many(count: int, noun: str) -> str:
    """Return how many of something there are, in words."""
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def by_target(chains: Iterable[tuple[str, npt.ArrayLike]]) -> Grouped:
    """Return the statistics of each target's chains.

    Args:
        chains: of each its target and the number after each step, shape (T_c,); the lengths may differ.
    """
    groups: dict[str, list[npt.ArrayLike]] = {}
    for target, numbers in chains:
        groups.setdefault(target, []).append(numbers)
    found = [_of_target(target, group) for target, group in groups.items()]
    return Grouped(
        tuple(sorted(found, key=lambda each: (each.found is not None, each.r_hat is not None, -(each.r_hat or 0))))
    )


def _of_target(target: str, chains: list[npt.ArrayLike]) -> OfTarget:
    try:
        return OfTarget(target, convergence(chains))
    except ValueError as reason:
        return OfTarget(target, None, str(reason))


def equal_lengths(chains: Sequence[npt.ArrayLike]) -> FloatArray:
    """Cut ragged chains to one length, shape (chains, draws), keeping as many draws as possible.

    The k longest chains are kept, each with as many of its last draws as the shortest of them has; k is the one that
    keeps most draws, the larger where two keep as many. Two chains stay wherever two have 4 draws: R-hat compares.

    Raises:
        ValueError: no chain has 4 draws, or a value is not finite.
    """
    values = [np.asarray(chain, dtype=np.float64) for chain in chains]
    if any(each.ndim != 1 for each in values):
        raise ValueError("chains must each be one sequence of numbers")
    if not all(np.all(np.isfinite(each)) for each in values):
        raise ValueError("chains must hold finite numbers")
    lengths = sorted((len(each) for each in values if len(each) >= MIN_DRAWS), reverse=True)
    if not lengths:
        raise ValueError(f"no chain has {MIN_DRAWS} draws")
    fewest = min(2, len(lengths))
    kept = max(range(fewest, len(lengths) + 1), key=lambda k: (k * lengths[k - 1], k))
    draws = lengths[kept - 1]
    # Of chains that are equally long, the first ones; a stable sort keeps their order.
    longest = sorted(sorted(range(len(values)), key=lambda c: -len(values[c]))[:kept])
    return np.stack([values[c][-draws:] for c in longest])


NO_PIXELS = "the export has no properties.csv, with what was measured of its objects"
# Columns of states.csv and samples.csv that number and name, and measure nothing.
_NO_MEASURES = {column.name for table in (STATES, SAMPLES) for column in table.columns} - {"weight"}
# A property that happens to be a run of whole numbers, each once, has fewer objects than this.
_MIN_IDS = 10
_SHOWN_DRAWS = 3

Draws = dict[str, list[float]]
"""A number after each step, by chain."""


@dataclass(frozen=True)
class Acceptance:
    """How many of the proposals that differed from the current state were accepted, over decided steps of all phases.

    A proposal equal to the current state is accepted whatever anybody answers, so it is none of them.
    """

    accepted: int
    differed: int

    @property
    def share(self) -> float | None:
        """None where no proposal differed."""
        return self.accepted / self.differed if self.differed else None

    @property
    def percent(self) -> str:
        """The share in words; a dash where no proposal differed."""
        return "–" if self.share is None else percent(self.share)

    def __str__(self) -> str:
        return f"{self.percent} ({self.accepted:,} of {self.differed:,})"


@dataclass(frozen=True)
class Column:
    """One property along the chains, or the reason why it cannot be followed."""

    name: str
    draws: Draws
    problem: str = ""


@dataclass(frozen=True)
class Followed:
    """Everything numeric that a record holds or the sampler measures, by name, and what is missing."""

    columns: tuple[Column, ...]
    missing: str = ""


def followed(record: Record) -> Followed:
    """Return all properties along the chains.

    Measures come first, then scores, then the columns of properties.csv, states.csv and samples.csv. Of two with one
    name properties.csv has the last word; the weight in p0 is called p0_weight where the objects have a weight
    themselves.

    Raises:
        RecordError: a table lacks a state.
        KeyError: a table lacks a column.
        ValueError: an object cannot be measured.
    """
    samples = [row for row in record["samples"] if row["step"] != "0"]
    tables, missing = _tables(record, samples)
    found = (_column(each, cells, samples) for each, cells in tables.items() if cells.is_numeric)
    return Followed(tuple(found), missing)


@dataclass(frozen=True)
class _Cells:
    """A column's cells, one for each row of samples.csv after the start."""

    drawn: Sequence[str]
    whole: Sequence[str] = ()
    """The column as it stands in its table; empty for what was measured."""

    @property
    def is_numeric(self) -> bool:
        """Whether there are numbers to follow, be it only in some of the cells."""
        return any(_number(cell) is not None for cell in self.drawn)


def _tables(record: Record, samples: list[Row]) -> tuple[dict[str, _Cells], str]:
    if not samples:
        is_decided = any(row["verdict"] for row in record["steps"])
        why = "no sample is to be analysed yet" if is_decided else "no step is decided yet"
        return {}, f"{why}, so there is nothing to follow"
    drawn = [row["state_index"] for row in samples]
    visited = list(dict.fromkeys(drawn))
    measure = measure_of(record.config["space"])
    rows = {row["state_index"]: row for row in record["states"]}
    tables: dict[str, _Cells] = {}
    if measure is not None:
        measured = {state: measure(rows[state]["content"], rows[state].get("code", "")) for state in visited}
        tables |= {name: _Cells([repr(measured[state][name]) for state in drawn]) for name in measured[visited[0]]}
    # What is measured anyway is the same.
    for name, cells in _scores(record):
        tables.setdefault(name, _Cells([cells.get(state, "") for state in drawn]))
    _require_the_same(record["properties"], record["states"])
    tables |= _of_states(record["properties"], drawn, "properties.csv")
    for name, of_states in _of_states(record["states"], drawn, "states.csv").items():
        tables["p0_weight" if name == "weight" and name in tables else name] = of_states
    for name in _own(record["samples"]):
        column = [row[name] for row in samples]
        tables[name] = _Cells(column, column)
    return tables, "" if measure or record["properties"] or record["scores"] else NO_PIXELS


def _scores(record: Record) -> Iterable[tuple[str, dict[str, str]]]:
    """Return the scores of states, by scorer."""
    found: dict[str, dict[str, str]] = {scorer["name"]: {} for scorer in record.documents.get(SCORERS, ())}
    for row in record["scores"]:
        found.setdefault(row["scorer"], {})[row["state_index"]] = row["score"]
    return found.items()


def _require_the_same(properties: list[Row], states: Sequence[Row]) -> None:
    content = {row["state_index"]: row["content"] for row in states}
    for row in properties:
        if "content" in row and row["content"] != content.get(row["state_index"], row["content"]):
            raise RecordError(
                f"properties.csv is of another campaign: of state {row['state_index']} it says {row['content'][:60]!r}"
            )


def _of_states(table: list[Row], drawn: Sequence[str], file: str) -> dict[str, _Cells]:
    rows = {row["state_index"]: row for row in table}
    if table and (lost := [state for state in drawn if state not in rows]):
        raise RecordError(f"{file} has no row for state {lost[0]}; download it again, after the export")
    return {name: _Cells([rows[state][name] for state in drawn], [row[name] for row in table]) for name in _own(table)}


def _own(table: Sequence[Row]) -> list[str]:
    return [name for name in (table[0] if table else ()) if name not in _NO_MEASURES]


def _column(name: str, found: _Cells, samples: list[Row]) -> Column:
    if problem := _ids(name, found, samples):
        return Column(name, {}, problem)
    numbers = [_number(cell) for cell in found.drawn]
    if wrong := [index for index, number in enumerate(numbers) if number is None]:
        first = ", ".join(
            f"{found.drawn[index][:60]!r} (chain {samples[index]['chain_index']}, step {samples[index]['step']})"
            for index in wrong[:_SHOWN_DRAWS]
        )
        what = f"{len(wrong):,} of {len(numbers):,} draws have no number there, the first ones {first}"
        return Column(name, {}, what)
    if len(set(numbers)) == 1:
        return Column(name, {}, f"it has one value; every draw is {numbers[0]:g}")
    draws: Draws = {}
    for row, number in zip(samples, numbers, strict=True):
        draws.setdefault(row["chain_index"], []).append(number or 0.0)
    return Column(name, draws)


def _ids(name: str, found: _Cells, samples: list[Row]) -> str:
    """Return why a column is one of ids: by its name, or as every row has its own whole number and all are a run."""
    states = [row["state_index"] for row in samples]
    is_copied = len(set(states)) > 1 and list(found.drawn) == states
    if found.whole and (is_copied or name.lower() == "id" or name.lower().endswith("_id")):
        return "it holds ids, which are arbitrary"
    known = sorted({number for number in map(_number, found.whole) if number is not None})
    if len(known) < max(_MIN_IDS, len(found.whole)) or known[-1] - known[0] != len(known) - 1:
        return ""
    return f"it numbers the rows, {known[0]:g} to {known[-1]:g}, so it holds ids" if known[0].is_integer() else ""


def _number(cell: str) -> float | None:
    try:
        number = float(cell.removeprefix("'"))
    except ValueError:
        return None
    return number if math.isfinite(number) else None
