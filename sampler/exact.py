"""Finite chains, exactly: transition matrices, stationary distributions, mixing, and a sample's cost in votes.

And how far a distribution, or a chain's visits, is from a known one: total variation,
TV(p, q) = 1/2 sum_x |p(x) - q(x)|.

Shapes: n states, m judges. A transition matrix has one row per state, which sums to 1; distributions have shape (n,).

What a campaign will take, in closed form, before it starts: votes, hours, people and money.

A step costs sum_i N_i votes at most. Voting on a pair stops once its verdict is settled, so most steps cost fewer. How
many depends on what voters think, which nobody knows yet: the estimate takes them to be indifferent (p_i = 1/2) and
the base ratio to be 1, and averages over U and the votes exactly (`mean_votes`). Base ratios far from 1 settle a pair
sooner. Strong preferences do so where there are several questions; with one, a chain among good objects takes up to a
tenth more votes: its proposals win few, and one vote for them cannot settle a pair.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from sampler.acceptance import IntArray, acceptance_probability, average_over_votes, judges_last
from sampler.rules.base import JudgeRule
from sampler.rules.n_vote import NVote, checked_max_votes

Matrix = npt.NDArray[np.float64]


def target(log_p0: npt.ArrayLike, scores: npt.ArrayLike) -> Matrix:
    """Return pi(x) = p0(x) exp(sum_i s_i(x)), normalised (equations 4, 10), shape (n,); `scores` has shape (m, n)."""
    log_distribution = np.asarray(log_p0) + np.sum(scores, axis=0)
    distribution = np.exp(log_distribution - log_distribution.max())
    return np.asarray(distribution / distribution.sum())


def preferences(scores: npt.ArrayLike) -> Matrix:
    """Return sigma(s_i(x') - s_i(x)) at [x, x', i] (equation 5), shape (n, n, m); `scores` has shape (m, n)."""
    by_state = np.asarray(scores, dtype=np.float64).T
    return np.asarray(expit(by_state[None, :, :] - by_state[:, None, :]))


def log_base_ratio(log_p0: npt.ArrayLike, q: npt.ArrayLike) -> Matrix:
    """Return log p0(x') q(x|x') / (p0(x) q(x'|x)) at [x, x'], shape (n, n); minus infinity where either q is 0."""
    log_distribution = np.asarray(log_p0, dtype=np.float64)
    with np.errstate(divide="ignore"):
        log_q = np.log(np.asarray(q, dtype=np.float64))
    possible = np.isfinite(log_q)
    back = np.where(possible, log_q.T, -np.inf)
    return np.asarray(back - np.where(possible, log_q, 0.0) + log_distribution[None, :] - log_distribution[:, None])


def transitions_of(q: npt.ArrayLike, acceptance: npt.ArrayLike) -> Matrix:
    """Return P(x, x') = q(x'|x) a(x, x') off the diagonal, the rest of each row on it; all of shape (n, n)."""
    matrix = np.asarray(q, dtype=np.float64) * np.asarray(acceptance, dtype=np.float64)
    np.fill_diagonal(matrix, 0.0)
    np.fill_diagonal(matrix, 1 - matrix.sum(axis=1))
    return matrix


def transition_matrix(
    log_p0: npt.ArrayLike,
    q: npt.ArrayLike,
    scores: npt.ArrayLike,
    rule: JudgeRule,
    log_r0: npt.ArrayLike | None = None,
) -> Matrix:
    """Return the exact chain of proposals by q and Bradley-Terry judges, their votes averaged out, shape (n, n).

    Args:
        log_p0: shape (n,).
        q: q(x'|x) at [x, x'], shape (n, n).
        scores: shape (m, n).
        rule: a rule that asks judges, such as `NVote((4,))`.
        log_r0: what the kernel claims its base ratio is, shape (n, n); by default the true one.
    """
    ratio = log_base_ratio(log_p0, q) if log_r0 is None else log_r0
    return transitions_of(q, rule.mean_acceptance(ratio, preferences(scores)))


def stationary(transitions: Matrix) -> Matrix:
    """Return the distribution that an irreducible chain leaves unchanged, shape (n,)."""
    states = len(transitions)
    system = np.vstack([transitions.T - np.eye(states), np.ones(states)])
    distribution: Matrix = np.linalg.lstsq(system, np.eye(states + 1)[states], rcond=None)[0]
    return distribution


def spectral_gap(transitions: Matrix) -> float:
    """Return 1 - max |lambda| over the eigenvalues of P other than the one that is 1; 1 for independent draws."""
    sizes = np.sort(np.abs(np.linalg.eigvals(transitions)))
    return float(1 - sizes[-2])


def visit_covariance(transitions: Matrix, distribution: Matrix) -> Matrix:
    """Return the limit of T times the covariance of visit frequencies over T steps, shape (n, n).

    Kemeny and Snell, Finite Markov Chains (1960), chapter IV: with the fundamental matrix Z = (I - P + 1 pi)^-1,
    Sigma = D Z + (D Z)^T - D - pi^T pi, where D = diag(pi). Its rank is n - 1: frequencies sum to 1.
    """
    diagonal = np.diag(distribution)
    fundamental = np.linalg.inv(np.eye(len(distribution)) - transitions + distribution[None, :])
    flow = diagonal @ fundamental
    return np.asarray(flow + flow.T - diagonal - np.outer(distribution, distribution))


def autocorrelation_time(transitions: Matrix, distribution: Matrix, function: npt.ArrayLike) -> Matrix | np.float64:
    """Return tau = 1 + 2 sum_t corr(f(X_0), f(X_t)) in steps: T steps are worth T / tau independent draws of f.

    It is f^T Sigma f / Var_pi f with Sigma = `visit_covariance`; below 1 when the chain is antithetic.

    Args:
        transitions: shape (n, n).
        distribution: the stationary distribution, shape (n,).
        function: f at each state, shape (..., n).

    Returns:
        Shape (...).

    Raises:
        ValueError: f is constant.
    """
    values = np.asarray(function, dtype=np.float64)
    centred = values - np.sum(values * distribution, axis=-1, keepdims=True)
    variance = np.sum(centred**2 * distribution, axis=-1)
    if np.any(variance <= 1e-24 * np.max(np.abs(values), axis=-1) ** 2):
        raise ValueError("function must not be constant")
    asymptotic = np.sum((centred @ visit_covariance(transitions, distribution)) * centred, axis=-1)
    return np.asarray(asymptotic / variance)[()]


def mean_votes(log_r0: npt.ArrayLike, preference: npt.ArrayLike, max_votes: Sequence[int]) -> Matrix:
    """Return the mean number of votes until the verdict, averaged over U, if one judge is asked after another.

    After n votes, k of them for x', the verdict is open with probability A(k + N - n) - A(k) over U, where A is the
    acceptance probability at a full tally. The mean is the sum of that along the order, averaged over
    k_i ~ Binomial(n_i, p_i). Asking for min(a, c) votes at once costs the same.

    Args:
        log_r0: shape (...).
        preference: p_i, shape (..., m).
        max_votes: N_i, length m.

    Returns:
        Shape (...).

    Raises:
        ValueError: max_votes are not whole numbers of at least 1, or a preference does not lie in [0, 1].
    """
    limits = checked_max_votes(tuple(max_votes))
    chances = judges_last(preference, limits)
    acceptance = _full_acceptance(log_r0, limits)
    total: Matrix = np.zeros(chances.shape[:-1])
    cast = [0] * len(limits)
    for judge, limit in enumerate(limits):
        for _ in range(limit):
            lowest = acceptance[tuple(slice(n + 1) for n in cast)]
            highest = acceptance[
                tuple(slice(size - 1 - n, size) for size, n in zip(acceptance.shape, cast, strict=False))
            ]
            total += average_over_votes(_looked_up(highest - lowest), chances, tuple(cast))
            cast[judge] += 1
    return total


def _full_acceptance(log_r0: npt.ArrayLike, max_votes: tuple[int, ...]) -> Matrix:
    """Return A(K) at [K_1, ..., K_m], shape (N_1 + 1, ..., N_m + 1); the shape of log_r0 comes after these axes."""
    ratio = np.asarray(log_r0, dtype=np.float64)
    full = np.stack(np.meshgrid(*(np.arange(limit + 1) for limit in max_votes), indexing="ij"), axis=-1)
    full = full.reshape(*full.shape[:-1], *(1,) * ratio.ndim, len(max_votes))
    return np.asarray(acceptance_probability(ratio, full, list(max_votes)))


def _looked_up(table: Matrix) -> Callable[[IntArray], Matrix]:
    return lambda votes: np.asarray(table[tuple(votes)])


def votes_per_step(
    log_p0: npt.ArrayLike,
    q: npt.ArrayLike,
    scores: npt.ArrayLike,
    rule: NVote,
    *,
    early_stopping: bool = True,
    log_r0: npt.ArrayLike | None = None,
) -> float:
    """Return the mean number of votes a step costs in the long run; a proposal equal to the state costs none.

    With early stopping, judges are asked one after another (`mean_votes`); without, each comparison costs sum_i N_i.

    Args:
        log_p0, q, scores, rule, log_r0: as in `transition_matrix`.
    """
    proposals = np.asarray(q, dtype=np.float64)
    distribution = target(log_p0, scores)
    asked = distribution[:, None] * proposals * ~np.eye(len(distribution), dtype=np.bool_)
    if not early_stopping:
        return float(asked.sum() * sum(rule.max_votes))
    ratio = log_base_ratio(log_p0, proposals) if log_r0 is None else np.asarray(log_r0, dtype=np.float64)
    cost = mean_votes(ratio, preferences(scores), rule.max_votes)
    return float(np.sum(asked * cost))


def votes_per_effective_sample(
    log_p0: npt.ArrayLike,
    q: npt.ArrayLike,
    scores: npt.ArrayLike,
    rule: NVote,
    function: npt.ArrayLike,
    *,
    early_stopping: bool = True,
    log_r0: npt.ArrayLike | None = None,
) -> Matrix | np.float64:
    """Return the votes that one independent draw of f is worth: votes per step times autocorrelation time.

    Args:
        log_p0, q, scores, rule, log_r0: as in `transition_matrix`.
        function: f at each state, shape (..., n); the result has shape (...).
    """
    tau = autocorrelation_time(transition_matrix(log_p0, q, scores, rule, log_r0), target(log_p0, scores), function)
    return votes_per_step(log_p0, q, scores, rule, early_stopping=early_stopping, log_r0=log_r0) * tau


def total_variation(first: npt.ArrayLike, second: npt.ArrayLike) -> Matrix | np.float64:
    """Return TV between distributions on n states along the last axis, shape (...) for inputs of shape (..., n).

    Raises:
        ValueError: an input is no distribution, or the two have different numbers of states.
    """
    p, q = _checked_distributions("first", first), _checked_distributions("second", second)
    if p.shape[-1] != q.shape[-1]:
        raise ValueError(f"first has {p.shape[-1]} states, second has {q.shape[-1]}")
    distance: Matrix = 0.5 * np.abs(p - q).sum(axis=-1)
    return distance[()]


def _checked_distributions(name: str, values: npt.ArrayLike) -> Matrix:
    distribution = np.asarray(values, dtype=np.float64)
    # NaN fails both comparisons.
    if (
        distribution.ndim < 1
        or not np.all(distribution >= 0)
        or not np.all(np.abs(distribution.sum(axis=-1) - 1) <= 1e-9)
    ):
        raise ValueError(f"{name} must be probabilities that sum to 1")
    return distribution


SECONDS_A_VOTE: Final = 10.0
"""Of somebody in the middle, who compares two short objects: a round number, to be replaced by what a pilot takes."""
# Tallies times votes of a step: beyond these the mean would take a second.
_MAX_WORK: Final = 150_000


@dataclass(frozen=True)
class Estimate:
    """What the declared steps of all chains take.

    Args:
        votes_at_most: if every pair needs all of its votes.
        votes: if voters are indifferent; None where that would take too long to work out.
        burn_in_votes: those among `votes` that go into the burn-in.
        hours: of people, for `votes`, or for `votes_at_most` where these are not known.
        people: who are needed for that; None where it is not said how many votes each gives.
        money: what their places are paid; None where their number or the pay is not known.
    """

    votes_at_most: int
    votes: float | None
    burn_in_votes: float | None
    hours: float
    people: int | None
    money: float | None


def step_votes(max_votes: Sequence[int]) -> float | None:
    """Return the mean number of votes of a step if voters are indifferent; None where max_votes are too large.

    Args:
        max_votes: N_i of each judge.

    Raises:
        ValueError: max_votes are not whole numbers of at least 1.
    """
    limits = checked_max_votes(tuple(max_votes))
    work = sum(limits) * math.prod(limit + 1 for limit in limits)
    return None if work > _MAX_WORK else _step_votes(limits)


def estimate(
    chains: int,
    steps: int,
    max_votes: Sequence[int],
    *,
    burn_in: int = 0,
    votes_per_person: int | None = None,
    full_pay: float | None = None,
    seconds_a_vote: float = SECONDS_A_VOTE,
) -> Estimate:
    """Return what a campaign takes whose questions people answer.

    Args:
        chains, steps, burn_in: as in the setup; `chains` at most.
        max_votes: N_i of each judge. Each of its votes on a pair is another person's, so at least max N_i people are
            needed.
        votes_per_person: after so many votes somebody's part is complete; None for no limit.
        full_pay: for each part that is complete; None where it is not known.
        seconds_a_vote: of somebody in the middle.

    Raises:
        ValueError: a number is not what it can be.
    """
    for name, number in (("chains", chains), ("steps", steps)):
        if number < 1:
            raise ValueError(f"{name} must be 1 or more, not {number}")
    if not 0 < seconds_a_vote < math.inf:
        raise ValueError(f"seconds_a_vote must be more than 0, not {seconds_a_vote}")
    limits, a_step = checked_max_votes(tuple(max_votes)), step_votes(max_votes)
    most = chains * steps * sum(limits)
    votes = None if a_step is None else chains * steps * a_step
    wanted = most if votes is None else votes
    people = None if votes_per_person is None else max(max(limits), math.ceil(wanted / votes_per_person))
    return Estimate(
        votes_at_most=most,
        votes=votes,
        burn_in_votes=None if a_step is None else chains * min(burn_in, steps) * a_step,
        hours=wanted * seconds_a_vote / 3600,
        people=people,
        money=None if people is None or full_pay is None else people * full_pay,
    )


@lru_cache(maxsize=256)
def _step_votes(max_votes: tuple[int, ...]) -> float:
    return float(mean_votes(0.0, np.full(len(max_votes), 0.5), max_votes))
