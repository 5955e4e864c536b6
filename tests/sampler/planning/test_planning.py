"""Plans by enumeration: the accept law is untouched, no vote is wasted, and the Bayesian policy asks fewest."""

from __future__ import annotations

import functools
import itertools

import numpy as np
import pytest

from sampler import (
    FewestVotes,
    JudgeByJudge,
    Request,
    RoundRobin,
    Verdict,
    VotePlan,
    acceptance_probability,
    expected_votes,
    marginal_acceptance,
    mean_votes,
    verdict,
)
from sampler.planning import TallyGrid

POLICIES = {"round robin": RoundRobin(), "judge by judge": JudgeByJudge(), "fewest votes": FewestVotes()}
BUDGETS = [(1,), (4,), (1, 2), (3, 2), (1, 1, 2)]
LOG_RATIOS = [-1.5, 0.0, 0.8]
PREFERENCE = (0.35, 0.8, 0.55)
ROUNDING = 1e-12

every_policy = pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
every_budget = pytest.mark.parametrize("budgets", BUDGETS, ids=str)
every_ratio = pytest.mark.parametrize("log_r0", LOG_RATIOS)


def plus(counts, judge, by=1):
    return (*counts[:judge], counts[judge] + by, *counts[judge + 1 :])


def levels(log_r0, budgets):
    """Return values of U, one of each interval in which verdicts are constant, and the intervals' lengths."""
    tallies = np.array(list(itertools.product(*(range(n + 1) for n in budgets))))
    edges = np.unique([0.0, 1.0, *acceptance_probability(log_r0, tallies, budgets)])
    return [(float(low + high) / 2, float(high - low)) for low, high in itertools.pairwise(edges)]


def outcomes(plan, log_r0, uniform, budgets, preference, at_once):
    """Return (chance to accept, mean votes) over every answer the judges can give to what the plan asks."""

    def after(votes, cast, chance, judge, left):
        # Each vote of a request still finds the verdict open: none is wasted.
        assert verdict(log_r0, uniform, votes, cast, budgets) is Verdict.UNDECIDED
        in_favour, against = (
            walk(*tally, part) if left == 1 else after(*tally, part, judge, left - 1)
            for tally, part in (
                ((plus(votes, judge), plus(cast, judge)), chance * preference[judge]),
                ((votes, plus(cast, judge)), chance * (1 - preference[judge])),
            )
        )
        return in_favour[0] + against[0], in_favour[1] + against[1] + chance

    def walk(votes, cast, chance):
        request = plan.next(votes, cast)
        settled = verdict(log_r0, uniform, votes, cast, budgets)
        assert (request is None) == (settled is not Verdict.UNDECIDED)
        if request is None:
            return chance * (settled is Verdict.ACCEPT), 0.0
        return after(votes, cast, chance, request.judge, request.votes if at_once else 1)

    nothing = (0,) * len(budgets)
    return walk(nothing, nothing, 1.0)


@every_policy
@every_budget
@every_ratio
@pytest.mark.parametrize("at_once", [False, True], ids=["one at a time", "at once"])
def test_no_policy_changes_the_accept_law_or_wastes_a_vote(policy, budgets, log_r0, at_once):
    preference = PREFERENCE[: len(budgets)]
    accepted = votes = 0.0
    for uniform, length in levels(log_r0, budgets):
        plan = VotePlan(policy, log_r0, uniform, budgets)
        chance, mean = outcomes(plan, log_r0, uniform, budgets, preference, at_once)
        accepted += length * chance
        votes += length * mean
        if not at_once:
            assert expected_votes(policy, log_r0, preference, budgets, uniform) == pytest.approx(mean, abs=ROUNDING)
    assert accepted == pytest.approx(float(marginal_acceptance(log_r0, preference, budgets)), abs=ROUNDING)
    one_by_one = expected_votes(policy, log_r0, preference, budgets)
    if not at_once or len(budgets) == 1 or isinstance(policy, JudgeByJudge):
        assert votes == pytest.approx(one_by_one, abs=ROUNDING)
    else:
        assert votes <= sum(budgets)


@every_budget
@every_ratio
def test_a_request_is_min_a_c(budgets, log_r0):
    for uniform, _ in levels(log_r0, budgets):
        plan = VotePlan(JudgeByJudge(), log_r0, uniform, budgets)
        request = plan.next((0,) * len(budgets), (0,) * len(budgets))
        if request is None:
            continue
        judge, nothing = request.judge, (0,) * len(budgets)

        def needed(answer, uniform=uniform, judge=judge, nothing=nothing):
            for more in range(1, budgets[judge]):
                cast = plus(nothing, judge, more)
                votes = cast if answer else nothing
                if verdict(log_r0, uniform, votes, cast, budgets) is not Verdict.UNDECIDED:
                    return more
            return budgets[judge]

        assert request == Request(judge, min(needed(True), needed(False)))


