"""The law of K votes of N, compared with rational arithmetic."""

import math
from fractions import Fraction

import numpy as np
import pytest

from sampler.acceptance import binomial_law, law_of_tallies


def exact(votes: int, budget: int, chance: Fraction) -> float:
    return float(math.comb(budget, votes) * chance**votes * (1 - chance) ** (budget - votes))


@pytest.mark.parametrize("budget", [1, 2, 15, 16, 17, 40, 501, 1_500])
@pytest.mark.parametrize(
    "chance", [Fraction(0), Fraction(1, 1024), Fraction(3, 8), Fraction(1, 2), Fraction(1)], ids=str
)
def test_the_law_is_right_to_its_last_digits(budget: int, chance: Fraction) -> None:
    # Near the mean the two terms of the deviance nearly cancel; far from it they do not.
    mean = round(budget * chance)
    votes = sorted({k for k in (0, 1, 2, mean - 3, mean, mean + 1, mean + 40, budget - 1, budget) if 0 <= k <= budget})
    found = binomial_law(np.array(votes), budget, float(chance))
    for k, share in zip(votes, found, strict=True):
        assert share == pytest.approx(exact(k, budget, chance), rel=2e-12, abs=1e-290)


@pytest.mark.parametrize("budgets", [(3, 2), (400, 300)])
def test_judges_vote_independently(budgets: tuple[int, int]) -> None:
    chances = np.array([[0.25, 0.5], [0.75, 0.125]])
    law = law_of_tallies(chances, budgets)
    tally = (budgets[0] // 3, budgets[1] // 2)
    for found, (one, other) in zip(law(tally), chances, strict=True):
        alone = exact(tally[0], budgets[0], Fraction(one)) * exact(tally[1], budgets[1], Fraction(other))
        assert found == pytest.approx(alone, rel=1e-11)
    with pytest.raises(ValueError, match=r"shorter|longer"):
        law((1,))
