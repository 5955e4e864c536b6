"""A random language of three tokens, one of which ends a text: small enough to list, as checks of translations need.

Texts have at most four tokens and are never empty, so there are 30. With each are given its probability and a reward.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sampler.chain import Proposal
from sampler.kernels.suffix import Suffix
from sampler.spaces.texts.language_model import Tokens
from sampler.spaces.texts.space import Writing, WrittenTexts

LONGEST, END = 4, 2
PROMPT = "Translate."


@dataclass(frozen=True)
class ThreeTokens:
    """A `LanguageModel` that can score whole texts and suffixes.

    Args:
        law: p(token | beginning) for each beginning of letters, shape (3,).
    """

    law: dict[Tokens, np.ndarray]
    limit: int = LONGEST
    prompts: tuple[str, ...] = (PROMPT,)

    def continue_batch(
        self, rngs: Sequence[np.random.Generator], prompts: Sequence[str], prefixes: Sequence[Tokens]
    ) -> list[Tokens]:
        return [self._continue(rng, prefix) for rng, _, prefix in zip(rngs, prompts, prefixes, strict=True)]

    def text(self, prompt: str, tokens: Tokens) -> str:
        return "".join("ab."[token] for token in tokens)

    def score(self, prompt: str, tokens: Tokens) -> float:
        return self.score_suffix(prompt, tokens, 0)

    def score_suffix(self, prompt: str, tokens: Tokens, kept: int) -> float:
        return math.fsum(math.log(self.law[tokens[:place]][tokens[place]]) for place in range(kept, len(tokens)))

    def every_text(self) -> list[Tokens]:
        """Return every text."""
        letters = (letters for count in range(1, LONGEST + 1) for letters in itertools.product((0, 1), repeat=count))
        return [each if len(each) == LONGEST else (*each, END) for each in letters]

    def _continue(self, rng: np.random.Generator, prefix: Tokens) -> Tokens:
        tokens = prefix
        while len(tokens) < LONGEST and END not in tokens:
            below = np.cumsum(self.law[tokens])
            tokens = (*tokens, min(int(np.searchsorted(below, rng.random(), side="right")), END))
        return tokens


class MeanSuffix(Suffix):
    """A wrong kernel: log n - log n' and the difference of the mean log-probabilities of the two suffixes.

    That is the ratio of QUEST's published code. With the sums in place of the means it would sample exp(r / beta).
    """

    def __init__(self, texts: WrittenTexts) -> None:
        super().__init__(texts, "length")

    def propose_batch(self, rngs: Sequence[np.random.Generator], states: Sequence[Writing]) -> list[Proposal[Writing]]:
        cuts = [self.cut(rng, state) for rng, state in zip(rngs, states, strict=True)]
        written = self._space.write(rngs, [state.beginning(cut) for state, cut in zip(states, cuts, strict=True)])
        rows = zip(states, written, cuts, strict=True)
        return [Proposal(proposal, self.mean_ratio(state, proposal, cut)) for state, proposal, cut in rows]

    def mean_ratio(self, state: Writing, proposal: Writing, cut: int) -> float:
        """Return the log ratio of a move by a given cut."""
        return self.log_r0(state, proposal) + self._mean(state, cut) - self._mean(proposal, cut)

    def _mean(self, writing: Writing, cut: int) -> float:
        return self._space.model.score_suffix(writing.prompt, writing.tokens, cut) / (len(writing.tokens) - cut)


def random_language(seed: int) -> tuple[ThreeTokens, np.ndarray]:
    """Return a language whose laws are uniform on the simplex, and a standard normal reward of each text."""
    rng = np.random.default_rng(seed)
    law = {}
    for count in range(LONGEST):
        for letters in itertools.product((0, 1), repeat=count):
            shares = rng.dirichlet(np.ones(3))
            if not letters:
                # No text is empty.
                shares = np.array([*shares[:END], 0.0]) / shares[:END].sum()
            law[letters] = shares
    return ThreeTokens(law), rng.normal(size=30)
