"""Walks: exact for the distribution they claim, each wrong way of walking found out, and what a config may say of them.

The proposal distribution of a walk is what the kernel's own `propose` does, followed through every number it can draw
(`tests.support.outcomes`). Detailed balance is then checked with a judge whose votes are averaged out.
"""

import itertools
import math
from functools import cache

import numpy as np
import pytest

from sampler import ConfigError, Independent, Mixture, Neighbours, NVote, Proposal, exact, parse_config
from sampler.chain import after_steps
from sampler.kernels.crank_nicolson import CrankNicolson, beta_of_steps
from sampler.kernels.suffix import LeastCut, Suffix
from sampler.kernels.walk import LONGEST_WALK, WalkKernel
from sampler.spaces.catalog import Catalog
from sampler.spaces.latents import LatentSpace
from tests.sampler.kernels import test_suffix as texts
from tests.support.campaigns import make_config
from tests.support.enumerated import imbalance, walk_distribution
from tests.support.outcomes import distribution_of
from tests.support.sampling import LOPSIDED, STAR, SmallSpace, plain, problems_of, size_log_p0

EXACT, WRONG = 1e-12, 1e-6
LENGTHS = (1, 2, 3)


class Space:
    """A small space: its states, log p0, and two kernels that move in it."""

    def __init__(self, states, log_p0, first, second) -> None:
        self.states, self.first, self.second = states, first, second
        self.log_p0 = log_p0 - np.log(np.exp(log_p0).sum())
        index = np.arange(len(states))
        self.scores = np.stack([np.sin(1 + 2 * index), 0.8 * np.cos(3 * index)])

    def distribution(self, kernel):
        """Return q(x'|x) of the kernel's own draws, shape (n, n)."""
        return texts.drawn_by(kernel, self.states)[0]

    def imbalance(self, kernel):
        """Return max |pi(x) P(x, x') - pi(x') P(x', x)| of the kernel with base ratio 1, and two judges."""
        q = self.distribution(kernel)
        assert np.abs(q.sum(axis=1) - 1).max() < EXACT
        chain = exact.transition_matrix(self.log_p0, q, self.scores, NVote((1, 2)), np.zeros_like(q))
        return imbalance(exact.target(self.log_p0, self.scores), chain)


def line(states: int) -> Catalog:
    """Items in a row, as the synthetic experiment has them, with its p0 on fewer places."""
    weights = np.exp(-0.5 * ((np.arange(states) - 0.28 * states) / (0.23 * states)) ** 2)
    return Catalog(weights, tuple(tuple(k for k in (at - 1, at + 1) if 0 <= k < states) for at in range(states)))


@cache
def space(name) -> Space:
    if name == "texts":
        states, log_p0 = texts.solved("even")
        made = texts.space("even")
        return Space(states, log_p0, Suffix(made, "length"), Suffix(made, "limit"))
    if name == "molecules":
        small = SmallSpace("CC", plain("*C"), 5, add=0.4)
        states = small.reachable()
        return Space(states, size_log_p0(small.distribution(), states), small.kernel(), small.kernel())
    catalog = {"synthetic": line(7), "lopsided": LOPSIDED, "star": STAR}[name]
    items = len(catalog)
    # Each item linked to all others but one: a kernel that does not commute with the first.
    others = tuple(tuple(k for k in range(items) if k not in (at, items - 1 - at)) for at in range(items))
    return Space(list(range(items)), catalog.log_p0, Neighbours(catalog), Neighbours(Catalog(catalog.weights, others)))


class WithoutRatio(WalkKernel):
    """A wrong walk: every inner move is taken, whatever its base ratio."""

    def propose(self, rng, state):
        for _ in range(self._length):
            state = self._kernel.propose(rng, state).state
        return Proposal(state, 0.0)


class UntilItMoves(WalkKernel):
    """A wrong walk: it ends at its first move."""

    def propose(self, rng, state):
        at = state
        for _ in range(self._length):
            at = after_steps(self._kernel, rng, at, 1)
            if at != state:
                break
        return Proposal(at, 0.0)


class OnceMore(WalkKernel):
    """A wrong walk: a walk that ends where it began is walked again (here once, which breaks the balance already)."""

    def propose(self, rng, state):
        end = after_steps(self._kernel, rng, state, self._length)
        return Proposal(after_steps(self._kernel, rng, state, self._length) if end == state else end, 0.0)


