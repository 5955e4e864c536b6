"""A language model that writes here: the `LanguageModel` of `sampler` over a model of `transformers`.

    p(k) = exp(logit_k / temperature) / sum_j exp(logit_j / temperature)

in float64, and the token is the first k whose p(0) + .. + p(k) exceeds u = rng.random(). Nothing else has a say: no
truncation, no penalty, and the sampler of `transformers`, its `generation_config` and its global random state are not
called, so that `score` and the suffix kernel speak of the same distribution. One u for each token and none for a row
that is done, so that a generator gives the same tokens in any batch, but for rounding. Tokens are ids and stay ids: a
prompt is tokenised once, and what follows it never is.

The numbers are looked at ahead, in a copy of the generator, so that a step needs nothing of the host: tokens are drawn
where the model is, and on a GPU they are read only after every 16. A row that has ended goes on till then in vain.

Rows of a batch are padded on the left and have a cache of keys and values:

    row 0     .  .  .  a  b  c | x  y  z
    row 1     a  b  c  d  e  f | x  y  z        . is padding: masked, and not counted in positions

They end at the same column, so that the next token of each comes from the last one. Padding must change nothing: no
row attends to it, and positions count from a row's first token. `check_padding` tries that.

Rounding: logits of one row differ in their last bits from batch to batch, for the order of sums depends on shapes.
A Llama of 1.5 B weights and 128,256 tokens on an H100: a row's distribution in a batch is 1e-5 from its distribution
alone in float32, and .04 from the float32 distribution in bfloat16 (mean total variation for each token). To no more
than that is p0 known. Another token is drawn more often, since all sums up to it move too: in float32 for 1.4 % of
tokens, in bfloat16 for 44 %; in float64 for none of 4,677.
"""

from __future__ import annotations

import copy
import inspect
import math
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from prefmh_web.endpoints.local import device_of, needs, reading
from prefmh_web.endpoints.replies import storable

if TYPE_CHECKING:
    import torch

    from sampler import Tokens
else:
    torch = needs("torch")

# Of one batch: rows at most, and rows times their longest length, the prompt included. The latter bounds the memory of
# the cache: layers × key-value heads × head size × 2 numbers for each token.
MAX_ROWS, MAX_TOKENS = 256, 131_072
# Dropping rows copies the cache: it pays as soon as some rows are done, not for every one.
_MIN_SHARE = 0.75
# Tokens of a row between two looks at them, by the kind of device. A GPU stands still while the host looks.
STEPS_A_READ = {"cpu": 1, "cuda": 16}
_NO_DISTRIBUTION = -1
# Total variation between a row's distribution alone and beside a longer row. Half precision has 2 or 3 digits.
_PADDING_TOLERANCE = {"float64": 1e-6, "float32": 1e-3}
_HALF_PRECISION_TOLERANCE = 0.1
# Some templates write today's date into the prompt. p0 would change at midnight, and a chain would change its target.
_FIXED_DATE = "{% macro strftime_now(format) %}01 Jan 2025{% endmacro %}"


