"""Logits of a batch of rows of unequal length: left-padded, with a cache of keys and values.

    row 0     .  .  .  a  b  c | x  y  z
    row 1     a  b  c  d  e  f | x  y  z        . is padding: masked, and not counted in positions

Rows end at the same column, so that the next token of each comes from the last one. Padding must change nothing: no
row attends to it, and positions count from a row's first token. `check_padding` tries that.
"""

import inspect
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from prefmh_web.endpoints.local.extra import needs
from sampler import Tokens

if TYPE_CHECKING:
    import torch
else:
    torch = needs("torch")

# Total variation between a row's law alone and beside a longer row. Half precision rounds logits to 2 or 3 digits.
_PADDING_TOLERANCE = {"float64": 1e-6, "float32": 1e-3}
_HALF_PRECISION_TOLERANCE = 0.1


class Network:
    """A causal language model of `transformers`, as the few things that drawing from it needs.

    Args:
        model: an `AutoModelForCausalLM`, or any module called like one, where it shall run.
    """

    def __init__(self, model: torch.nn.Module) -> None:
        self.model = model.eval()
        self._takes = frozenset(inspect.signature(model.forward).parameters)
        config = model.config.get_text_config()
        self.vocabulary: int = config.vocab_size
        self.context: int | None = getattr(config, "max_position_embeddings", None)

    @property
    def device(self) -> torch.device:
        return next(self.model.parameters()).device

    @property
    def dtype(self) -> torch.dtype:
        return next(self.model.parameters()).dtype

    def forward(self, ids: torch.Tensor, mask: torch.Tensor, cache: Any, last: int) -> tuple[torch.Tensor, Any]:
        """Return the logits of the last few columns, shape (rows, last, vocabulary), and the cache after them.

        Args:
            ids: the columns that the cache does not hold yet, shape (rows, new).
            mask: 1 for tokens and 0 for padding, shape (rows, all columns so far).
            cache: what the call before returned; None at first.
        """
        more: dict[str, object] = {}
        if "position_ids" in self._takes:
            more["position_ids"] = (mask.cumsum(-1) - 1).clamp(min=0)[:, -ids.shape[1] :]
        if "logits_to_keep" in self._takes:
            # Of a long prompt all logits at once would take more memory than the weights.
            more["logits_to_keep"] = last
        found = self.model(input_ids=ids, attention_mask=mask, past_key_values=cache, use_cache=True, **more)
        return found.logits[:, -last:], found.past_key_values


class Batch:
    """Rows that grow by a token at a time.

    Args:
        network: what gives their logits.
        contexts: the tokens of each row so far, at least one.
        room: how many tokens will be appended at most.
    """

    def __init__(self, network: Network, contexts: Sequence[Tokens], room: int) -> None:
        self._network = network
        # A `Cache` of `transformers`, or what a model of another library has; None at first.
        self._cache: Any = None
        self._width = max(len(context) for context in contexts)
        pads = [self._width - len(context) for context in contexts]
        # Any id will do for padding, since nothing attends to it.
        ids = [[0] * pad + list(context) for pad, context in zip(pads, contexts, strict=True)]
        mask = torch.ones((len(contexts), self._width + room), dtype=torch.long)
        for row, pad in enumerate(pads):
            mask[row, :pad] = 0
        self._new, self._mask = torch.tensor(ids).to(network.device), mask.to(network.device)

    def logits(self) -> torch.Tensor:
        """Return the logits of each row's next token, shape (rows, vocabulary). Once for each column."""
        seen = self._mask[:, : self._width]
        logits, self._cache = self._network.forward(self._new, seen, self._cache, last=1)
        return logits[:, -1]

    def append(self, tokens: torch.Tensor) -> None:
        """Append one token to each row, after `logits`; shape (rows,)."""
        self._new = tokens[:, None]
        self._width += 1

    def keep(self, rows: Sequence[int]) -> None:
        """Go on with these rows only, in this order; after `logits` and before `append`."""
        chosen = torch.tensor(rows, device=self._mask.device)
        self._mask = self._mask[chosen]
        self._cache.batch_select_indices(chosen)


def check_padding(network: Network) -> None:
    """Compare a row's law alone with its law beside a longer row, before and after one more token.

    Raises:
        ValueError: they differ by more than rounding: this model minds padding, or its cache cannot drop rows, and a
            batch of it would draw from another law than p0.
    """
    longest = min(16, (network.context or 16) - 1)
    long = tuple(token % network.vocabulary for token in range(longest))
    short = long[-max(1, longest // 4) :]
    with torch.inference_mode():
        alone, beside = Batch(network, [short], 1), Batch(network, [long, short], 1)
        first = _distance(alone.logits()[0], beside.logits()[1])
        beside.keep([1])
        for batch in (alone, beside):
            batch.append(torch.tensor([long[0]], device=network.device))
        second = _distance(alone.logits()[0], beside.logits()[0])
    tolerance = _PADDING_TOLERANCE.get(str(network.dtype).removeprefix("torch."), _HALF_PRECISION_TOLERANCE)
    if not max(first, second) <= tolerance:
        raise ValueError(
            f"this model minds padding: a row's law changes by {max(first, second):.2g} (total variation) beside a "
            f"longer row, and may by {tolerance}; it cannot be used in batches"
        )


def _distance(one: torch.Tensor, other: torch.Tensor) -> float:
    return 0.5 * float((one.double().softmax(-1) - other.double().softmax(-1)).abs().sum())
