"""Reading a latent vector one dial after another: the numbers of N(0, I) as amounts that a picture can use.

Every reading is a continuous function of the numbers it takes, so a small move of the latent is a small move of
every amount.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import special

Vector = npt.NDArray[np.float64]


class Dials:
    """Hands out the numbers of a latent in order. What each one means is the order of the calls.

    Raises:
        IndexError: more numbers are read than the latent has.
    """

    def __init__(self, vector: Vector) -> None:
        self._vector = vector
        self.read = 0

    def normals(self, count: int) -> Vector:
        """Return the next numbers as they are, N(0, 1) each, shape (count,)."""
        if self.read + count > len(self._vector):
            raise IndexError(f"the latent has {len(self._vector)} numbers, and {self.read + count} are read")
        self.read += count
        return self._vector[self.read - count : self.read]

    def between(self, low: float, high: float) -> float:
        """Return an amount that is uniform between two under N(0, 1)."""
        return low + (high - low) * float(special.ndtr(self.normals(1)[0]))

    def angles(self, count: int) -> Vector:
        """Return angles that are uniform on the circle, in radians, shape (count,)."""
        angles: Vector = 2 * np.pi * special.ndtr(self.normals(count))
        return angles

    def switch(self, share: float, steepness: float = 24.0) -> float:
        """Return 1 with probability about `share` and 0 otherwise; seldom, and so that nothing jumps, in between."""
        above = self.normals(1)[0] - special.ndtri(1 - share)
        return float(np.clip(1.02 * special.expit(steepness * above) - 0.01, 0, 1))

    def shares(self, count: int, steepness: float) -> Vector:
        """Return shares that sum to 1, shape (count,): one near 1 and many exactly 0 when steepness is 3 or more.

        Shares below a twentieth are cut to 0 without a jump, so that what they weigh need not be computed.
        """
        logits = steepness * self.normals(count)
        shares = np.exp(logits - logits.max())
        kept = np.maximum(shares / shares.sum() - 0.05, 0)
        result: Vector = kept / kept.sum()
        return result