class InTurns(WalkKernel):
    """A wrong walk: it uses two kernels one after the other."""

    def __init__(self, first, second, length) -> None:
        super().__init__(first, length)
        self._second = second

    def propose(self, rng, state):
        for number in range(self._length):
            state = after_steps(self._second if number % 2 else self._kernel, rng, state, 1)
        return Proposal(state, 0.0)


@pytest.mark.parametrize("name", ["synthetic", "lopsided", "star", "texts", "molecules"])
def test_a_walk_is_in_detailed_balance(name):
    small = space(name)
    walks = [WalkKernel(small.first, length) for length in LENGTHS]
    of_a_mixture = WalkKernel(Mixture((0.3, 0.7), (small.second, small.first)), 2)
    of_several_lengths = Mixture((0.2, 0.5, 0.3), walks)
    assert max(small.imbalance(kernel) for kernel in (*walks, of_a_mixture, of_several_lengths)) < EXACT


# Where p0 over the number of neighbours does not vary, taking every move is right; on the others it is not.
@pytest.mark.parametrize(
    ("wrong", "name"),
    [*itertools.product((WithoutRatio, UntilItMoves, OnceMore), ("synthetic", "lopsided", "texts")),
     (WithoutRatio, "molecules")],
)  # fmt: skip
def test_a_wrong_walk_is_out_of_balance(wrong, name):
    small = space(name)
    assert small.imbalance(wrong(small.first, 2)) > WRONG


# Suffix moves commute with one another: on texts two of them in turns are reversible.
@pytest.mark.parametrize("name", ["synthetic", "lopsided"])
def test_two_kernels_in_turns_are_out_of_balance(name):
    small = space(name)
    assert small.imbalance(InTurns(small.first, small.second, 2)) > WRONG
    # A, B, A reads the same backwards.
    assert small.imbalance(InTurns(small.first, small.second, 3)) < EXACT


@pytest.mark.parametrize("name", ["synthetic", "lopsided"])
def test_a_walk_follows_the_chain_without_judges(name):
    small = space(name)
    for length in LENGTHS:
        distribution = small.distribution(WalkKernel(small.first, length))
        np.testing.assert_allclose(
            distribution, walk_distribution(small.log_p0, small.distribution(small.first), length), atol=EXACT
        )


def test_a_step_that_is_accepted_for_sure_takes_no_random_number_to_decide():
    class Upwards:
        def propose(self, _rng, state):
            return Proposal(state + 1, 0.5)

    rng = np.random.default_rng(1)
    assert after_steps(Upwards(), rng, 0, 3) == 3
    assert rng.random() == np.random.default_rng(1).random()


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("fresh", [0.0, 0.3])
@pytest.mark.parametrize("name", texts.GRAMMARS)
def test_one_move_at_the_least_cut_is_so_many_moves(name, fresh, length):
    made, (states, log_p0) = texts.space(name), texts.solved(name)
    small = Space(states, log_p0, Suffix(made, "limit"), Independent(made))
    one_by_one = Mixture((1 - fresh, fresh), (small.first, small.second)) if fresh else small.first
    together = small.distribution(LeastCut(made, length, fresh))
    np.testing.assert_allclose(
        together, walk_distribution(small.log_p0, small.distribution(one_by_one), length), atol=EXACT
    )


@pytest.mark.parametrize(("length", "fresh"), [(1, 0.0), (3, 0.0), (64, 0.0), (3, 0.1), (64, 0.01)])
def test_the_least_cut_has_its_distribution(length, fresh):
    made = texts.space("one long")
    kernel, (states, _), most = LeastCut(made, length, fresh), texts.solved("one long"), made.model.limit
    distribution = distribution_of(lambda rng: kernel.cut(rng, states[0]))
    for cut in range(1, most):
        at_least = math.fsum(chance for drawn, chance in distribution.items() if drawn >= cut)
        assert at_least == pytest.approx(((1 - fresh) * (most - cut) / most) ** length, abs=EXACT)


def test_moves_at_cuts_over_the_length_are_not_one_move_at_the_least():
    made, (states, log_p0) = texts.space("ragged"), texts.solved("ragged")
    small = Space(states, log_p0, Suffix(made, "length"), Suffix(made, "limit"))
    two = walk_distribution(small.log_p0, small.distribution(small.first), 2)
    assert np.abs(small.distribution(LeastCut(made, 2)) - two).max() > 1e-3


