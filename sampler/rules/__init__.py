"""Acceptance rules: the N-vote rule of the paper, and what it is compared with; each file holds rules and their
configs.

To add one: a config in the file whose evidence it has, and its name in `RuleConfig`.

The distribution that a config's chains sample, in plain text (`target_distribution`):

    p0(x) * exp(2*s1(x) + s2(x)); s1: “Which is darker?”, people; s2: “Which is better?”, people

s_i is the hidden score of a question: its voters prefer y to x with log-odds s_i(y) - s_i(x). Each judge multiplies the
distribution by exp(s_i) once, so that a question asked in both orders by two judges, one for each, counts twice.
Ratings are part of the distribution as they were drawn: an object keeps those it got.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated

from pydantic import BaseModel, Field

from sampler.judges.config import JudgeConfig
from sampler.rules.n_vote import NVoteConfig
from sampler.rules.pointwise import PointwiseConfig
from sampler.rules.scored import BaseConfig, QuestConfig, ScoreConfig

RuleConfig = Annotated[
    NVoteConfig | PointwiseConfig | BaseConfig | ScoreConfig | QuestConfig, Field(discriminator="kind")
]
UNKNOWN = "not known: the kernel takes the base ratio for 1 (convention 'paper')"


def target_distribution(judges: Sequence[JudgeConfig], rule: RuleConfig, kernels: Iterable[BaseModel]) -> str:
    """Return the distribution up to a constant factor, with what its letters stand for; or why it is not known.

    Args:
        kernels: of a mixture, its parts.
    """
    if any(getattr(kernel, "convention", "exact") != "exact" for kernel in kernels):
        return UNKNOWN
    return rule.distribution(judges)
