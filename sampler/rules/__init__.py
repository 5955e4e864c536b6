"""Acceptance rules, one file each: the N-vote rule of the paper, the oracle, and what they are compared with.

To add one: copy the file whose shape it has (`shape.py` names the two), and add its class to its registry.
"""

from __future__ import annotations

from sampler.rules.ballots import InvalidPlugIn
from sampler.rules.config import NVoteConfig, PointwiseConfig, RuleConfig
from sampler.rules.n_vote import NVote
from sampler.rules.oracle import Oracle
from sampler.rules.pointwise import PointwiseDifference, PointwiseJoint, PointwisePower, PointwiseSeparate
from sampler.rules.scored import Mars, Quest
from sampler.rules.shape import JudgeRule, ScoreRule

# Rules that ask judges to compare two states, by name. Two are exact for p0 exp(sum s_i).
JUDGE_RULES: dict[str, type[NVote] | type[Oracle] | type[InvalidPlugIn]] = {
    rule.name: rule for rule in (NVote, Oracle, InvalidPlugIn)
}
# Rules on numbers each state was given alone, by name.
SCORE_RULES: dict[str, type[ScoreRule]] = {
    rule.name: rule for rule in (PointwiseSeparate, PointwiseJoint, PointwiseDifference, PointwisePower, Mars, Quest)
}

__all__ = [
    "JUDGE_RULES",
    "SCORE_RULES",
    "InvalidPlugIn",
    "JudgeRule",
    "Mars",
    "NVote",
    "NVoteConfig",
    "Oracle",
    "PointwiseConfig",
    "PointwiseDifference",
    "PointwiseJoint",
    "PointwisePower",
    "PointwiseSeparate",
    "Quest",
    "RuleConfig",
    "ScoreRule",
]