@pytest.mark.parametrize(("beta", "steps"), [(0.08, 1), (0.08, 64), (0.25, 7), (1.0, 3)])
def test_steps_on_latents_are_one_step(beta, steps):
    """The same correlation with the start, to rounding: (1 - β²)^(L/2) is sqrt(1 - β_L²)."""
    together = beta_of_steps(beta, steps)
    assert 0 < together <= 1
    assert math.sqrt(max(0.0, 1 - together**2)) == pytest.approx((1 - beta * beta) ** (steps / 2), abs=1e-8)


def test_a_walk_on_latents_moves_by_that_step():
    latents, beta, length = LatentSpace(3), 0.2, 9
    start = latents.start(np.random.default_rng(1), 0)
    walked = WalkKernel(CrankNicolson(beta), length).propose(np.random.default_rng(2), start)
    stepped = CrankNicolson(beta_of_steps(beta, length)).propose(np.random.default_rng(2), start)
    assert walked == stepped


def walk_config(kernel, length, space=None):
    walk = {"kind": "walk", "kernel": kernel, "length": length}
    space = space or {"kind": "catalog", "objects": "texts", "neighbours": 2}
    return make_config(space=space, kernel=walk, judges=[{"question": "Which one?", "votes": 1}], chains=2, steps=10)


NEIGHBOURS = {"kind": "neighbours"}


@pytest.mark.parametrize("length", [1, 64, LONGEST_WALK, [{"weight": 0.5, "length": 1}, {"weight": 0.5, "length": 64}]])
def test_a_config_says_how_far_to_walk_and_keeps_it(length):
    config = parse_config(walk_config(NEIGHBOURS, length))
    assert config.model_dump(mode="json")["kernel"]["length"] == length
    assert parse_config(config.model_dump(mode="json")) == config
    assert config.moves == {"neighbours"}


@pytest.mark.parametrize(
    ("kernel", "length", "space", "path", "message"),
    [
        (NEIGHBOURS, 0, None, "kernel.length", "whole number from 1"),
        (NEIGHBOURS, "64", None, "kernel.length", "whole number"),
        (NEIGHBOURS, [{"weight": 0.5, "length": 4}], None, "kernel.length", "sum to 1"),
        ({"kind": "walk", "kernel": NEIGHBOURS, "length": 2}, 2, None, "kernel.kernel.kind", "one of"),
        ({"kind": "suffix"}, 2, None, "kernel", "does not move"),
        ({"kind": "fragments", "convention": "paper"}, 2, {"kind": "molecules"}, "kernel", "exact"),
        (
            {"kind": "suffix", "cut": "length"},
            2,
            {"kind": "model-texts", "model": "m", "prompts": ["p"]},
            "kernel.kernel",
            "the cut 'limit'",
        ),
    ],
)
def test_a_walk_that_cannot_be_is_refused_by_its_field(kernel, length, space, path, message):
    assert message in problems_of(walk_config(kernel, length, space))[path]


SQUARE = Catalog(np.ones(4), ((1, 3), (0, 2), (1, 3), (0, 2)))
TRIANGLE = Catalog(np.ones(3), ((1, 2), (0, 2), (0, 1)))


def test_a_walk_that_would_never_leave_half_of_a_catalog_is_refused():
    with pytest.raises(ConfigError, match="odd lengths"):
        parse_config(walk_config(NEIGHBOURS, 4)).build(SQUARE)
    # The distribution of the walk says why: from one corner two are out of reach.
    assert walk_distribution(SQUARE.log_p0, space_of(SQUARE).distribution(Neighbours(SQUARE)), 4)[0, 1] == 0


@pytest.mark.parametrize(
    ("length", "catalog"),
    [
        (3, SQUARE),
        ([{"weight": 0.5, "length": 4}, {"weight": 0.5, "length": 1}], SQUARE),
        (4, TRIANGLE),
        (4, Catalog(np.array([1.0, 2, 1, 2]), SQUARE.neighbours)),
    ],
)
def test_a_walk_that_reaches_everything_is_not(length, catalog):
    config = parse_config(walk_config(NEIGHBOURS, length))
    q = space_of(catalog).distribution(config.build(catalog).kernel)
    assert np.all(np.linalg.matrix_power(q + np.eye(len(catalog)), len(catalog)) > 0)


def space_of(catalog) -> Space:
    return Space(list(range(len(catalog))), catalog.log_p0, Neighbours(catalog), Independent(catalog))
