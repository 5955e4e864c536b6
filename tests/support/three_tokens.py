"""A random language of three tokens, one of which ends a text: small enough to list, as checks of translations need.

Texts have at most four tokens and are never empty, so there are 30. With each are given its probability and a reward.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sampler.spaces.texts.language_model import Tokens

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
