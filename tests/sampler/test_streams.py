"""Random streams are functions of (seed, chain, step, purpose)."""

import itertools

import numpy as np
import pytest

from sampler import Purpose, stream

# 10,000 uniforms a stream: the correlation of two independent ones has standard deviation 1/sqrt(n) = 0.01.
DRAWS = 10_000

# The first uniform of (2026, 0, 1) for each purpose, as drawn by NumPy 2.4.
GOLDEN = [
    0.6113601648475301,
    0.5934510377737561,
    0.4810139384147536,
    0.7520820870066744,
    0.018371858571129995,
    0.3049986316399428,
    0.8323655843959311,
    0.32574852020222245,
]


def test_every_part_of_the_key_changes_the_numbers():
    keys = itertools.product((0, 1, 2**32, 2**53 - 1), (0, 1, 2), (0, 1, 2), Purpose)
    firsts = [stream(*key).random() for key in keys]
    assert len(set(firsts)) == len(firsts)


def test_streams_are_uncorrelated_and_equal_ones_are_not():
    base = (2026, 4, 5, Purpose.PROPOSAL)
    others = [
        (2027, *base[1:]),
        (2026, 5, *base[2:]),
        (2026, 4, 6, base[3]),
        (*base[:3], Purpose.UNIFORM),
        (2026, 5, 4, base[3]),
    ]
    numbers = stream(*base).random(DRAWS)
    for other in others:
        correlation = np.corrcoef(numbers, stream(*other).random(DRAWS))[0, 1]
        assert abs(correlation) < 0.05  # five standard deviations
    assert np.corrcoef(numbers, stream(*base).random(DRAWS))[0, 1] == pytest.approx(1.0)


@pytest.mark.parametrize("purpose", Purpose)
def test_a_uniform_is_the_top_53_bits_of_the_raw_output(purpose):
    raw = np.random.PCG64(np.random.SeedSequence(99, spawn_key=(2, 8, int(purpose)))).random_raw(100)
    expected = (raw >> np.uint64(11)).astype(np.float64) / 2.0**53
    assert stream(99, 2, 8, purpose).random(100).tolist() == expected.tolist()


def test_old_records_can_be_redrawn():
    # Written down once; a change here means that no record made before can be checked any more.
    assert [stream(2026, 0, 1, purpose).random() for purpose in Purpose] == GOLDEN
    assert [purpose.value for purpose in Purpose] == [0, 1, 2, 3, 4, 5, 6, 7]


@pytest.mark.parametrize("key", [(-1, 0, 0), (0, -1, 0), (0, 0, -1)])
def test_negative_keys_are_refused_by_name(key):
    name = ("seed", "chain", "step")[key.index(-1)]
    with pytest.raises(ValueError, match=f"{name} must not be negative"):
        stream(*key, Purpose.START)
