"""The stories' method on a grammar that can be listed: fresh draws and suffixes, three judges, none of them pooled."""

import numpy as np
import pytest

from sampler import marginal_acceptance
from sampler.exact import imbalance, preferences, target, transitions_of
from sampler.kernels.suffix import Suffix
from tests.sampler.kernels.test_suffix import FreeOfLength, solved, space, tables
from tests.support.sampling import averaged, pooled_rule

FRESH = 0.1
THREE, ONE = (3, 3, 3), (3,)


class TiltedByLength(Suffix):
    """A deliberately wrong kernel: cuts over the limit with the ratio n / n' of cuts over the length."""

    def log_r0(self, state, proposal):
        return float(np.log(len(state.tokens)) - np.log(len(proposal.tokens)))


def scores(judges):
    """Return a score of each text by each judge, shape (judges, n)."""
    return np.random.default_rng(12).normal(size=(judges, len(solved("ragged")[0])))


def unbalanced(suffixes, cut, budgets, rule=marginal_acceptance):
    """Return the imbalance of the mixture's chain against p0 exp(sum_i s_i), each component with its own ratio."""
    log_p0, judges = solved("ragged")[1], scores(len(budgets))
    fresh = np.tile(np.exp(log_p0), (len(log_p0), 1))
    q, log_r0 = tables("ragged", suffixes, cut)
    p = preferences(judges)
    matrices = [transitions_of(law, rule(ratio, p, budgets)) for law, ratio in ((fresh, np.zeros_like(q)), (q, log_r0))]
    return imbalance(target(log_p0, judges), FRESH * matrices[0] + (1 - FRESH) * matrices[1])


@pytest.mark.parametrize("budgets", [THREE, ONE], ids=str)
def test_the_paper_s_mixture_and_rule_keep_the_target(budgets):
    assert unbalanced(Suffix(space("ragged"), "limit"), "limit", budgets) < 1e-12


def test_three_judges_in_one_count_do_not():
    assert unbalanced(Suffix(space("ragged"), "limit"), "limit", THREE, averaged(pooled_rule)) > 1e-3


@pytest.mark.parametrize("budgets", [THREE, ONE], ids=str)
def test_a_ratio_of_lengths_that_does_not_go_with_the_cut_does_not(budgets):
    assert unbalanced(TiltedByLength(space("ragged"), "limit"), "limit", budgets) > 1e-4
    assert unbalanced(FreeOfLength(space("ragged"), "length"), "length", budgets) > 1e-4
