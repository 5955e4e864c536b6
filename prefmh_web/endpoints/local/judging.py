"""Log-probabilities of the labels A and B by a model that runs here, for many prompts in one pass.

The first token after the prompt decides, as with an endpoint that tells log-probabilities: p is the share of A's tokens
in those of A and B together, at the judge's temperature. That is the law of a reply that is confined to the labels, so
no bound is set on what the model would rather have said; `shortfall` tells how much that is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from prefmh_web.endpoints.errors import Unable
from prefmh_web.endpoints.local.chat import prompt_ids
from prefmh_web.endpoints.local.extra import needs
from prefmh_web.endpoints.local.network import Batch
from prefmh_web.endpoints.local.weights import Weights
from sampler import Tokens, judges

if TYPE_CHECKING:
    import torch
else:
    torch = needs("torch")

# Of one pass: prompts at most, and prompts times their longest length, which bounds the memory that it takes.
MAX_ROWS, MAX_TOKENS = 256, 131_072
# Bytes of a space may be written as a few characters before the letter.
_LONGEST_PIECE = 8


@dataclass(frozen=True)
class Told:
    """What one prompt gave: p, and how many tokens were read."""

    preference: judges.LabelPreference
    tokens: int


class LocalJudge:
    """A model that prefers A or B.

    Args:
        weights: the model and its tokeniser.
        raw: whether prompts go to it without its chat template.
        max_rows, max_tokens: of one pass; see above.

    Raises:
        ValueError: its tokeniser has no token for a label.
    """

    def __init__(
        self, weights: Weights, *, raw: bool = False, max_rows: int = MAX_ROWS, max_tokens: int = MAX_TOKENS
    ) -> None:
        self._weights, self._raw = weights, raw
        self._max_rows, self._max_tokens = max_rows, max_tokens
        self.labels = label_tokens(weights)

    @property
    def context(self) -> int | None:
        """How many tokens a prompt may have; None where the model does not say."""
        return self._weights.network.context

    @property
    def is_raw(self) -> bool:
        """Whether prompts go to it without a chat template: as wanted, or because it has none."""
        return self._raw or not getattr(self._weights.tokenizer, "chat_template", None)

    @property
    def computes_in(self) -> str:
        """The numbers it computes with, and where."""
        network = self._weights.network
        return f"{str(network.dtype).removeprefix('torch.')} on {network.device.type}"

    def read(self, messages: judges.Messages) -> Tokens:
        """Return the tokens of a prompt.

        Raises:
            Unable: it holds pictures or special tokens, or does not fit into the context.
        """
        system, prompt = _texts_of(messages)
        try:
            ids = prompt_ids(self._weights.tokenizer, system, prompt, raw=self._raw)
        except ValueError as error:
            raise Unable(str(error)) from None
        if self.context is not None and len(ids) > self.context:
            raise Unable(f"the prompt has {len(ids)} tokens, more than the {self.context} of the model's context")
        return ids

    def preferences(self, prompts: Sequence[Tokens], temperature: float) -> list[Told]:
        """Return what each of these prompts says, in their order; they go through the model together.

        Raises:
            ArithmeticError: the model gave logits that are not finite; none is returned then.
            RuntimeError: the accelerator's memory is full, or it failed.
        """
        told: dict[int, Told] = {}
        with self._weights.lock, torch.inference_mode():
            for part in _parts(prompts, self._max_rows, self._max_tokens):
                batch = Batch(self._weights.network, [prompts[place] for place in part], room=0)
                logs = torch.log_softmax(batch.logits().double(), dim=-1).cpu()
                for place, row in zip(part, logs, strict=True):
                    told[place] = Told(self._preference(row, temperature), len(prompts[place]))
        return [told[place] for place in range(len(prompts))]

    def _preference(self, logs: torch.Tensor, temperature: float) -> judges.LabelPreference:
        if bool(logs.isnan().any()):
            raise ArithmeticError("the model gave logits that are not finite; nothing can be drawn from them")
        labelled = [(label, min(0.0, float(logs[token]))) for label, ids in self.labels.items() for token in ids]
        return judges.label_preference(labelled, temperature, confined=True, most_shortfall=1.0)


def label_tokens(weights: Weights) -> Mapping[str, Tokens]:
    """Return the tokens that say A and those that say B, with or without a space before the letter.

    A form that one of the two has alone is left out, for it would lean to that label.

    Raises:
        ValueError: there is no form that both have.
    """
    found: dict[str, dict[str, int]] = {label: {} for label in judges.LABELS}
    words = weights.tokenizer
    pieces = words.convert_ids_to_tokens(list(range(min(len(words), weights.network.vocabulary))))
    for token, piece in enumerate(pieces):
        # Decoding every token of a large vocabulary would take minutes: most cannot be a label.
        if piece is None or not piece.endswith(judges.LABELS) or len(piece) > _LONGEST_PIECE:
            continue
        said = words.decode([token], clean_up_tokenization_spaces=False)
        if said.strip() in judges.LABELS:
            # Some tokenisers drop a word's leading space when they decode it alone, so the piece tells the form.
            found[said.strip()][piece[:-1]] = token
    forms = sorted(set.intersection(*(set(each) for each in found.values())))
    if not forms:
        raise ValueError("the model must have tokens for A and for B; its tokeniser has none of the same form for both")
    return {label: tuple(found[label][form] for form in forms) for label in judges.LABELS}


def _texts_of(messages: judges.Messages) -> tuple[str, str]:
    texts = {str(message["role"]): message["content"] for message in messages}
    if not all(isinstance(text, str) for text in texts.values()):
        raise Unable("models that the site runs itself do not see pictures")
    return texts.get("system", ""), texts["user"]


def _parts(prompts: Sequence[Tokens], max_rows: int, max_tokens: int) -> Iterator[list[int]]:
    """Split prompts, by their places, into passes; those of like length go together, so that few cells are padding."""
    part: list[int] = []
    longest = 0
    for place in sorted(range(len(prompts)), key=lambda place: -len(prompts[place])):
        if part and (len(part) == max_rows or (len(part) + 1) * longest > max_tokens):
            yield part
            part = []
        longest = longest if part else len(prompts[place])
        part.append(place)
    if part:
        yield part
