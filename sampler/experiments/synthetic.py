"""The paper's synthetic validation (section "Synthetic validation" and the appendix of that name), as published.

On the states 0..240 the target pi(k) ∝ p0(k) exp(s(k)) is known. Oracle MH sees s; Pref-MH and the invalid plug-in rule
see N votes of a Bradley-Terry judge. Every vote is drawn: the accept step knows p0 and the tally, never s.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from sampler import exact
from sampler.exact import total_variation
from sampler.experiments.outputs import COLOURS, write_figure
from sampler.rules.n_vote import InvalidPlugIn, NVote, Oracle

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

STATES = 241
START = 0
STEPS = 150_000
EVERY = 500
GLOBAL = 0.88
"""gamma, the probability of a proposal from the whole space."""
_LOCAL = (-1, 0, 0, 1)
"""L(k'|k), a quarter each; a step off either end stays where it is."""


@dataclass(frozen=True)
class Method:
    """One curve of the figure: a rule, and how many votes it draws at each step (none for the oracle)."""

    name: str
    rule: Oracle | NVote | InvalidPlugIn
    votes: int = 0

    @property
    def label(self) -> str:
        """The legend's entry."""
        return f"{self.name}, N = {self.votes}" if self.votes else self.name


ORACLE, PREF_MH, PLUG_IN = "Oracle MH", "Pref-MH", "Plug-in"
METHODS = (
    Method(ORACLE, Oracle()),
    *(Method(PREF_MH, NVote((votes,)), votes) for votes in (1, 2, 4)),
    *(Method(PLUG_IN, InvalidPlugIn((votes,)), votes) for votes in (1, 2, 4)),
)

_COLOURS = {ORACLE: COLOURS[6], PREF_MH: COLOURS[0], PLUG_IN: COLOURS[1]}
_LINES = {0: "-", 1: ":", 2: "--", 4: "-"}
"""By the number of votes, so that line styles say it a second time."""
_SIZE = (5.2, 3.4)


@dataclass(frozen=True)
class Curve:
    """What one chain did.

    Args:
        times: t = 500, 1000, ..., shape (records,).
        tv: TV between the visits of steps 1..t and the target, shape (records,).
        frequencies: visits of all steps, as shares, shape (241,).
    """

    method: Method
    times: IntArray
    tv: FloatArray
    frequencies: FloatArray


def log_p0() -> FloatArray:
    """Return log p0(k) = -1/2 ((k - 68) / 56)^2 - log Z, shape (241,)."""
    unnormalised = _log_bump(68, 56)
    return np.asarray(unnormalised - np.log(np.exp(unnormalised).sum()))


def scores() -> FloatArray:
    """Return s(k) = 5k/240 + 0.9 g(60, 13) + 0.7 g(130, 21) + 1.0 g(200, 13), nats of log-odds, shape (241,)."""
    bumps = 0.9 * np.exp(_log_bump(60, 13)) + 0.7 * np.exp(_log_bump(130, 21)) + 1.0 * np.exp(_log_bump(200, 13))
    result: FloatArray = 5 / 240 * np.arange(STATES) + bumps
    return result


def target() -> FloatArray:
    """Return pi(k), shape (241,)."""
    return exact.target(log_p0(), scores()[None])


def proposal_distribution() -> FloatArray:
    """Return q(k'|k) at [k, k'], symmetric, shape (241, 241)."""
    distribution = np.full((STATES, STATES), GLOBAL / STATES)
    states = np.arange(STATES)
    for move in _LOCAL:
        distribution[states, np.clip(states + move, 0, STATES - 1)] += (1 - GLOBAL) / len(_LOCAL)
    return distribution


def acceptance(method: Method) -> FloatArray:
    """Return the probability of accepting k' from k after K votes for it, at [K, k, k'], shape (N + 1, 241, 241)."""
    log_r0 = exact.log_base_ratio(log_p0(), proposal_distribution())
    if isinstance(method.rule, Oracle):
        return method.rule.acceptance(log_r0, exact.preferences(scores()[None]))[None]
    return np.stack([method.rule.acceptance(log_r0, [votes]) for votes in range(method.votes + 1)])


def walk(rng: np.random.Generator, method: Method, steps: int = STEPS) -> Iterator[IntArray]:
    """Yield the states after each step of one chain from k = 0, in blocks of 500, the last one shorter if need be."""
    accept = acceptance(method).tolist()
    preference = exact.preferences(scores()[None])[..., 0].tolist()
    state = START
    for begun in range(0, steps, EVERY):
        length = min(EVERY, steps - begun)
        is_global = (rng.random(length) < GLOBAL).tolist()
        anywhere = rng.integers(STATES, size=length).tolist()
        nearby = rng.choice(_LOCAL, size=length).tolist()
        # A vote is for k' when its uniform lies below the preference, so K is a place among the sorted ones.
        votes = np.sort(rng.random((length, method.votes)), axis=1).tolist()
        uniforms = rng.random(length).tolist()
        visited = []
        for t in range(length):
            proposal = anywhere[t] if is_global[t] else min(max(state + nearby[t], 0), STATES - 1)
            votes_for = bisect_left(votes[t], preference[state][proposal])
            if uniforms[t] < accept[votes_for][state][proposal]:
                state = proposal
            visited.append(state)
        yield np.array(visited, dtype=np.int64)


def run(seed: int, steps: int = STEPS, progress: Callable[[int], object] = lambda steps: None) -> list[Curve]:
    """Run all seven chains, each on its own stream of the seed.

    Args:
        seed: not negative.
        steps: a multiple of 500.
        progress: called with the number of steps just done.

    Raises:
        ValueError: `steps` is no positive multiple of 500, or the seed is negative.
    """
    if steps < EVERY or steps % EVERY:
        raise ValueError(f"steps must be a multiple of {EVERY}, not {steps}")
    curves = []
    for number, method in enumerate(METHODS):
        visits = []
        for block in walk(np.random.default_rng((seed, number)), method, steps):
            visits.append(np.bincount(block, minlength=STATES))
            progress(len(block))
        times = np.arange(EVERY, steps + 1, EVERY)
        frequencies = np.cumsum(visits, axis=0) / times[:, None]
        curves.append(Curve(method, times, np.asarray(total_variation(frequencies, target())), frequencies[-1]))
    return curves


def write_results(curves: Sequence[Curve], folder: Path) -> list[Path]:
    """Write both figures, and the numbers behind them: tv.csv and distributions.csv (one column a distribution).

    Raises:
        MissingExtra: matplotlib is not installed.
    """
    distributions = {"p0": np.exp(log_p0()), "target": target()} | {
        each.method.label: each.frequencies for each in curves
    }
    tv_rows = (
        (curve.method.name, curve.method.votes or "", int(time), float(tv))
        for curve in curves
        for time, tv in zip(curve.times, curve.tv, strict=True)
    )
    distribution_rows = (
        (k, *(float(distribution[k]) for distribution in distributions.values())) for k in range(STATES)
    )
    return [
        *write_figure(folder, "tv", [("method", "votes", "step", "tv"), *tv_rows], partial(_draw_tv, curves)),
        *write_figure(
            folder,
            "distributions",
            [("state", *distributions), *distribution_rows],
            partial(_draw_distributions, curves),
        ),
    ]


def _draw_tv(curves: Sequence[Curve], figure: Any) -> None:
    figure.set_size_inches(_SIZE)
    axes = figure.subplots()
    for curve in curves:
        style = {"color": _COLOURS[curve.method.name], "linestyle": _LINES[curve.method.votes], "linewidth": 1.4}
        axes.plot(curve.times, curve.tv, label=curve.method.label, **style)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(curves[0].times[0], curves[0].times[-1])
    for axis, ticks in ((axes.xaxis, (1_000, 10_000, 100_000)), (axes.yaxis, (0.02, 0.05, 0.1, 0.2, 0.5))):
        axis.set_ticks(ticks, [f"{tick:,}" for tick in ticks])
        axis.set_tick_params(which="minor", labelleft=False, labelbottom=False)
    axes.set_xlabel("MH steps $t$")
    axes.set_ylabel(r"TV$(\hat\pi_t, \pi)$")
    axes.grid(which="major", color="0.9", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.legend(loc="lower left", ncols=1)


def _draw_distributions(curves: Sequence[Curve], figure: Any) -> None:
    figure.set_size_inches(_SIZE)
    axes, states = figure.subplots(), np.arange(STATES)
    axes.fill_between(states, target(), color="0.85", label=r"target $\pi$", linewidth=0)
    axes.plot(states, np.exp(log_p0()), color="0.55", linestyle=":", linewidth=1.2, label="base $p_0$")
    for curve in curves:
        if curve.method.votes in (0, 2):
            style = {"color": _COLOURS[curve.method.name], "linewidth": 1.0}
            axes.plot(states, curve.frequencies, label=curve.method.label, **style)
    axes.set_xlim(0, STATES - 1)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("state $k$")
    axes.set_ylabel("probability")
    axes.legend(loc="upper left")


def _log_bump(centre: float, width: float) -> FloatArray:
    return np.asarray(-0.5 * ((np.arange(STATES) - centre) / width) ** 2, dtype=np.float64)