class Weights:
    """A language model that is loaded. Any number of `TransformersModel` may share it.

    Args:
        model: an `AutoModelForCausalLM` where it shall run, or any module called like one.
        tokenizer: the one it was trained with.

    Raises:
        ValueError: no end-of-sequence token is known, or it is not in the vocabulary.
    """

    def __init__(self, model: torch.nn.Module, tokenizer: Any) -> None:
        self._model, self.tokenizer = model.eval(), tokenizer
        self._takes = frozenset(inspect.signature(model.forward).parameters)
        # Newer releases of `transformers` have the short name and warn of the other.
        self._cache_name = "cache" if "cache" in self._takes else "past_key_values"
        some = next(model.parameters())
        self.device, self.dtype = some.device, some.dtype
        config = model.config.get_text_config()
        self.vocabulary: int = config.vocab_size
        self.context: int | None = getattr(config, "max_position_embeddings", None)
        # All that is read of the model's `generation_config`.
        self.ends = _ends((tokenizer, config, getattr(model, "generation_config", None)), self.vocabulary)
        # One batch at a time, whatever asks: two would need the memory of two.
        self.lock = threading.Lock()

    def cache(self, columns: int) -> Any:
        """Return an empty cache that is written into in place; None where the model must make one of its own kind."""
        if getattr(self._model, "_can_compile_fullgraph", False):
            kinds = needs("transformers.cache_utils")
            made = kinds.StaticCache(config=self._model.config, max_cache_len=columns)
            # Others are read by rules of their own, such as a window.
            if all(type(layer) is kinds.StaticLayer for layer in made.layers):
                return made
        return None

    def forward(self, ids: torch.Tensor, mask: torch.Tensor, cache: Any, last: int) -> tuple[torch.Tensor, Any]:
        """Return the logits of the last few columns, shape (rows, last, vocabulary), and the cache after them.

        Args:
            ids: the columns that the cache does not hold yet, shape (rows, new).
            mask: 1 for tokens and 0 for padding, shape (rows, all columns so far). Where there is one new column, 0 for
                all that the cache has room for may follow.
            cache: what `cache` made, or what the call before returned; None at first.
        """
        more: dict[str, object] = {self._cache_name: cache}
        if "position_ids" in self._takes:
            # A row that has ended may go on beyond the context.
            most = None if self.context is None else self.context - 1
            more["position_ids"] = (mask.cumsum(-1) - 1).clamp(0, most)[:, -ids.shape[1] :]
        if "logits_to_keep" in self._takes:
            # Of a long prompt all logits at once would take more memory than the weights.
            more["logits_to_keep"] = last
        found = self._model(input_ids=ids, attention_mask=mask, use_cache=True, **more)
        return found.logits[:, -last:], getattr(found, self._cache_name)


@cache
def load_weights(folder: Path, device: str | None = None) -> Weights:
    """Return the model in a folder, loaded once: bfloat16 on a GPU, float32 on the CPU.

    Args:
        folder: as `save_pretrained` writes it: config.json, *.safetensors, the tokeniser.
        device: of PyTorch; CUDA if there is any, else the CPU.

    Raises:
        ImportError: the extra is missing.
        FileNotFoundError: the folder, or safetensors in it, are missing.
        ValueError: files are missing or damaged; the model has no end-of-sequence token, minds padding, or needs code
            of its own; or the device is not there.
    """
    transformers, place = needs("transformers"), device_of(device)
    if place.type == "cuda":
        # cuDNN makes a plan for each length of the cache, which is for each token: 20 tokens a second in place of 96,
        # and with 256 rows 4,700 in place of 19,900 (1.5 B weights in bfloat16, torch 2.11, one H100).
        torch.backends.cuda.enable_cudnn_sdp(False)
    strict = {"local_files_only": True, "trust_remote_code": False}
    with reading("LOCAL_MODELS", folder, [""]) as variant:
        model = transformers.AutoModelForCausalLM.from_pretrained(
            folder,
            dtype=torch.float32 if place.type == "cpu" else torch.bfloat16,
            use_safetensors=True,
            variant=variant,
            **strict,
        )
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, **strict)
    weights = Weights(model.to(place).requires_grad_(False), tokenizer)
    check_padding(weights)
    return weights


