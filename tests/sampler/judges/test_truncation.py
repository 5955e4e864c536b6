"""Truncated sampling is seen from replies; untruncated sampling is not taken for it."""

import math

import numpy as np
import pytest

from sampler.judges import truncation_in

RNG_SEED = 20261122
HOT, REPLIES, LISTED = 2.0, 64, 20


def law(rng: np.random.Generator, spread: float) -> np.ndarray:
    """Return the probabilities of 500 tokens at temperature 1, the likeliest first."""
    logits = np.sort(rng.normal(0, spread, 500))[::-1]
    weights = np.exp(logits - logits[0])
    return weights / weights.sum()


def listed(p: np.ndarray) -> list[tuple[str, float]]:
    return [(str(token), math.log(p[token])) for token in range(LISTED)]


def replies(rng: np.random.Generator, p: np.ndarray, keep=lambda p: p > 0) -> list[str]:
    hot = np.where(keep(p), p, 0.0) ** (1 / HOT)
    return [str(token) for token in rng.choice(len(p), REPLIES, p=hot / hot.sum())]


def top_p(p: np.ndarray) -> np.ndarray:
    return np.cumsum(p) - p < 0.7


TRUNCATIONS = {
    "min-p": lambda p: p >= 0.05 * p[0],
    "top-p": top_p,
    "top-k": lambda p: np.arange(len(p)) < LISTED,
    "greedy": lambda p: np.arange(len(p)) == 0,
}


@pytest.mark.parametrize(("name", "spread"), [("min-p", 3.0), ("top-p", 3.0), ("top-k", 1.0), ("greedy", 2.0)])
def test_truncated_replies_are_seen(name: str, spread: float) -> None:
    rng = np.random.default_rng(RNG_SEED)
    p = law(rng, spread)
    assert truncation_in(listed(p), replies(rng, p, TRUNCATIONS[name]), HOT)


def test_untruncated_replies_are_not_accused() -> None:
    # Each of twenty sets is wrong with probability 1e-6 at most: over 600 models, 0.012 false alarms are expected.
    rng = np.random.default_rng(RNG_SEED)
    for spread in (0.5, 1.0, 2.0, 3.0, 5.0, 8.0):
        for _ in range(100):
            p = law(rng, spread)
            assert truncation_in(listed(p), replies(rng, p), HOT) is None


def test_a_model_that_is_sure_of_its_reply_is_not_accused() -> None:
    assert truncation_in([("A", math.log(0.9999)), ("B", math.log(1e-4))], ["A"] * REPLIES, HOT) is None
    assert truncation_in([], ["A"] * REPLIES, HOT) is None
    with pytest.raises(ValueError, match="temperature"):
        truncation_in([("A", 0.0)], ["A"], 0.5)
