"""MARS: min(1, r0 (s(x') / s(x))^30), s = (min(QED, 0.7) + min((10 - SA) / 9, 0.7)) / 2.

Exact for p0(x) s(x)^30, a target made of two computed properties and no judge; with r0 = 1, as the released
MARS and the paper's molecular experiment take it, p0 and q are left out of the balance. (Appendix, de novo
molecular design.)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from sampler.rules.shape import FloatArray
from sampler.rules.tilt import accept_by_weight


@dataclass(frozen=True)
class Mars:
    """The rule of MARS on `Mars.score`.

    Args:
        beta: the default of MARS is 30.
    """

    beta: float = 30.0
    name: ClassVar[str] = "mars"

    @staticmethod
    def score(qed: npt.ArrayLike, sa: npt.ArrayLike) -> FloatArray:
        """Return s, at most 0.7.

        Args:
            qed: drug-likeness from 0 to 1, any shape.
            sa: synthetic accessibility from 1 (easy) to 10 (hard), the same shape.

        Raises:
            ValueError: a property is out of its range.
        """
        likeness, hardness = np.asarray(qed, dtype=np.float64), np.asarray(sa, dtype=np.float64)
        if not np.all((likeness >= 0) & (likeness <= 1)) or not np.all((hardness >= 1) & (hardness <= 10)):
            raise ValueError("qed must lie in [0, 1] and sa in [1, 10]")
        return np.asarray((np.minimum(likeness, 0.7) + np.minimum((10 - hardness) / 9, 0.7)) / 2)

    def acceptance(self, log_r0: npt.ArrayLike, current: npt.ArrayLike, proposal: npt.ArrayLike) -> FloatArray:
        """Return the acceptance probability for scores s(x) and s(x'), all of one shape.

        Raises:
            ValueError: a score is negative.
        """
        before, after = np.asarray(current, dtype=np.float64), np.asarray(proposal, dtype=np.float64)
        if not (np.all(before >= 0) and np.all(after >= 0)):
            raise ValueError("scores must not be negative")
        with np.errstate(divide="ignore"):
            return accept_by_weight(log_r0, self.beta * np.log(before), self.beta * np.log(after))
