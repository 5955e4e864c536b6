"""Suffix moves with the ratio of QUEST's published code, which is exact for no law: for comparison only.

The cut i is uniform on 0 .. n-1. Had the code taken the sum of the log-probabilities of the two suffixes,

    log n - log n' + sum_{t>i} log p(x_t | x_<t) - sum_{t>i} log p(x'_t | x'_<t)

would be log q(x|x') - log q(x'|x) of a given cut, and the chain exact for exp(r / beta) without p0. It takes the two
means instead, and the balance is lost: on a small language the chain is as far from that law as from p0 exp(r / beta)
(`tests/sampler/experiments/test_translation_exactness.py`).

A model that can score says these log-probabilities when asked; a text of one that cannot keeps those that its tokens
were drawn with (`ToldTexts`), as the published code does. Either way they are of p0, at its temperature.
"""

from __future__ import annotations

import math

from sampler.kernels.suffix import Suffix
from sampler.spaces.texts.language_model import CannotScoreError, ScoresSuffixes
from sampler.spaces.texts.space import Writing, WrittenTexts


class ReleasedSuffix(Suffix):
    """Suffixes cut over the text's own length, with the published code's ratio.

    Args:
        space: the texts; either they keep the log-probabilities of their tokens, or what writes them tells those of
            suffixes.

    Raises:
        CannotScoreError: it does not.
    """

    def __init__(self, space: WrittenTexts) -> None:
        super().__init__(space, "length")
        model = space.model
        self._scoring: ScoresSuffixes | None = model if isinstance(model, ScoresSuffixes) else None
        if self._scoring is None and not space.has_log_probabilities:
            raise CannotScoreError(
                "QUEST's published ratio takes the mean log-probability of the tokens after the cut, of the text that "
                "is there and of the one that is written, and what writes these texts does not give log-probabilities "
                "of its tokens (there is no score_suffix). Use 'released': false, which needs none"
            )

    def ratio(self, state: Writing, proposal: Writing, cut: int) -> float:
        """Return log n - log n' and the difference of the suffixes' mean log-probabilities, in nats."""
        if state == proposal:
            # Told twice, they may differ in their last digits; a record keeps one of the two.
            return 0.0
        return self.log_r0(state, proposal) + self._mean(state, cut) - self._mean(proposal, cut)

    def _mean(self, writing: Writing, cut: int) -> float:
        left = len(writing.tokens) - cut
        if writing.log_probabilities is not None:
            return math.fsum(writing.log_probabilities[cut:]) / left
        if self._scoring is None:
            raise CannotScoreError("a text without log-probabilities came to a rule that needs them")
        return self._scoring.score_suffix(writing.prompt, writing.tokens, cut) / left
