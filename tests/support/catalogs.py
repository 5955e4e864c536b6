"""Small catalogs with every difficulty at once, and the proposal laws that the kernels claim to have."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sampler import Catalog

Matrix = npt.NDArray[np.float64]

PATH = Catalog(np.array([1.0, 4.0, 2.0, 0.5]), ((1,), (0, 2), (1, 3), (2,)))
STAR = Catalog(np.array([3.0, 1.0, 1.0, 0.25, 2.0]), ((1, 2, 3, 4), (0,), (0,), (0,), (0,)))
LOPSIDED = Catalog(np.array([1.0, 2.0, 5.0, 0.5, 1.5]), ((1, 2, 3), (0, 2), (0, 1, 4), (0,), (2,)))
PAIR = Catalog(np.array([1.0, 3.0]), ((1,), (0,)))

SMALL_CATALOGS = {"pair": PAIR, "path": PATH, "star": STAR, "lopsided": LOPSIDED}


def independent_law(catalog: Catalog) -> Matrix:
    """q(x'|x) = p0(x') at [x, x']."""
    return np.tile(np.exp(catalog.log_p0), (len(catalog), 1))


def neighbours_law(catalog: Catalog) -> Matrix:
    """q(x'|x) = 1 / deg(x) at [x, x'] for each neighbour x' of x."""
    law = np.zeros((len(catalog), len(catalog)))
    for state, row in enumerate(catalog.neighbours):
        law[state, list(row)] = 1 / len(row)
    return law


def two_scores(catalog: Catalog) -> Matrix:
    """Scores of two judges that disagree, shape (2, n)."""
    places = np.arange(len(catalog))
    return np.stack([np.sin(1.0 + 2.0 * places), 0.6 * np.cos(places) - 0.2 * places])
