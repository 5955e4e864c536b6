"""What it costs to end chains at suspended steps: the law of the samples that are left, worked out by enumeration.

At x the kernel proposes x' and the step is suspended for ever with a probability e(x, x'); else it is decided.
"""

import numpy as np
import pytest

from sampler import NVote, exact
from tests.laws.crowds import Voters
from tests.laws.law import CATALOG, Matrix
from tests.support.sampling import neighbours_law

STEPS = 60
Q = neighbours_law(CATALOG)
ACCEPTANCE = NVote((1,)).mean_acceptance(exact.log_base_ratio(CATALOG.log_p0, Q), Voters().preferences()[..., None])
N = len(Q)
SUSPENDED = {
    "by luck": np.full((N, N), 0.02),
    "by an object": np.broadcast_to(0.1 * (np.arange(N) == 4), (N, N)),
    "by the answer that it gets": 0.1 * ACCEPTANCE,
}


def laws_left(suspended: Matrix) -> tuple[Matrix, Matrix]:
    """Return the laws of x^(0) to x^(T) of the chains that are not ended by then, and the shares of these."""
    moved = Q * ACCEPTANCE * (1 - suspended)
    stayed = (Q * (1 - ACCEPTANCE) * (1 - suspended)).sum(axis=1)
    # Rows sum to less than one: the rest is ended.
    left = [np.exp(CATALOG.log_p0)]
    for _ in range(STEPS):
        left.append(left[-1] @ moved + left[-1] * stayed)
    shares = np.sum(left, axis=1)
    return np.array(left) / shares[:, None], shares


def errors(suspended: Matrix) -> tuple[Matrix, Matrix]:
    """Return the total variation from the chains that are never ended, after each step, and the shares not ended."""
    (laws, shares), (whole, _) = laws_left(suspended), laws_left(np.zeros((N, N)))
    return np.abs(laws - whole).sum(axis=1) / 2, shares


@pytest.mark.parametrize("suspended", SUSPENDED.values(), ids=list(SUSPENDED))
def test_the_error_is_at_most_the_share_of_chains_that_were_ended(suspended):
    found, shares = errors(suspended)
    assert shares[-1] < 0.8
    assert np.all(found <= 1 - shares + 1e-12)


def test_there_is_none_where_it_does_not_depend_on_the_objects():
    assert errors(SUSPENDED["by luck"])[0].max() < 1e-12
    # And there is one where it does.
    assert errors(SUSPENDED["by an object"])[0].max() > 0.01
