"""What servers answer, checked field by field.

Each function takes the JSON of a reply with status 200 and returns what was asked for, or raises `BadReply` when it is
not what the protocol says, `Unable` when it shows that the server did something else than it was asked to.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from prefmh_web.endpoints.errors import BadReply, Unable

# llama.cpp's settings of plain temperature sampling, as it repeats them.
_LLAMA_CPP_PLAIN = {"samplers": ["temperature"], "grammar": "", "logit_bias": [], "mirostat": 0}


@dataclass(frozen=True)
class Continuation:
    """New tokens; the end-of-sequence token is the last of them if `ended`."""

    tokens: tuple[int, ...]
    ended: bool


def tokens_used(reply: dict[str, Any]) -> tuple[int, int]:
    """Return the tokens read and written, as the server counts them; 0 where it does not."""
    usage = reply.get("usage")
    if isinstance(usage, dict):
        counts = usage.get("prompt_tokens"), usage.get("completion_tokens")
    else:
        counts = reply.get("tokens_evaluated"), reply.get("tokens_predicted")
    return tuple(count if _is_count(count) else 0 for count in counts)  # type: ignore[return-value]


def chat_text(reply: dict[str, Any]) -> str | None:
    """Return the text of the one answer; None where the server sent none."""
    message = _only_choice(reply).get("message")
    if not isinstance(message, dict):
        raise BadReply("the reply holds no message")
    content = message.get("content")
    if content is not None and not isinstance(content, str):
        raise BadReply("the message's content is not a text")
    return content


def first_token(reply: dict[str, Any]) -> list[tuple[str, float]]:
    """Return the most probable first tokens with their log-probabilities."""
    found = _only_choice(reply).get("logprobs")
    if not isinstance(found, dict) or not isinstance(found.get("content"), list):
        raise Unable("the server returns no log-probabilities")
    if not found["content"]:
        raise BadReply("the reply holds no token, so no log-probabilities either")
    try:
        return [(str(entry["token"]), float(entry["logprob"])) for entry in found["content"][0]["top_logprobs"]]
    except (KeyError, TypeError, ValueError):
        raise BadReply("the log-probabilities are not in the form of the protocol") from None


def llama_cpp_continuation(
    reply: dict[str, Any], prompt: Sequence[int], limit: int, temperature: float
) -> Continuation:
    """Return what llama.cpp continued with, having checked that it sampled as it was told to."""
    used = reply.get("generation_settings")
    if not isinstance(used, dict):
        raise BadReply("the reply does not say how it was sampled")
    wanted = _LLAMA_CPP_PLAIN | {"temperature": float(temperature), "n_predict": limit}
    for name, value in wanted.items():
        if not _same(used.get(name), value):
            raise Unable(f"the server sampled with {name} = {used.get(name)!r}, not {value!r}")
    tokens = _token_ids(reply.get("tokens"))
    if reply.get("truncated"):
        raise Unable(f"prompt and {limit} more tokens do not fit into the server's context")
    if reply.get("tokens_evaluated") != len(prompt):
        raise Unable(f"the server read {reply.get('tokens_evaluated')} tokens of a prompt of {len(prompt)}")
    return _whole(tokens, limit, ended=reply.get("stop_type") == "eos", predicted=reply.get("tokens_predicted"))


def completions_continuation(reply: dict[str, Any], prompt: Sequence[int], limit: int) -> Continuation:
    """Return what a completions server continued with."""
    choice = _only_choice(reply)
    tokens = _token_ids(choice.get("token_ids"))
    usage = reply.get("usage") if isinstance(reply.get("usage"), dict) else {}
    echoed = choice.get("prompt_token_ids")
    read = len(echoed) if isinstance(echoed, list) else usage.get("prompt_tokens", len(prompt))
    if read != len(prompt) or (isinstance(echoed, list) and list(prompt) != echoed):
        raise Unable(f"the server read {read} tokens of a prompt of {len(prompt)}, or others than it was sent")
    ended = choice.get("finish_reason") == "stop"
    return _whole(tokens, limit, ended=ended, predicted=usage.get("completion_tokens", len(tokens)))


def _whole(tokens: tuple[int, ...], limit: int, *, ended: bool, predicted: Any) -> Continuation:
    if predicted != len(tokens) or not 1 <= len(tokens) <= limit:
        raise BadReply(f"the server says {predicted} tokens, sends {len(tokens)}, and was asked for at most {limit}")
    if not ended and len(tokens) < limit:
        # vLLM shortens max_tokens without a word when prompt and limit do not fit into the context.
        raise Unable(f"the server stopped after {len(tokens)} tokens of {limit}: its context is too small")
    return Continuation(tokens, ended)


def _only_choice(reply: dict[str, Any]) -> dict[str, Any]:
    choices = reply.get("choices")
    if not isinstance(choices, list) or len(choices) != 1 or not isinstance(choices[0], dict):
        raise BadReply("the reply does not hold one choice")
    return choices[0]


def _token_ids(found: Any) -> tuple[int, ...]:
    if found is None:
        raise Unable(
            "the server returns no token ids; a text tokenised again comes back changed, so it cannot write proposals"
        )
    if not isinstance(found, list) or not all(_is_count(token) for token in found):
        raise BadReply("the token ids are not whole numbers")
    return tuple(found)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _same(used: Any, wanted: Any) -> bool:
    if isinstance(wanted, float):
        # llama.cpp computes in single precision.
        return isinstance(used, int | float) and abs(used - wanted) <= 1e-6 * max(1.0, abs(wanted))
    return used == wanted
