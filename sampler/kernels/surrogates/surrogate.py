"""A fitted score as a tilt t(x) of each object: τ·mean + τ²·variance / 2, within a band, rounded once.

The rounded number is used wherever the tilt is: in the inner walk and in log r0. Rounding differences in place of
tilts would break reversibility. It is computed with exactly rounded sums, so that every machine gets the same.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from operator import mul
from typing import Any

UNIT = 2.0**-20
BAND = 3.0
"""A tilt lies at most so far from the centre, in nats: unbounded, the tilted law may have no normalisation."""
TAUS = (0.5, 1.0)


@dataclass(frozen=True)
class Surrogate:
    """A frozen score.

    Args:
        is_on: False where the fit did not tell held-out votes better than a coin does; then every tilt is 0.
        means, scales: of the features; shape (k,).
        weights: of the scaled features; shape (k,).
        root: R with R Rᵀ their covariance, lower triangular; shape (k, k).
        centres: the middle of the band for each of `TAUS`.
        votes: of how many votes.
        log_loss: of a held-out vote, in nats; log 2 is a coin's.
    """

    is_on: bool
    means: tuple[float, ...]
    scales: tuple[float, ...]
    weights: tuple[float, ...]
    root: tuple[tuple[float, ...], ...]
    centres: tuple[float, ...]
    votes: int
    log_loss: float

    def tilt(self, features: Sequence[float], place: int) -> int:
        """Return t(x) for one of `TAUS`, in units of 2^-20.

        Args:
            features: φ(x), shape (k,).
            place: of τ in `TAUS`.
        """
        if not self.is_on:
            return 0
        centre = self.centres[place]
        raw = self.raw_tilt(features, TAUS[place])
        return round(min(max(raw, centre - BAND), centre + BAND) / UNIT)

    def raw_tilt(self, features: Sequence[float], tau: float) -> float:
        """Return τ·mean + τ²·variance / 2 of the score, without band and rounding."""
        scaled = [(each - mean) / scale for each, mean, scale in zip(features, self.means, self.scales, strict=True)]
        mean = math.fsum(map(mul, self.weights, scaled))
        # φᵀ R Rᵀ φ: one sum for each column of R, from its diagonal down.
        sums = [math.fsum(map(mul, column, scaled[first:])) for first, column in enumerate(self._columns)]
        return tau * mean + tau * tau * math.fsum(map(mul, sums, sums)) / 2

    @cached_property
    def _columns(self) -> list[tuple[float, ...]]:
        return [tuple(row[first] for row in self.root[first:]) for first in range(len(self.root))]

    def described(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {
            "is_on": self.is_on,
            "means": list(self.means),
            "scales": list(self.scales),
            "weights": list(self.weights),
            "root": [list(row) for row in self.root],
            "centres": list(self.centres),
            "votes": self.votes,
            "log_loss": self.log_loss,
        }

    @classmethod
    def read(cls, described: Mapping[str, Any]) -> Surrogate:
        """Return what `described` has written.

        Raises:
            KeyError: a field is missing.
            ValueError: a field is not what it should be.
        """
        try:
            read = cls(
                is_on=bool(described["is_on"]),
                means=tuple(map(float, described["means"])),
                scales=tuple(map(float, described["scales"])),
                weights=tuple(map(float, described["weights"])),
                root=tuple(tuple(map(float, row)) for row in described["root"]),
                centres=tuple(map(float, described["centres"])),
                votes=int(described["votes"]),
                log_loss=float(described["log_loss"]),
            )
        except (OverflowError, TypeError) as error:
            raise ValueError(f"a surrogate is not readable: {error}") from error
        k = len(read.weights)
        sizes = {len(read.means), len(read.scales), len(read.root), *map(len, read.root)}
        every = (*read.means, *read.scales, *read.weights, *read.centres, *chain.from_iterable(read.root))
        if sizes != {k} or len(read.centres) != len(TAUS) or not all(map(math.isfinite, every)):
            raise ValueError("a surrogate's numbers do not fit together")
        if min(read.scales, default=1.0) <= 0:
            raise ValueError("a surrogate's scales must be positive")
        return read