class TransformersModel:
    """A language model that runs in this process and writes many chains' texts in one batch.

    Args:
        weights: the model and its tokeniser.
        limit: T, the most tokens of one text.
        temperature: part of p0; 1 is the model's own distribution.
        system: the system message that stands before every prompt; none if empty.
        prompts: those it may be asked with; any if empty.

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
    ) -> None:
        if limit < 1:
            raise ValueError(f"limit must be at least 1, not {limit}")
        if not (math.isfinite(temperature) and temperature > 0):
            raise ValueError(f"temperature must be a positive number, not {temperature}")
        self._weights, self._temperature, self._system = weights, temperature, system
        self.limit, self.prompts, self.ends = limit, tuple(prompts), weights.ends
        self._ids: dict[str, Tokens] = {}
        for prompt in self.prompts:
            self._prompt(prompt)

    def continue_batch(
        self, rngs: Sequence[np.random.Generator], prompts: Sequence[str], prefixes: Sequence[Tokens]
    ) -> list[Tokens]:
        """Return one whole sequence for each row, beginning with the row's prefix, the rest drawn from p0 given both.

        Raises:
            ValueError: the lengths differ, a generator is there twice, a prompt is unknown or too long, or a prefix is
                not the beginning of any text.
            ArithmeticError: the model gave logits that are not finite; none is returned then.
        """
        if not len(rngs) == len(prompts) == len(prefixes):
            raise ValueError(
                f"{len(rngs)} generators, {len(prompts)} prompts and {len(prefixes)} prefixes do not match"
            )
        if len({id(rng) for rng in rngs}) < len(rngs):
            raise ValueError("rngs must be a generator for each row; there are fewer")
        rows = [self._row(*given) for given in zip(rngs, prompts, prefixes, strict=True)]
        with self._weights.lock, torch.inference_mode():
            for batch in _batches(rows):
                _draw(self._weights, batch, self._temperature)
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
        with self._weights.lock, torch.inference_mode():
            ids = ids.to(self._weights.device)
            logits, _ = self._weights.forward(ids, torch.ones_like(ids), None, last=len(tokens))
            log_p = torch.log_softmax(logits[0].double() / self._temperature, dim=-1).cpu()
        return math.fsum(float(log_p[index, token]) for index, token in enumerate(tokens))

    def _row(self, rng: np.random.Generator, prompt: str, prefix: Tokens) -> _Row:
        if len(prefix) >= self.limit:
            raise ValueError(f"a prefix must have fewer than {self.limit} tokens, not {len(prefix)}")
        self._check_under_way(prefix)
        return _Row(rng, (*self._prompt(prompt), *prefix), self.limit - len(prefix))

    def _prompt(self, prompt: str) -> Tokens:
        """Return the prompt's tokens, always the same ones."""
        if prompt not in self._ids:
            if self.prompts and prompt not in self.prompts:
                raise ValueError(f"prompts must be among the model's own; it does not know {prompt!r}")
            ids = _prompt_ids(self._weights.tokenizer, self._system, prompt)
            context = self._weights.context
            if context is not None and len(ids) + self.limit > context:
                raise ValueError(
                    f"prompt and text must fit into the model's context of {context} tokens; the prompt has {len(ids)} "
                    f"and limit is {self.limit}: shorten the prompt, or lower limit"
                )
            self._ids[prompt] = ids
        return self._ids[prompt]

    def _check_whole(self, tokens: Tokens) -> None:
        if not 1 <= len(tokens) <= self.limit:
            raise ValueError(f"tokens must be 1 to {self.limit}, not {len(tokens)}")
        if len(tokens) < self.limit and tokens[-1] not in self.ends:
            raise ValueError(
                f"tokens must end with an end-of-sequence token, or be {self.limit}; there are {len(tokens)}"
            )
        self._check_under_way(tokens[:-1], last=tokens[-1])

    def _check_under_way(self, tokens: Tokens, last: int = 0) -> None:
        """Raise ValueError unless these are the model's tokens, and nothing follows an end-of-sequence token."""
        most = self._weights.vocabulary
        if unknown := [token for token in (*tokens, last) if not 0 <= token < most]:
            raise ValueError(f"tokens must be 0 to {most - 1}; there is {unknown[0]}")
        if not self.ends.isdisjoint(tokens):
            raise ValueError("tokens must end with the first end-of-sequence token; more follow it")


@dataclass
class _Row:
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

    def numbers(self, count: int) -> list[float]:
        """Return the random numbers of tokens that may follow; the generator stays where it is."""
        ahead = copy.deepcopy(self.rng)
        return [ahead.random() for _ in range(count)]

    def take(self, tokens: Sequence[int], ends: frozenset[int]) -> None:
        """Append tokens up to the text's end, each with its random number; those behind it are nobody's.

        Raises:
            ArithmeticError: one of them was drawn from no distribution.
        """
        for token in tokens[: self.left]:
            if token == _NO_DISTRIBUTION:
                raise ArithmeticError("the model gave logits that are not finite; nothing can be drawn from them")
            self.rng.random()
            self.drawn.append(token)
            self.left -= 1
            if token in ends:
                self.left = 0
                return


def _batches(rows: Sequence[_Row]) -> Iterator[list[_Row]]:
    """Split rows into batches of at most `MAX_ROWS`, and of at most `MAX_TOKENS` cells of the cache, or of one row.

    Rows of like length go together, so that few cells are padding.
    """
    batch: list[_Row] = []
    for row in sorted(rows, key=lambda row: -len(row.context) - row.left):
        longer = [*batch, row]
        cells = len(longer) * (max(len(each.context) for each in longer) + max(each.left for each in longer))
        if batch and (len(batch) == MAX_ROWS or cells > MAX_TOKENS):
            yield batch
            longer = [row]
        batch = longer
    if batch:
        yield batch


