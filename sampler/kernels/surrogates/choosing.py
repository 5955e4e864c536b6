"""One surrogate for each group of chains, from the warm-up's votes and objects of the other groups only.

A score refitted with votes of the chain that it moves is not exact: the bias grows with what the fit takes from them.
So chains are put into groups, and the surrogate of a group has seen nothing of it: neither votes nor objects, nor in
the choice of whether it is used at all. Given the others' votes, each chain is then exact. The chains together are no
longer independent.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from sampler.kernels.surrogates.features import Features
from sampler.kernels.surrogates.fit import FloatArray, fitted, log_loss
from sampler.kernels.surrogates.surrogate import TAUS, Surrogate

FEWEST_CHAINS = 4
"""With fewer chains there is no surrogate."""
_MOST_GROUPS = 5
_FOLDS = 5
_ROUNDING = 1e-9


@dataclass(frozen=True)
class WarmUpVotes:
    """The votes of one step of a warm-up, and the contents of the two objects."""

    chain: int
    votes: int
    votes_for: int
    current: str
    proposal: str


def group_of(chain: int, chains: int) -> int:
    """Return which group a chain is in; each group has a surrogate."""
    return chain % min(chains, _MOST_GROUPS)


def surrogates_for(
    steps: Sequence[WarmUpVotes], chains: int, features: Callable[[str], Features], fewest: int = FEWEST_CHAINS
) -> tuple[Surrogate, ...]:
    """Return the surrogate of each group of chains; none where there are fewer chains than `fewest`.

    Args:
        steps: decided steps of all chains, in order.
        features: of an object's content.
    """
    if chains < fewest:
        return ()
    groups = range(min(chains, _MOST_GROUPS))
    others = ([step for step in steps if group_of(step.chain, chains) != group] for group in groups)
    return tuple(_surrogate(each, features) for each in others)


def _surrogate(steps: Sequence[WarmUpVotes], features: Callable[[str], Features]) -> Surrogate:
    asked = [step for step in steps if step.votes]
    seen = [features(content) for step in steps for content in (step.current, step.proposal)]
    objects = np.array(seen, dtype=np.float64).reshape(len(seen), -1)
    means, scales = objects.mean(axis=0), objects.std(axis=0)
    # The spread of one number, again and again, is rounding.
    scales = np.where(scales > _ROUNDING * np.abs(objects).max(axis=0, initial=0), scales, 1.0)
    differences = np.array(
        [np.subtract(features(step.proposal), features(step.current)) / scales for step in asked], dtype=np.float64
    ).reshape(len(asked), objects.shape[1])
    won, cast = np.array([step.votes_for for step in asked]), np.array([step.votes for step in asked])
    fit, loss = fitted(differences, won, cast), _held_out_loss(differences, won, cast)
    found = Surrogate(
        is_on=loss < math.log(2),
        means=tuple(map(float, means)),
        scales=tuple(map(float, scales)),
        weights=tuple(map(float, fit.weights)),
        root=tuple(tuple(map(float, row)) for row in fit.root),
        centres=(0.0,) * len(TAUS),
        votes=int(cast.sum()),
        log_loss=loss,
    )
    return replace(found, centres=tuple(float(np.median([found.raw_tilt(x, tau) for x in seen])) for tau in TAUS))


def _held_out_loss(differences: FloatArray, won: FloatArray, cast: FloatArray) -> float:
    """Return the mean log loss of a vote by fits that have not seen its step; log 2 without votes."""
    places = np.arange(len(cast))
    folds = [places % _FOLDS == fold for fold in range(min(_FOLDS, len(cast)))]
    if len(folds) < 2:
        return math.log(2)
    total = math.fsum(
        log_loss(fitted(differences[~fold], won[~fold], cast[~fold]), differences[fold], won[fold], cast[fold])
        for fold in folds
    )
    return total / float(cast.sum())
