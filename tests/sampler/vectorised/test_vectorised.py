"""Chains side by side: the law of the exact chain, the very path of the plain loop, and what is recorded."""

from __future__ import annotations

import numpy as np
import pytest

from sampler import (
    BalancedOrder,
    IndependentTable,
    InvalidPlugIn,
    MatrixTable,
    MixtureTable,
    NeighbourTable,
    NVote,
    Oracle,
    TwoJudgeOrder,
    VoteWalker,
    Walker,
    target,
    transition_matrix,
)
from sampler.vectorised import walker as walker_module
from sampler.vectorised.alias import alias_tables
from tests.support import sampling
from tests.support.sampling import LOPSIDED, independent_law, neighbours_law, stationary, two_scores, visits_p_value

SCORES = two_scores(LOPSIDED)
PI = target(LOPSIDED.log_p0, SCORES)
RULES = {
    "n-vote": NVote((3, 2)),
    "oracle": Oracle(),
    "plug-in": InvalidPlugIn((3, 2)),
    "balanced": BalancedOrder((4, 2), 0.5),
    "two judges": TwoJudgeOrder((2, 4), 0.5),
}
Q = np.random.default_rng(8).dirichlet(np.ones(5), size=5)
TABLES = {
    "independent": (IndependentTable(LOPSIDED.log_p0), independent_law(LOPSIDED)),
    "neighbours": (NeighbourTable(LOPSIDED.log_p0, LOPSIDED.neighbours), neighbours_law(LOPSIDED)),
    "matrix": (MatrixTable(LOPSIDED.log_p0, Q), Q),
}
# One time in a thousand a right simulator would fall below; the seeds are fixed.
LEAST_P_VALUE = 1e-3

every_rule = pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
every_table = pytest.mark.parametrize("table", TABLES)


def matrix(rule, q):
    return transition_matrix(LOPSIDED.log_p0, q, SCORES, rule)


def warm(transitions, chains, seed):
    """Draw starts from the stationary law, so that counts are of a chain in equilibrium."""
    law = np.clip(stationary(transitions), 0, None)
    return np.random.default_rng(seed).choice(len(law), size=chains, p=law / law.sum())


@every_rule
@every_table
def test_both_simulators_have_the_law_of_the_exact_chain(rule, table):
    proposals, q = TABLES[table]
    transitions = matrix(rule, q)
    law, start = stationary(transitions), warm(transitions, 1_000, 1)
    rng = np.random.default_rng(2)
    voted = VoteWalker(proposals, rule, SCORES).run(rng, start, 60)
    walked = Walker(transitions).run(rng, start, 200)
    assert visits_p_value(voted.visits[-1], transitions, law) > LEAST_P_VALUE
    assert visits_p_value(walked.visits[-1], transitions, law) > LEAST_P_VALUE


def test_a_mixture_corrects_each_table_by_its_own_ratio():
    weights, parts = (0.3, 0.7), [TABLES[name] for name in ("independent", "neighbours")]
    transitions = sum(weight * matrix(RULES["n-vote"], q) for weight, (_, q) in zip(weights, parts, strict=True))
    table = MixtureTable(weights, [each for each, _ in parts])
    start = warm(transitions, 1_000, 1)
    walk = VoteWalker(table, RULES["n-vote"], SCORES).run(np.random.default_rng(2), start, 60)
    assert visits_p_value(walk.visits[-1], transitions, PI) > LEAST_P_VALUE


@every_table
def test_the_plug_in_rule_is_found_out(table):
    proposals, q = TABLES[table]
    right, wrong = matrix(NVote((3, 2)), q), RULES["plug-in"]
    rng = np.random.default_rng(3)
    for walk in (
        VoteWalker(proposals, wrong, SCORES).run(rng, warm(right, 1_000, 1), 60),
        Walker(matrix(wrong, q)).run(rng, warm(right, 1_000, 1), 60),
    ):
        assert visits_p_value(walk.visits[-1], right, PI) < 1e-6


@pytest.mark.parametrize("simulator", ["walker", "votes"])
def test_every_transition_is_as_frequent_as_the_matrix_says(simulator):
    transitions = matrix(NVote((3, 2)), Q)
    engine = Walker(transitions) if simulator == "walker" else VoteWalker(TABLES["matrix"][0], NVote((3, 2)), SCORES)
    for state in range(5):
        draws = 40_000
        final = engine.run(np.random.default_rng(state), np.full(draws, state), 1).final
        shares = np.bincount(final, minlength=5) / draws
        # Four and a half standard deviations of a binomial share; 50 comparisons.
        spread = np.sqrt(transitions[state] * (1 - transitions[state]) / draws)
        assert np.all(np.abs(shares - transitions[state]) <= 4.5 * spread)


def plain(transitions, uniforms, state):
    """The same chain, one Python step after another, from the same uniforms in the order of time."""
    cut, other = alias_tables(np.maximum(transitions, 0))
    for uniform in uniforms:
        place = uniform * len(transitions)
        column = int(place)
        state = column if place < cut[state, column] else int(other[state, column])
        yield state


CYCLE = np.roll(np.eye(241), 1, axis=1)
LONG_CHAINS = {
    "synthetic": transition_matrix(sampling.LOG_P0, sampling.PROPOSALS, sampling.SCORE[None], NVote((2,))),
    "slow": 0.999 * np.eye(241) + 0.001 / 241,
    "never meets": CYCLE,
}


@pytest.mark.parametrize("chain", LONG_CHAINS)
@pytest.mark.parametrize(("chains", "steps"), [(1, 1_000), (3, 2_001)])
def test_segments_side_by_side_give_the_path_of_one_step_after_another(chain, chains, steps):
    transitions = LONG_CHAINS[chain]
    start = np.arange(chains) * 70
    walk = Walker(transitions).run(np.random.default_rng(9), start, steps, keep_path=True)
    segments = min(walker_module.LANES // chains, steps // walker_module.SEGMENT)
    assert segments > 1
    length = -(-steps // segments)
    drawn = np.random.default_rng(9).random((length, segments, chains)).swapaxes(0, 1).reshape(-1, chains)[:steps]
    for each in range(chains):
        assert walk.path[:, each].tolist() == list(plain(transitions, drawn[:, each], start[each]))


@pytest.mark.parametrize(
    "engine", [Walker(matrix(NVote((3, 2)), Q)), VoteWalker(TABLES["matrix"][0], Oracle(), SCORES)]
)
@pytest.mark.parametrize(("chains", "steps", "every"), [(1, 1_000, 7), (4, 700, 100), (300, 50, None), (3_000, 5, 2)])
def test_records_add_up_to_the_path(engine, chains, steps, every):
    start = np.arange(chains) % 5

    def run(**options):
        return engine.run(np.random.default_rng(4), start, steps, every=every, **options)

    walk, each = run(keep_path=True), run(per_chain=True)
    assert walk.path.shape == (steps, chains)
    assert walk.final.tolist() == walk.path[-1].tolist() == each.final.tolist()
    assert walk.times.tolist() == [*range(every or steps, steps, every or steps), steps]
    for row, time in enumerate(walk.times):
        assert walk.visits[row].tolist() == np.bincount(walk.path[:time].ravel(), minlength=5).tolist()
        assert each.visits[row, -1].tolist() == np.bincount(walk.path[:time, -1], minlength=5).tolist()
    np.testing.assert_array_equal(each.visits.sum(axis=1), walk.visits)
    assert run().path is None