def _draw(weights: Weights, rows: Sequence[_Row], temperature: float) -> None:
    """Draw each row to its end, in one batch.

    Raises:
        ArithmeticError: the model gave logits that are no distribution (NaN).
    """
    room = max(row.left for row in rows)
    numbers = torch.tensor([row.numbers(room) for row in rows], dtype=torch.float64)
    batch = _Batch(weights, [row.context for row in rows], numbers)
    live, at_once = list(rows), STEPS_A_READ.get(weights.device.type, 1)
    while True:
        drawn = batch.draw(min(at_once, max(row.left for row in live)), temperature)
        for row, tokens in zip(live, drawn, strict=True):
            row.take(tokens, weights.ends)
        going = [index for index, row in enumerate(live) if row.left]
        if not going:
            return
        if len(going) <= _MIN_SHARE * len(live):
            batch.keep(going)
            live = [live[index] for index in going]


def choose(logits: torch.Tensor, temperature: float, uniforms: torch.Tensor) -> torch.Tensor:
    """Return the tokens that these uniform numbers stand for, shape (rows,); -1 where there is no distribution.

    Args:
        logits: shape (rows, vocabulary).
        uniforms: float64 in [0, 1), shape (rows,).
    """
    most = logits.amax(-1, keepdim=True).double()
    # The one array in float64 that has a number for each token: (logit - most) / temperature, and what becomes of it.
    below = (-most / temperature).add(logits, alpha=1 / temperature).exp_().cumsum_(-1)
    total = below[:, -1:]
    # A point below the total falls on a token, and on none of probability 0.
    points = torch.minimum(uniforms.to(below.device)[:, None] * total, torch.nextafter(total, torch.zeros_like(total)))
    tokens = torch.searchsorted(below, points, right=True)
    return torch.where(torch.isfinite(total), tokens, _NO_DISTRIBUTION)[:, 0]


class _Batch:
    """Rows that grow by a token at a time. What changes with a step does so on the device, at the place where it is.

    Args:
        weights: what gives their logits.
        contexts: the tokens of each row so far, at least one.
        numbers: what tokens are drawn by, float64, shape (rows, n); at most n are appended.
    """

    def __init__(self, weights: Weights, contexts: Sequence[Tokens], numbers: torch.Tensor) -> None:
        self._weights = weights
        self._first = self._width = max(len(context) for context in contexts)
        pads = [self._width - len(context) for context in contexts]
        # Any id will do for padding, since nothing attends to it.
        ids = [[0] * pad + list(context) for pad, context in zip(pads, contexts, strict=True)]
        mask = torch.zeros((len(contexts), self._width + numbers.shape[1]), dtype=torch.long)
        for row, pad in enumerate(pads):
            mask[row, pad : self._width] = 1
        self._new, self._mask, self._numbers = (each.to(weights.device) for each in (torch.tensor(ids), mask, numbers))
        self._drawn = torch.zeros_like(self._mask[:, self._width :])
        self._index = torch.zeros(1, dtype=torch.long, device=weights.device)
        # Without one of ours a `Cache` of `transformers`, or what a model of another library has; None at first.
        self._cache: Any = weights.cache(mask.shape[1])
        self._layers = [] if self._cache is None else self._cache.layers

    def draw(self, steps: int, temperature: float) -> list[list[int]]:
        """Draw so many tokens for each row, and return them once all are drawn; -1 where there is no distribution."""
        for _ in range(steps):
            self._draw_one(temperature)
        end = self._width - self._first
        tokens: list[list[int]] = self._drawn[:, end - steps : end].tolist()
        return tokens

    def _draw_one(self, temperature: float) -> None:
        tokens = choose(self.logits(), temperature, self._numbers.index_select(1, self._index)[:, 0])
        self._drawn.index_copy_(1, self._index, tokens[:, None])
        self.append(tokens.clamp(min=0))

    def logits(self) -> torch.Tensor:
        """Return the logits of each row's next token, shape (rows, vocabulary). Once for each column."""
        is_ours = self._layers and self._width > self._first
        seen = self._mask if is_ours else self._mask[:, : self._width]
        logits, self._cache = self._weights.forward(self._new, seen, self._cache, last=1)
        return logits[:, -1]

    def append(self, tokens: torch.Tensor) -> None:
        """Append one token to each row, after `logits`; shape (rows,)."""
        self._new = self._new[:, -1:]
        self._new.copy_(tokens[:, None])
        self._mask.index_fill_(1, self._first + self._index, 1)
        self._index += 1
        self._width += 1

    def keep(self, rows: Sequence[int]) -> None:
        """Go on with these rows only, in this order; after `logits`."""
        chosen = torch.tensor(rows, device=self._mask.device)
        for name in ("_new", "_mask", "_numbers", "_drawn"):
            setattr(self, name, getattr(self, name)[chosen])
        for layer in self._layers:
            layer.keys, layer.values = layer.keys[chosen], layer.values[chosen]
        if not self._layers:
            self._cache.batch_select_indices(chosen)


