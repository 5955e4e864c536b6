"""Which judge to ask next, and how many votes at once.

A policy may look at the votes cast so far; the accept law does not depend on it (`VotePlan` says why).

    RoundRobin      the judge with the fewest votes so far
    JudgeByJudge    one judge's budget after another's
    FewestVotes     Bayesian: a Beta(1, 1) belief on each p_i, and dynamic programming on the remaining tallies

    plan = VotePlan(policy, log_r0, uniform, budgets)
    plan.next(votes_for, votes_cast) -> Request(judge, votes), or None once the verdict is settled
    expected_votes(policy, log_r0, preference, budgets, uniform=None) -> float
    forecast_crowd(rng, people, votes_each, ...) -> CrowdForecast, where chains open while people come

And what a whole study will take, before it starts, as intervals:

    forecast_study(rng, study, paces, leans) -> StudyForecast: votes, steps, effective samples, hours, waits, money
    PlannedStudy    the setup's numbers
    PaceBeliefs     how fast people are: from a guess, or from a pilot's times
    LeanBeliefs     how they lean on proposals, and which base ratios these have: from `trial_ratios`, or from a pilot
    planned_changes(study, forecast, most_money) -> what to change, in sentences
    changes(study, forecast) -> what to change, in sentences
"""

from sampler.planning.advice import changes as planned_changes
from sampler.planning.crowd import CrowdForecast, forecast_crowd
from sampler.planning.expectation import expected_votes, mean_votes
from sampler.planning.forecast import ForecastInterval, StudyForecast, forecast_study
from sampler.planning.leans import LeanBeliefs
from sampler.planning.paces import PaceBeliefs
from sampler.planning.pilot import Pilot, PilotPerson, PilotStep
from sampler.planning.plan import Request, VotePlan
from sampler.planning.policies import FewestVotes, JudgeByJudge, Policy, RoundRobin
from sampler.planning.study import PlannedStudy
from sampler.planning.tally_grid import TallyGrid

__all__ = [
    "CrowdForecast",
    "FewestVotes",
    "ForecastInterval",
    "JudgeByJudge",
    "LeanBeliefs",
    "PaceBeliefs",
    "Pilot",
    "PilotPerson",
    "PilotStep",
    "PlannedStudy",
    "Policy",
    "Request",
    "RoundRobin",
    "StudyForecast",
    "TallyGrid",
    "VotePlan",
    "expected_votes",
    "forecast_crowd",
    "forecast_study",
    "mean_votes",
    "planned_changes",
]
