"""Suffix moves with the ratio of QUEST's published code, which is exact for no law: for comparison only.

The cut i is uniform on 0 .. n-1. Had the code taken the sum of the log-probabilities of the two suffixes,

    log n - log n' + sum_{t>i} log p(x_t | x_<t) - sum_{t>i} log p(x'_t | x'_<t)

would be log q(x|x') - log q(x'|x) of a given cut, and the chain exact for exp(r / beta) without p0. It takes the two
means instead, and the balance is lost: on a small language the chain is as far from that law as from p0 exp(r / beta)
(`tests/sampler/experiments/test_translation_exactness.py`).
"""

from __future__ import annotations

from sampler.kernels.suffix import Suffix
from sampler.spaces.texts.language_model import CannotScoreError, ScoresSuffixes
from sampler.spaces.texts.space import Writing, WrittenTexts


class ReleasedSuffix(Suffix):
    """Suffixes cut over the text's own length, with the published code's ratio.

    Args:
        space: the texts; what writes them must tell the log-probabilities of suffixes.

    Raises:
        CannotScoreError: it does not.
    """

    def __init__(self, space: WrittenTexts) -> None:
        super().__init__(space, "length")
        model = space.model
        if not isinstance(model, ScoresSuffixes):
            raise CannotScoreError(
                "QUEST's published ratio takes the mean log-probability of the tokens after the cut, of the text that "
                "is there and of the one that is written, and what writes these texts does not give log-probabilities "
                "of its tokens (there is no score_suffix). Use 'released': false, which needs none"
            )
        self._scoring: ScoresSuffixes = model

    def ratio(self, state: Writing, proposal: Writing, cut: int) -> float:
        """Return log n - log n' and the difference of the suffixes' mean log-probabilities, in nats."""
        return self.log_r0(state, proposal) + self._mean(state, cut) - self._mean(proposal, cut)

    def _mean(self, writing: Writing, cut: int) -> float:
        return self._scoring.score_suffix(writing.prompt, writing.tokens, cut) / (len(writing.tokens) - cut)
