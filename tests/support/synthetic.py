"""The paper's synthetic space (appendix, synthetic validation), written down once for tests and benchmarks."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

STATES = 241
GAMMA = 0.88

_PLACES = np.arange(STATES)


def _bump(centre: float, width: float) -> npt.NDArray[np.float64]:
    return np.exp(-(((_PLACES - centre) / width) ** 2) / 2)


LOG_P0 = np.log(_bump(68, 56) / _bump(68, 56).sum())
SCORE = 5 / 240 * _PLACES + 0.9 * _bump(60, 13) + 0.7 * _bump(130, 21) + 1.0 * _bump(200, 13)

# Half the local moves stay, a quarter go to each side; at an end, what would leave stays.
_LOCAL = (np.eye(STATES) / 2) + (np.eye(STATES, k=1) + np.eye(STATES, k=-1)) / 4
_LOCAL[0, 0] = _LOCAL[-1, -1] = 3 / 4
PROPOSALS = GAMMA / STATES + (1 - GAMMA) * _LOCAL
