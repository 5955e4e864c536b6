"""Which judge to ask next, and how many votes at once.

A policy may look at the votes cast so far; the accept law does not depend on it (`VotePlan` says why).

    RoundRobin      the judge with the fewest votes so far
    JudgeByJudge    one judge's budget after another's
    FewestVotes     Bayesian: a Beta(1, 1) belief on each p_i, and dynamic programming on the remaining tallies

    plan = VotePlan(policy, log_r0, uniform, budgets)
    plan.next(votes_for, votes_cast) -> Request(judge, votes), or None once the verdict is settled
    expected_votes(policy, log_r0, preference, budgets, uniform=None) -> float
    forecast_crowd(rng, people, votes_each, ...) -> CrowdForecast, where chains open while people come
"""

from sampler.planning.crowd import CrowdForecast, forecast_crowd
from sampler.planning.expectation import expected_votes, mean_votes
from sampler.planning.plan import Request, VotePlan
from sampler.planning.policies import FewestVotes, JudgeByJudge, Policy, RoundRobin
from sampler.planning.tally_grid import TallyGrid

__all__ = [
    "CrowdForecast",
    "FewestVotes",
    "JudgeByJudge",
    "Policy",
    "Request",
    "RoundRobin",
    "TallyGrid",
    "VotePlan",
    "expected_votes",
    "forecast_crowd",
    "mean_votes",
]