@every_budget
@every_ratio
def test_the_bayesian_policy_asks_fewest_votes_of_all_policies(budgets, log_r0):
    """Against the least of every adaptive policy, by plain recursion under the same belief."""
    for uniform, _ in levels(log_r0, budgets):

        @functools.cache
        def least(votes, cast, uniform=uniform):
            if verdict(log_r0, uniform, votes, cast, budgets) is not Verdict.UNDECIDED:
                return 0.0
            return 1 + min(
                belief * least(plus(votes, judge), plus(cast, judge)) + (1 - belief) * least(votes, plus(cast, judge))
                for judge, budget in enumerate(budgets)
                if cast[judge] < budget
                for belief in [(1 + votes[judge]) / (2 + cast[judge])]
            )

        nothing = (0,) * len(budgets)
        asked = {name: expected_votes(each, log_r0, None, budgets, uniform) for name, each in POLICIES.items()}
        assert asked["fewest votes"] == pytest.approx(least(nothing, nothing), abs=ROUNDING)
        assert asked["fewest votes"] <= min(asked.values()) + ROUNDING
        (believed,) = FewestVotes().belief(TallyGrid(log_r0, uniform, budgets))
        assert believed == pytest.approx(asked["fewest votes"], abs=ROUNDING)


def test_for_several_judges_it_asks_fewer_than_the_others():
    asked = {name: expected_votes(each, -0.5, None, (4, 3, 2)) for name, each in POLICIES.items()}
    assert asked["fewest votes"] < 0.99 * asked["judge by judge"]
    assert asked["fewest votes"] < 0.99 * asked["round robin"]


@pytest.mark.parametrize("policy", [RoundRobin(), JudgeByJudge()], ids=["round robin", "judge by judge"])
@every_budget
def test_the_mean_over_u_has_a_closed_form_for_fixed_orders(policy, budgets):
    log_r0 = np.array([[-1.5], [0.3]])
    preference = np.array([[0.3, 0.9, 0.5], [0.5, 0.2, 0.7], [0.0, 1.0, 0.4]])[:, : len(budgets)]
    table = mean_votes(
        np.broadcast_to(log_r0, (2, 3)), np.broadcast_to(preference, (2, 3, len(budgets))), budgets, policy
    )
    for row, column in itertools.product(range(2), range(3)):
        expected = expected_votes(policy, log_r0[row, 0], preference[column], budgets)
        assert table[row, column] == pytest.approx(expected, abs=ROUNDING)


def test_early_stopping_never_costs_more_than_the_budget_and_may_cost_nothing():
    assert expected_votes(JudgeByJudge(), 0.0, [0.5], (1,)) == 1.0
    assert expected_votes(JudgeByJudge(), -np.inf, [0.5], (8,)) == 0.0
    # With r0 = 1/16 and 8 votes the factor is at most 8: half of all comparisons are rejected unseen.
    assert expected_votes(JudgeByJudge(), np.log(1 / 16), [0.9], (8,)) < 4


def test_a_fixed_order_needs_no_table_and_plans_any_budget():
    assert VotePlan(RoundRobin(), 0.0, 0.5, (99,) * 8).next((0,) * 8, (0,) * 8) == Request(0, 99)


def test_a_plan_for_three_judges_of_nine_votes_is_made():
    plan = VotePlan(FewestVotes(), 0.0, 0.4, (9, 9, 9))
    request = plan.next((0, 0, 0), (0, 0, 0))
    assert request is not None
    assert 1 <= request.votes <= 9


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (lambda: VotePlan(RoundRobin(), 0.0, 1.0, (2,)), "uniform must lie"),
        (lambda: VotePlan(RoundRobin(), np.nan, 0.5, (2,)), "log_r0 must"),
        (lambda: VotePlan(RoundRobin(), 0.0, 0.5, (0,)), "budgets must"),
        (lambda: VotePlan(FewestVotes(), 0.0, 0.5, (9,) * 5), "budgets must leave at most 4,000,000 tallies"),
        (lambda: VotePlan(RoundRobin(), 0.0, 0.5, (2,)).next([3], [3]), "votes_cast must not exceed"),
        (lambda: VotePlan(RoundRobin(), 0.0, 0.5, (2.5,)), "budgets must be whole"),
        (lambda: expected_votes(RoundRobin(), 0.0, [0.5], (2, 2)), "preference has 1 judges"),
        (lambda: expected_votes(RoundRobin(), 0.0, [0.5] * 5, (9,) * 5), "budgets must leave at most 4,000,000"),
        (lambda: expected_votes(RoundRobin(), 0.0, [0.5] * 5, (9,) * 5, 0.5), "budgets must leave at most 4,000,000"),
        (lambda: expected_votes(RoundRobin(), 0.0, [0.5], (2,), 1.0), "uniforms must lie"),
        (lambda: mean_votes(0.0, [0.5], (0,)), "budgets must"),
    ],
)
def test_bad_arguments_are_refused_by_name(call, reason):
    with pytest.raises(ValueError, match=reason):
        call()
