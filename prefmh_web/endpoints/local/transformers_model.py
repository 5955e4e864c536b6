"""p0 over token sequences, written here: the `LanguageModel` of `sampler` over a model of `transformers`.

Tokens are ids and stay ids. A prompt is tokenised once; what follows it never is. p0 is the softmax of the logits over
the temperature, with no truncation and no penalty, so `score` and the suffix kernel speak of the same law.
"""

import math
from collections.abc import Sequence

import numpy as np

from prefmh_web.endpoints.local.chat import prompt_ids
from prefmh_web.endpoints.local.extra import needs
from prefmh_web.endpoints.local.generation import Row, draw, parts
from prefmh_web.endpoints.local.weights import Weights
from prefmh_web.endpoints.replies import storable
from sampler import Tokens

torch = needs("torch")

# Of one batch: rows at most, and rows times their longest length, which bounds the cache.
MAX_ROWS, MAX_TOKENS = 256, 131_072


class TransformersModel:
    """A language model that runs in this process and writes many chains' texts in one batch.

    Args:
        weights: the model and its tokeniser.
        limit: T, the most tokens of one text.
        temperature: part of p0; 1 is the model's own law.
        system: the system message that stands before every prompt; none if empty.
        prompts: those it may be asked with; any if empty.
        max_rows: rows of one batch at most.
        max_tokens: rows of one batch times their longest length at most, the prompt included. This bounds the memory
            of the cache: layers × key-value heads × head size × 2 numbers for each token.

    Raises:
        ValueError: one of these is out of range, or a prompt and a text do not fit into the model's context.
    """

    def __init__(
        self,
        weights: Weights,
        *,
        limit: int,
        temperature: float = 1.0,
        system: str = "",
        prompts: Sequence[str] = (),
        max_rows: int = MAX_ROWS,
        max_tokens: int = MAX_TOKENS,
    ) -> None:
        for name, number in (("limit", limit), ("max_rows", max_rows), ("max_tokens", max_tokens)):
            if number < 1:
                raise ValueError(f"{name} must be at least 1, not {number}")
        if not (math.isfinite(temperature) and temperature > 0):
            raise ValueError(f"temperature must be a positive number, not {temperature}")
        self._weights, self._limit, self._temperature = weights, limit, temperature
        self._system, self._prompts = system, tuple(prompts)
        self._max_rows, self._max_tokens = max_rows, max_tokens
        self._ids: dict[str, Tokens] = {}
        for prompt in self._prompts:
            self._prompt(prompt)

    @property
    def limit(self) -> int:
        """T, the most tokens of one text."""
        return self._limit

    @property
    def prompts(self) -> tuple[str, ...]:
        """The prompts it can be asked with; empty if it takes any."""
        return self._prompts

    @property
    def ends(self) -> frozenset[int]:
        """The end-of-sequence tokens: a text ends with the first of them."""
        return self._weights.ends

    def continue_batch(
        self, rngs: Sequence[np.random.Generator], prompts: Sequence[str], prefixes: Sequence[Tokens]
    ) -> list[Tokens]:
        """Return one whole sequence for each row, beginning with the row's prefix, the rest drawn from p0 given both.

        Raises:
            ValueError: the lengths differ, a prompt is unknown or too long, or a prefix is not the beginning of any
                text.
            ArithmeticError: the model gave logits that are not finite; none is returned then.
        """
        if not len(rngs) == len(prompts) == len(prefixes):
            raise ValueError(
                f"{len(rngs)} generators, {len(prompts)} prompts and {len(prefixes)} prefixes do not match"
            )
        rows = [self._row(*given) for given in zip(rngs, prompts, prefixes, strict=True)]
        with self._weights.lock, torch.inference_mode():
            for part in parts(rows, self._max_rows, self._max_tokens):
                draw(self._weights.network, part, self._weights.ends, self._temperature)
        return [(*prefix, *row.drawn) for prefix, row in zip(prefixes, rows, strict=True)]

    def text(self, prompt: str, tokens: Tokens) -> str:
        """Return what the tokens say, as it can be stored; special tokens, such as the end of a sequence, say nothing.

        Raises:
            ValueError: they are no whole sequence of this model.
        """
        self._check_whole(tokens)
        said = tokens[:-1] if tokens[-1] in self.ends else tokens
        words = self._weights.tokenizer
        return storable(words.decode(list(said), skip_special_tokens=True, clean_up_tokenization_spaces=False))

    def score(self, prompt: str, tokens: Tokens) -> float:
        """Return log p0 of a whole sequence, in nats, by one pass over it.

        Raises:
            ValueError: they are no whole sequence of this model, or the prompt is unknown or too long.
        """
        self._check_whole(tokens)
        ids = torch.tensor([[*self._prompt(prompt), *tokens[:-1]]])
        network = self._weights.network
        with self._weights.lock, torch.inference_mode():
            ids = ids.to(network.device)
            logits, _ = network.forward(ids, torch.ones_like(ids), None, last=len(tokens))
            log_p = torch.log_softmax(logits[0].double() / self._temperature, dim=-1).cpu()
        return math.fsum(float(log_p[place, token]) for place, token in enumerate(tokens))

    def _row(self, rng: np.random.Generator, prompt: str, prefix: Tokens) -> Row:
        if len(prefix) >= self._limit:
            raise ValueError(f"a prefix must have fewer than {self._limit} tokens, not {len(prefix)}")
        self._check_known(prefix)
        if any(token in self.ends for token in prefix):
            raise ValueError("a prefix must not hold an end-of-sequence token: nothing follows it")
        return Row(rng, (*self._prompt(prompt), *prefix), self._limit - len(prefix))

    def _prompt(self, prompt: str) -> Tokens:
        """Return the prompt's tokens, always the same ones."""
        if prompt not in self._ids:
            if self._prompts and prompt not in self._prompts:
                raise ValueError(f"prompts must be among the model's own; it does not know {prompt!r}")
            ids = prompt_ids(self._weights.tokenizer, self._system, prompt)
            context = self._weights.network.context
            if context is not None and len(ids) + self._limit > context:
                raise ValueError(
                    f"prompt and text must fit into the model's context of {context} tokens; the prompt has {len(ids)} "
                    f"and limit is {self._limit}: shorten the prompt, or lower limit"
                )
            self._ids[prompt] = ids
        return self._ids[prompt]

    def _check_whole(self, tokens: Tokens) -> None:
        if not 1 <= len(tokens) <= self._limit:
            raise ValueError(f"tokens must be 1 to {self._limit}, not {len(tokens)}")
        self._check_known(tokens)
        if any(token in self.ends for token in tokens[:-1]):
            raise ValueError("tokens must end with the first end-of-sequence token; more follow it")
        if len(tokens) < self._limit and tokens[-1] not in self.ends:
            raise ValueError(
                f"tokens must end with an end-of-sequence token, or be {self._limit}; there are {len(tokens)}"
            )

    def _check_known(self, tokens: Tokens) -> None:
        most = self._weights.network.vocabulary
        if unknown := [token for token in tokens if not 0 <= token < most]:
            raise ValueError(f"tokens must be 0 to {most - 1}; there is {unknown[0]}")