def check_padding(weights: Weights) -> None:
    """Compare a row's distribution alone with its distribution beside a longer row, before and after one more token.

    Raises:
        ValueError: they differ by more than rounding: this model minds padding, or its cache cannot drop rows, and a
            batch of it would draw from another distribution than p0.
    """
    longest = min(16, (weights.context or 16) - 1)
    long = tuple(token % weights.vocabulary for token in range(longest))
    short = long[-max(1, longest // 4) :]
    with torch.inference_mode():
        alone, beside = _Batch(weights, [short], torch.zeros(1, 1)), _Batch(weights, [long, short], torch.zeros(2, 1))
        first = _distance(alone.logits()[0], beside.logits()[1])
        beside.keep([1])
        for batch in (alone, beside):
            batch.append(torch.tensor([long[0]], device=weights.device))
        second = _distance(alone.logits()[0], beside.logits()[0])
    tolerance = _PADDING_TOLERANCE.get(str(weights.dtype).removeprefix("torch."), _HALF_PRECISION_TOLERANCE)
    if not max(first, second) <= tolerance:
        raise ValueError(
            f"this model minds padding: a row's distribution changes by {max(first, second):.2g} (total variation) "
            f"beside a longer row, and may by {tolerance}; it cannot be used in batches"
        )


def _distance(one: torch.Tensor, other: torch.Tensor) -> float:
    return 0.5 * float((one.double().softmax(-1) - other.double().softmax(-1)).abs().sum())


def _ends(sources: Sequence[Any], vocabulary: int) -> frozenset[int]:
    """Return the tokens that end a text: a chat model often has two, the end of its turn and that of the document."""
    named = [getattr(source, "eos_token_id", None) for source in sources]
    lists = [each if isinstance(each, list | tuple) else [each] for each in named]
    ends = {end for each in lists for end in each if end is not None}
    if not ends:
        raise ValueError("the model must have an end-of-sequence token; its tokeniser and its config name none")
    if beyond := [end for end in ends if not 0 <= end < vocabulary]:
        raise ValueError(f"the end-of-sequence token {beyond[0]} is not among the model's {vocabulary} tokens")
    return frozenset(ends)


def _prompt_ids(tokenizer: Any, system: str, prompt: str) -> Tokens:
    """Return the tokens that stand before the model's answer, through the model's chat template if it has one.

    Raises:
        ValueError: nothing is left of the prompt, so there is no token for the model to start from; or a part of a
            chat holds a special token, which the model would not read as a part of it.
    """
    if getattr(tokenizer, "chat_template", None):
        _check_plain(tokenizer, prompt=prompt, system=system)
        messages = [{"role": "system", "content": system}] if system else []
        messages.append({"role": "user", "content": prompt})
        template = tokenizer.get_chat_template()
        if "strftime_now" in template:
            template = _FIXED_DATE + template
        ids = tokenizer.apply_chat_template(
            messages, chat_template=template, add_generation_prompt=True, tokenize=True, return_dict=False
        )
    else:
        ids = tokenizer(f"{system}\n\n{prompt}" if system else prompt)["input_ids"]
    if not ids:
        raise ValueError(f"prompt must give at least one token; {prompt!r} gives none")
    return tuple(int(token) for token in ids)


def _check_plain(tokenizer: Any, **parts: str) -> None:
    """Raise ValueError where a part of a chat holds a token that ends a turn, or has another meaning of its own.

    The template is applied before the chat is made into tokens, so such a token would work as if the template had
    written it.
    """
    special = [token.content for token in tokenizer.added_tokens_decoder.values() if token.special]
    for name, text in parts.items():
        if held := [token for token in special if token in text]:
            raise ValueError(
                f"{name} must not hold {held[0]!r}: the model does not read it as words. Take it out, or put a space "
                "into it"
            )
