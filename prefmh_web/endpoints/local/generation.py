"""Rows drawn to their end: plain sampling at a temperature, each row from its own generator.

    p(k) = exp(logit_k / temperature) / sum_j exp(logit_j / temperature)

in float64, and the token is the first k whose p(0) + .. + p(k) exceeds u = rng.random(). Nothing else has a say: the
sampler of `transformers`, its `generation_config` and its global random state are not called. One u for each token,
drawn only by rows that are under way, so that a generator gives the same tokens in any batch, but for rounding.

Rounding: logits of one row differ in their last bits from batch to batch, for the order of sums depends on shapes.
A Llama of 1.5 B weights and 128,256 tokens on an H100: a row's law in a batch is 1e-5 from its law alone in float32,
and .04 from the float32 law in bfloat16 (mean total variation for each token). To no more than that is p0 known.
Another token is drawn more often, since all sums up to it move too: in float32 for 1.4 % of tokens, in bfloat16 for
44 %; in float64 for none of 4,677.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from prefmh_web.endpoints.local.extra import needs
from prefmh_web.endpoints.local.network import Batch, Network
from sampler import Tokens

if TYPE_CHECKING:
    import torch
else:
    torch = needs("torch")

# Dropping rows copies the cache, and so does each step: it pays as soon as some rows are done, not for every one.
_LEAST_SHARE = 0.75
_NO_LAW = -1


@dataclass
class Row:
    """A sequence under way.

    Args:
        rng: where its random numbers come from.
        context: the prompt and the tokens that are kept.
        left: how many tokens may still be drawn, at least one.
    """

    rng: np.random.Generator
    context: Tokens
    left: int
    drawn: list[int] = field(default_factory=list)

    @property
    def most(self) -> int:
        """How long it may become, the prompt included."""
        return len(self.context) + self.left

    def add(self, token: int, ends: frozenset[int]) -> None:
        self.drawn.append(token)
        self.left = 0 if token in ends else self.left - 1


def draw(network: Network, rows: Sequence[Row], ends: frozenset[int], temperature: float) -> None:
    """Draw each row up to a token of `ends`, or until none is left, in one batch.

    Raises:
        ArithmeticError: the model gave logits that are no law (NaN).
    """
    batch = Batch(network, [row.context for row in rows], room=max(row.left for row in rows))
    live = list(rows)
    while True:
        # A row that is done, but not dropped yet, must not touch its generator.
        uniforms = [row.rng.random() if row.left else 0.0 for row in live]
        tokens = choose(batch.logits(), temperature, torch.tensor(uniforms, dtype=torch.float64))
        for row, token in zip(live, tokens.tolist(), strict=True):
            if row.left:
                if token == _NO_LAW:
                    raise ArithmeticError("the model gave logits that are not finite; nothing can be drawn from them")
                row.add(token, ends)
        going = [place for place, row in enumerate(live) if row.left]
        if not going:
            return
        if len(going) <= _LEAST_SHARE * len(live):
            batch.keep(going)
            live, tokens = [live[place] for place in going], tokens[torch.tensor(going, device=tokens.device)]
        batch.append(tokens.clamp(min=0))


def choose(logits: torch.Tensor, temperature: float, uniforms: torch.Tensor) -> torch.Tensor:
    """Return the tokens that these uniform numbers stand for, shape (rows,); -1 where there is no law.

    Args:
        logits: shape (rows, vocabulary).
        uniforms: float64 in [0, 1), shape (rows,).
    """
    below = torch.softmax(logits.double() / temperature, dim=-1).cumsum(dim=-1)
    total = below[:, -1:]
    # Sums may end a little beside 1. A place below the total falls on a token, and on none of probability 0.
    places = torch.minimum(uniforms.to(below.device)[:, None] * total, torch.nextafter(total, torch.zeros_like(total)))
    tokens = torch.searchsorted(below, places, right=True)
    return torch.where(torch.isfinite(total), tokens, _NO_LAW)[:, 0]


def parts(rows: Sequence[Row], max_rows: int, max_tokens: int) -> Iterator[list[Row]]:
    """Split rows into batches of at most `max_rows`, and of at most `max_tokens` cells of the cache, or of one row.

    Rows of like length go together, so that few cells are padding.
    """
    part: list[Row] = []
    context = left = 0
    for row in sorted(rows, key=lambda row: -row.most):
        longer = max(context, len(row.context)), max(left, row.left)
        if part and (len(part) == max_rows or (len(part) + 1) * sum(longer) > max_tokens):
            yield part
            part, longer = [], (len(row.context), row.left)
        part.append(row)
        context, left = longer
    if part:
        yield part
