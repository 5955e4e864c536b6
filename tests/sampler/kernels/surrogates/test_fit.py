"""The fit, its features, and which chains a score may know of."""

from __future__ import annotations

import math

import numpy as np
import pytest

from sampler.kernels.surrogates import WarmUpVotes, features_of, group_of, has_features, surrogates_for
from sampler.kernels.surrogates.fit import RIDGE, fitted, log_loss

RNG = np.random.default_rng(3)
X = RNG.normal(size=(200, 4))
TRUE = np.array([1.0, -0.5, 0.0, 2.0])
CAST = np.full(200, 3)
WON = RNG.binomial(3, 1 / (1 + np.exp(-X @ TRUE)))


def test_the_fit_is_the_mode_of_the_posterior():
    fit = fitted(X, WON, CAST)
    p = 1 / (1 + np.exp(-X @ fit.weights))
    assert np.abs(X.T @ (WON - CAST * p) - RIDGE * fit.weights).max() < 1e-8
    hessian = (X.T * (CAST * p * (1 - p))) @ X + RIDGE * np.eye(4)
    assert fit.root @ fit.root.T @ hessian == pytest.approx(np.eye(4), abs=1e-8)
    # The posterior's own standard errors say how near the truth it should be; five of them for four weights.
    assert np.all(np.abs(fit.weights - TRUE) < 5 * np.sqrt(np.diag(fit.root @ fit.root.T)) + RIDGE / 50)
    assert log_loss(fit, X, WON, CAST) / CAST.sum() < math.log(2)


def test_without_votes_it_is_the_prior():
    fit = fitted(np.zeros((0, 3)), [], [])
    assert np.all(fit.weights == 0)
    assert fit.root == pytest.approx(np.eye(3))


@pytest.mark.parametrize(
    ("objects", "contents"),
    [("texts", ["", "A cat.", "Two “cats”; 3 dogs!"]), ("molecules", ["CC", "c1ccccc1O", "[Na+]"])],
)
def test_features_are_finite_and_as_many_for_each_object(objects, contents):
    assert has_features(objects)
    found = [features_of(objects)(content) for content in contents]
    assert len({len(each) for each in found}) == 1
    assert all(math.isfinite(number) for each in found for number in each)
    assert len(set(found)) == 3


def test_pictures_have_none():
    assert not has_features("images")
    with pytest.raises(ValueError, match="images have no features"):
        features_of("images")


TEXTS = ["a cat", "two dogs ran", "it was night. It rained"]


def steps(chains: int, rng: np.random.Generator) -> list[WarmUpVotes]:
    return [
        WarmUpVotes(chain, 2, int(rng.integers(3)), *(TEXTS[int(each)] for each in rng.integers(3, size=2)))
        for chain in range(chains)
        for _ in range(6)
    ]


@pytest.mark.parametrize("chains", [4, 5, 7])
def test_a_groups_score_knows_nothing_of_its_own_chains(chains):
    features = features_of("texts")
    before = steps(chains, np.random.default_rng(1))
    scores = surrogates_for(before, chains, features)
    assert len(scores) == min(chains, 5)
    for chain in range(chains):
        # Other votes, other objects and other proposals of this chain.
        changed = [
            WarmUpVotes(chain, 9, 9, "Something else!", "and more of it") if each.chain == chain else each
            for each in before
        ]
        again = surrogates_for(changed, chains, features)
        unchanged = [group for group in range(len(scores)) if again[group] == scores[group]]
        assert unchanged == [group_of(chain, chains)]


def test_a_score_that_predicts_no_better_than_a_coin_is_not_used():
    rng = np.random.default_rng(2)
    features = features_of("texts")
    coins = [WarmUpVotes(chain, 1, int(rng.integers(2)), *TEXTS[:2]) for chain in range(4) for _ in range(40)]
    assert not any(each.is_on for each in surrogates_for(coins, 4, features))
    sure = [WarmUpVotes(chain, 1, 1, *TEXTS[:2]) for chain in range(4) for _ in range(40)]
    assert all(each.is_on for each in surrogates_for(sure, 4, features))


def test_there_is_none_for_fewer_than_four_chains():
    assert surrogates_for(steps(3, np.random.default_rng(1)), 3, features_of("texts")) == ()
