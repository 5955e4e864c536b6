"""The one interface of whatever writes texts: a grammar, a model on a GPU, a server.

A text is a sequence of tokens, 1 to `limit` of them, with the model's end-of-sequence token as the last one or else
exactly `limit` tokens long. So no whole sequence is the beginning of another one, which the suffix kernel relies on.
(A grammar needs no end-of-sequence token: its sequence ends where its derivation does, which comes to the same.)
Nothing ever turns a text back into tokens: tokenisers do not give the same tokens again.

p0(x) = prod_t p(x_t | prompt, x_1 .. x_{t-1}), temperature and any truncation included: the temperature belongs to the
model, is given when it is made, and must be the same for every call, or the chain targets something else than p0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np

Tokens = tuple[int, ...]


class CannotScoreError(NotImplementedError):
    """This model cannot tell the probability of a sequence; no kernel here needs it."""


class LanguageModel(Protocol):
    """p0 over token sequences, given a prompt."""

    @property
    def limit(self) -> int:
        """T, the most tokens of one text; the same for every prompt."""
        ...

    @property
    def prompts(self) -> tuple[str, ...]:
        """The prompts it can be asked with; empty if it takes any."""
        ...

    def continue_batch(
        self, rngs: Sequence[np.random.Generator], prompts: Sequence[str], prefixes: Sequence[Tokens]
    ) -> list[Tokens]:
        """Return one whole sequence for each row, beginning with the row's prefix, the rest drawn from p0 given both.

        Each row draws from its own generator and from nothing else, so that a row comes out the same in any batch.

        Args:
            rngs, prompts, prefixes: of one length. A prefix has fewer tokens than its sequence; () is a fresh draw.

        Raises:
            ValueError: the lengths differ, a prompt is unknown, or a prefix is not the beginning of any text.
        """
        ...

    def text(self, prompt: str, tokens: Tokens) -> str:
        """Return what the tokens say.

        Raises:
            ValueError: they are no whole sequence of this model.
        """
        ...

    def score(self, prompt: str, tokens: Tokens) -> float:
        """Return log p0 of a whole sequence, in nats.

        Raises:
            ValueError: the tokens are no whole sequence of this model.
            CannotScoreError: the model cannot tell.
        """
        ...


@runtime_checkable
class SaysMany(Protocol):
    """A language model for which what many sequences say costs less than one after another: a server, say."""

    def texts(self, prompts: Sequence[str], sequences: Sequence[Tokens]) -> list[str]:
        """Return what `LanguageModel.text` gives for each row.

        Raises:
            ValueError: the lengths differ, or as `LanguageModel.text` does.
        """
        ...


def texts_of(model: LanguageModel, prompts: Sequence[str], sequences: Sequence[Tokens]) -> list[str]:
    """Return what some sequences say, all at once if the model can.

    Raises:
        ValueError: the lengths differ, or a sequence is no whole one of this model.
    """
    if isinstance(model, SaysMany):
        return model.texts(prompts, sequences)
    return [model.text(prompt, tokens) for prompt, tokens in zip(prompts, sequences, strict=True)]
