"""The ways to ask a model: one file each, registered in `KINDS`.

    sampled             a vote is the label that the model replies with
    log_probabilities   a vote is drawn from the probability that the server tells for each label
    ratings             the model rates one object alone, where the rule compares ratings

To add one: write a file with a `JudgeKind`, and register it here under the name by which a config's source (or its
rule) asks for it.
"""

from __future__ import annotations

import sampler
from prefmh_web.campaigns.model_judges.frozen_judges import model_source
from prefmh_web.campaigns.model_judges.kinds.kind import Answers, Ask, Asking, JudgeKind, Rows
from prefmh_web.campaigns.model_judges.kinds.log_probabilities import LogProbabilities
from prefmh_web.campaigns.model_judges.kinds.ratings import Ratings
from prefmh_web.campaigns.model_judges.kinds.sampled import Sampled

KINDS: dict[str, JudgeKind] = {
    "sampled": Sampled(),
    "log-probabilities": LogProbabilities(),
    "ratings": Ratings(),
}

__all__ = ["KINDS", "Answers", "Ask", "Asking", "JudgeKind", "Rows", "kind_of"]


def kind_of(config: sampler.ChainConfig, place: int) -> JudgeKind:
    """Return how a config's judge is asked, which is a model."""
    if config.rule.evidence == "ratings":
        return KINDS["ratings"]
    return KINDS[model_source(config, place).votes]
