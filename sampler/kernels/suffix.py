"""Suffix moves: keep the first tokens of a text, let the language model write the rest again. log r0 is exact.

x has n tokens, x' has n', and they share exactly their first k. Both are whole sequences, none the beginning of the
other (`sampler.spaces.texts`), so for x' ≠ x we have k < min(n, n'), and a cut after i tokens can lead from x to x' if
and only if i <= k: and just so from x' to x. Given such a cut, x' comes about with probability p0(x') / p0(x_1 .. x_i),
where p0 of a beginning is the probability that a text begins so. The beginnings up to k are the same for both.

cut "limit": i uniform on 0 .. T-1, T the most tokens of any text, the same for all; with i >= n the proposal is x.

    p0(x) q(x'|x) = (1/T) sum_{i <= k} p0(x) p0(x') / p0(x_1 .. x_i)

is symmetric in x and x'. Hence log r0 = 0.

cut "length": i uniform on 0 .. n-1, as in QUEST (Faria et al. 2024).

    p0(x) q(x'|x) = (1/n) sum_{i <= k} p0(x) p0(x') / p0(x_1 .. x_i)

is symmetric but for 1/n. Hence log r0 = log n - log n', which leans towards short texts to make up for q, which
changes them more readily.

Both hold for each cut taken alone too, and neither needs p0 of any text: a model that cannot score will do.

Several moves in one. With cuts over the limit, L moves have the distribution of one move at the least of the L cuts:
what is written after an earlier cut is written again from the least one, and each later cut leaves p0 of the rest
unchanged. (A least cut past the end leaves the text as it is.) A fresh draw is cut 0. With fresh draws of weight g,

    P(least cut >= c) = ((1 - g) (T - c) / T)^L    for c = 1 .. T-1.

With cuts over the text's own length this is not so: a cut is then drawn by the length that the move before it left.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from sampler.chain import Proposal
from sampler.declared import Declared, ui
from sampler.kernels.discrete import IndependentConfig
from sampler.spaces.texts import Writing, WrittenTexts

CutDistribution = Literal["limit", "length"]
CUTS = {
    "limit": "a position up to the maximum length",
    "length": "a position in the text (as in QUEST; the Hastings ratio corrects for the length)",
}


class SuffixConfig(Declared):
    """The part of a config that says: write the end of the text again, from a cut drawn by this distribution."""

    model_config = ConfigDict(title="The end of the text is written again")

    moves_in: ClassVar[tuple[str, ...]] = ("texts", "model-texts")
    """The kinds of space."""
    kind: Literal["suffix"] = "suffix"
    cut: CutDistribution = Field(
        default="limit", title="The end is written again from", json_schema_extra=ui(labels=CUTS)
    )

    def build(self, space: WrittenTexts) -> Suffix:
        """Return the kernel on this space."""
        return Suffix(space, self.cut)


class Suffix:
    """Propose the same beginning with another end.

    Args:
        space: the texts and what writes them.
        cut: "limit", the cut uniform on 0 .. T-1, or "length", uniform on 0 .. n-1.

    Raises:
        ValueError: `cut` is neither.
    """

    def __init__(self, space: WrittenTexts, cut: CutDistribution = "limit") -> None:
        if cut not in ("limit", "length"):
            raise ValueError(f"cut must be 'limit' or 'length', not {cut!r}")
        self._space, self._cut = space, cut

    def propose(self, rng: np.random.Generator, state: Writing) -> Proposal[Writing]:
        """Draw x' ~ q(.|state). It may be `state` itself."""
        return self.propose_batch([rng], [state])[0]

    def propose_batch(self, rngs: Sequence[np.random.Generator], states: Sequence[Writing]) -> list[Proposal[Writing]]:
        """Return what `propose` gives for each row, by one call of the language model for all of them.

        Raises:
            ValueError: there is not one generator for each state.
        """
        cuts = [self.cut(rng, state) for rng, state in zip(rngs, states, strict=True)]
        moving = [row for row, state in enumerate(states) if cuts[row] < len(state.tokens)]
        proposals = [Proposal(state, 0.0) for state in states]
        if not moving:
            return proposals
        written = self._space.write([rngs[row] for row in moving], [states[row].beginning(cuts[row]) for row in moving])
        for row, writing in zip(moving, written, strict=True):
            proposals[row] = Proposal(writing, self.log_r0(states[row], writing))
        return proposals

    def cut(self, rng: np.random.Generator, state: Writing) -> int:
        """Draw how many of the first tokens stay, before anything is written; more than there are: the text stays."""
        most = self._space.model.limit if self._cut == "limit" else len(state.tokens)
        # A draw just below 1 may make the product round up to `most`.
        return min(int(rng.random() * most), most - 1)

    def log_r0(self, state: Writing, proposal: Writing) -> float:
        """Return the log base ratio of a move from one text to another."""
        return 0.0 if self._cut == "limit" else math.log(len(state.tokens)) - math.log(len(proposal.tokens))


class LeastCut(Suffix):
    """Propose by L suffix moves with cuts over the limit, each a fresh draw with probability g: one write.

    Args:
        space: the texts and what writes them.
        length: L, at least 1.
        fresh: g, 0 to 1.
    """

    def __init__(self, space: WrittenTexts, length: int, fresh: float = 0.0) -> None:
        super().__init__(space, "limit")
        self._length, self._fresh = length, fresh

    def cut(self, rng: np.random.Generator, state: Writing) -> int:
        """Draw the least of the L cuts."""
        # The least of L uniform numbers, by inversion from one. Each of them below g stands for a fresh draw.
        least = 1 - (1 - rng.random()) ** (1 / self._length)
        if least < self._fresh:
            return 0
        most = self._space.model.limit
        return min(int((least - self._fresh) / (1 - self._fresh) * most), most - 1)


def least_cut(space: Any, parts: Sequence[tuple[float, BaseModel]], length: int) -> LeastCut | None:
    """Return L moves of a mixture as one; None unless each part is a suffix move over the limit, or a fresh draw.

    Args:
        space: the texts and what writes them.
        parts: the mixture's weights and configs.
        length: L.
    """
    fresh = math.fsum(weight for weight, part in parts if isinstance(part, IndependentConfig))
    if fresh < 1 and all(
        isinstance(part, IndependentConfig) or getattr(part, "cut", None) == "limit" for _, part in parts
    ):
        return LeastCut(space, length, fresh)
    return None
