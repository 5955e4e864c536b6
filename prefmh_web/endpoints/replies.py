"""What servers answer: what is said here tells a bad reply from a server that is unable, and how long one asks to wait.

Each function takes the JSON of a reply with status 200 and returns what was asked for, or raises `BadReply` when it is
not what the protocol says, `Unable` when it shows that the server did something else than it was asked to, or what an
error in its place means. A value may be anything that JSON can hold: nested deeply, a number of four thousand digits,
half of a surrogate pair.
"""

import json
import math
import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from hashlib import sha256
from typing import Any, TypeGuard

from prefmh_web.endpoints.errors import (
    BadReply,
    EndpointError,
    NeedsAttention,
    NoDistribution,
    Refused,
    Unable,
    Unparsable,
    by_status,
)
from sampler.judges import shown

# llama.cpp's settings of plain temperature sampling, as it repeats them.
_LLAMA_CPP_PLAIN = {"samplers": ["temperature"], "grammar": "", "logit_bias": [], "mirostat": 0}
# More than any model reads or writes in one request, or has in its vocabulary; what is larger is no count and no id.
_LARGEST_COUNT = 2**31 - 1
# No token says more; the longest ones are runs of white space.
_LONGEST_TOKEN = 1000
# What a database cannot store in a text.
_UNSTORABLE = re.compile(r"[\x00\ud800-\udfff]")


@dataclass(frozen=True)
class Continuation:
    """New tokens; the end-of-sequence token is the last of them if `ended`."""

    tokens: tuple[int, ...]
    ended: bool


def parsed(content: bytes) -> Any:
    """Return the value of a JSON text in UTF-8.

    Raises:
        ValueError: it is none, or one that nests too deeply, or has a number too long to be read.
    """
    try:
        return json.loads(content.decode("utf-8-sig"), parse_constant=_no_number)
    except RecursionError:
        raise ValueError("it nests too deeply") from None


def _no_number(name: str) -> None:
    """Read NaN and infinities, which are no JSON, as null, in which other servers put them."""


def storable(text: str) -> str:
    """Return a text with U+FFFD for what no database takes: NUL, and halves of surrogate pairs."""
    return _UNSTORABLE.sub("\ufffd", text)


def _count(value: Any) -> int:
    """Return what a server counts; 0 where that cannot be a count."""
    return value if type(value) is int and 0 <= value <= _LARGEST_COUNT else 0


def tokens_used(reply: dict[str, Any]) -> tuple[int, int]:
    """Return the tokens read and written, as the server counts them; 0 where it does not, or says what cannot be."""
    if isinstance(usage := reply.get("usage"), dict):
        return _count(usage.get("prompt_tokens")), _count(usage.get("completion_tokens"))
    # llama.cpp's own path.
    return _count(reply.get("tokens_evaluated")), _count(reply.get("tokens_predicted"))


def _first_choice(reply: dict[str, Any]) -> dict[str, Any]:
    choices = reply.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    return first if isinstance(first, dict) else {}


def _one_choice(reply: dict[str, Any]) -> dict[str, Any]:
    choices = reply.get("choices")
    if not isinstance(choices, list) or len(choices) != 1 or not isinstance(choices[0], dict):
        raise BadReply("the reply does not hold one choice")
    return choices[0]


@dataclass(frozen=True)
class ReplyContent:
    """One answer as it came.

    Args:
        text: None where the server sent none, or a filter or a refusal stands in its place.
        has_thought: whether the model thought before it: told in a field or a part of its own, or counted.
        finish: the server's word for why it ended, whatever that is.
    """

    text: str | None
    has_thought: bool
    finish: Any


# What a server's template writes where the model is not to think.
_EMPTY_THOUGHT = re.compile(r"\s*<(think|thinking)>\s*</\1>\s*")


def said(reply: dict[str, Any]) -> ReplyContent:
    """Return the one answer of a chat completion."""
    _raise_error_in(reply)
    choice = _one_choice(reply)
    message, finish = choice.get("message"), choice.get("finish_reason")
    if not isinstance(message, dict):
        raise BadReply("the reply holds no message")
    text, has_thought = _words_of(message.get("content"))
    has_thought = has_thought or _tells_thought(message) or _thought_tokens(reply) > 0
    if finish == "content_filter" or message.get("refusal"):
        return ReplyContent(None, has_thought, finish)
    if text is not None and (empty := _EMPTY_THOUGHT.match(text)):
        text = text[empty.end() :]
    return ReplyContent(text, has_thought, finish)


def _words_of(content: object) -> tuple[str | None, bool]:
    """Return the text of a message's content, and whether there is a thought among its parts."""
    if content is None or isinstance(content, str):
        return content, False
    parts = content if isinstance(content, list) else [None]
    texts, has_thought = [], False
    for part in parts:
        kind, words = (part.get("type"), part.get("text")) if isinstance(part, dict) else (None, None)
        if kind == "text" and isinstance(words, str):
            texts.append(words)
        elif kind in ("thinking", "reasoning"):
            has_thought = True
        else:
            raise Unable("the message's content is neither a text nor a list of texts")
    return "".join(texts), has_thought


def _tells_thought(message: dict[str, Any]) -> bool:
    # OpenRouter's details may be encrypted.
    found = [message.get(name) for name in (*_THOUGHTS, "reasoning_details")]
    return any(each.strip() if isinstance(each, str) else each for each in found)


def _thought_tokens(reply: dict[str, Any]) -> int:
    """Return how many tokens a server says that the model thought, by OpenAI's field or by SGLang's."""
    usage = reply.get("usage")
    details = usage.get("completion_tokens_details") if isinstance(usage, dict) else None
    counted = [each.get("reasoning_tokens") for each in (usage, details) if isinstance(each, dict)]
    return max(map(_count, counted), default=0)


# What OpenAI's and Anthropic's errors are called that come with 4xx, for those that come without their status.
_REFUSING = (
    "invalid_request_error", "authentication_error", "permission_error", "not_found_error", "billing_error",
    "request_too_large",
)  # fmt: skip
# Of a status, as a number or in words: 400, "404", "403 Forbidden".
_CODE = re.compile(r"[45][0-9]{2}(?![0-9])")
# What says that there is no money left, of OpenAI's and others: it comes with the status of a server that is busy.
_SPENT = ("insufficient_quota", "billing_not_active", "exceeded_current_quota")
_LONGEST_MESSAGE = 300


def error_in(reply: Any) -> dict[str, Any]:
    """Return the object with which a reply describes an error; empty where there is none."""
    # Google's comes in a list of one.
    reply = reply[0] if isinstance(reply, list) and len(reply) == 1 else reply
    if not isinstance(reply, dict):
        return {}
    if not (found := reply.get("error")) and isinstance(reply.get("message"), str) and "choices" not in reply:
        # SGLang's, that of older vLLM, and those of many proxies.
        return reply
    return found if isinstance(found, dict) else {"message": found} if found else {}


def is_spent(error: dict[str, Any]) -> bool:
    """Say whether an error says that there is no money left, which waiting does not change."""
    metadata = error.get("metadata")
    # In which OpenRouter hands on the words of a provider.
    told = [*error.values(), *(metadata.values() if isinstance(metadata, dict) else ())]
    return any(name in each.lower() for each in told if isinstance(each, str) for name in _SPENT)


def failure(status: int, headers: Mapping[str, str], reply: Any, words: str) -> EndpointError:
    """Return what a reply with the status of an error means for whoever asked.

    Args:
        headers: by their names in small letters.
        reply: its JSON; None if it is none.
        words: of the server, for a person to read.
    """
    error, reason = error_in(reply), f"the server answered {status}: {words}"
    metadata = error.get("metadata")
    is_moderated = status == 403 and isinstance(metadata, dict) and "reasons" in metadata
    if is_moderated or (status == 400 and error.get("code") in ("content_filter", "content_policy_violation")):
        return Unparsable(f"a content filter of the server refused the prompt: {words}")
    return Refused(reason) if is_spent(error) else by_status(status, reason, wait(headers, error))


def _raise_error_in(reply: dict[str, Any]) -> None:
    if not (error := error_in(reply) or error_in(_first_choice(reply))):
        return
    message = error.get("message")
    words = message if isinstance(message, str) else shown(message)
    if len(words) > _LONGEST_MESSAGE:
        # At a space: half a key, should the server repeat it, would not be known for one.
        words = words[:_LONGEST_MESSAGE].rpartition(" ")[0] + "…"
    name = error.get("code") or error.get("type")
    reason = f"the server answered with the error {shown(name)}: {words}" if name else f"the server failed: {words}"
    raise Refused(reason) if is_spent(error) else by_status(_status_of(error), reason, wait({}, error))


def _status_of(error: dict[str, Any]) -> int:
    """Return the status that an error names, in whichever field; 500 where it names none."""
    for name in ("code", "status", "status_code", "statusCode"):
        value = error.get(name)
        if isinstance(value, int | float | str) and (match := _CODE.match(str(value))):
            return int(match[0])
    return 400 if error.get("type") in _REFUSING else 500


# A model may think for long; whoever looks at its reasons reads the beginning.
LONGEST_REASONING = 8_000
# Servers that speak as OpenAI does have no common name for it.
_THOUGHTS = ("reasoning_content", "reasoning", "thinking")


def reasoning(reply: dict[str, Any]) -> str:
    """Return the thoughts beside the one answer, as they can be stored; empty where the server sends none."""
    message = _first_choice(reply).get("message", reply.get("message"))
    found = [message.get(name) for name in _THOUGHTS] if isinstance(message, dict) else []
    # Only one of them: a server may send the same thoughts under two names.
    return next((storable(each[:LONGEST_REASONING]) for each in found if isinstance(each, str) and each.strip()), "")


@dataclass(frozen=True)
class First:
    """The first token of an answer, its log-probability, and those of the most probable tokens, as they came."""

    token: str
    log_probability: Any
    entries: tuple[tuple[str, Any], ...]


def first_token(reply: dict[str, Any]) -> First:
    """Return what a chat completion says of its first token."""
    logged = _one_choice(reply).get("logprobs")
    content = logged.get("content") if isinstance(logged, dict) else None
    if not isinstance(content, list):
        raise Unable("the server returns no log-probabilities")
    if not content:
        raise BadReply("the reply holds no token, so no log-probabilities either")
    first = content[0] if isinstance(content[0], dict) else {}
    entries = first.get("top_logprobs")
    if not isinstance(entries, list) or not all(map(_is_entry, [first, *entries])):
        raise NoDistribution("the log-probabilities are not in the form of the protocol")
    listed = tuple((entry["token"], entry.get("logprob")) for entry in entries)
    return First(first["token"], first.get("logprob"), listed)


def _is_entry(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("token"), str)


def llama_cpp_continuation(
    reply: dict[str, Any], prompt: Sequence[int], limit: int, temperature: float
) -> Continuation:
    """Return what llama.cpp continued with, having checked that it sampled as it was told to."""
    _raise_error_in(reply)
    used = reply.get("generation_settings")
    if not isinstance(used, dict):
        raise BadReply("the reply does not say how it was sampled")
    wanted = _LLAMA_CPP_PLAIN | {"temperature": float(temperature), "n_predict": limit}
    for name, value in wanted.items():
        if not _same(used.get(name), value):
            raise Unable(f"the server sampled with {name} = {shown(used.get(name))}, not {value!r}")
    tokens, read = _token_ids(reply.get("tokens")), reply.get("tokens_evaluated")
    if reply.get("truncated"):
        raise Unable(f"prompt and {limit} more tokens do not fit into the server's context")
    if read != len(prompt):
        raise Unable(f"the server read {shown(read)} tokens of a prompt of {len(prompt)}")
    ended = reply.get("stop_type") == "eos"
    return _whole(tokens, limit, ended=ended, predicted=reply.get("tokens_predicted"))


def completions_continuation(
    reply: dict[str, Any], prompt: Sequence[int], limit: int, temperature: float
) -> Continuation:
    """Return what a completions server continued with; it does not say at which temperature."""
    _raise_error_in(reply)
    choice, usage = _one_choice(reply), reply.get("usage")
    usage = usage if isinstance(usage, dict) else {}
    tokens, echoed = _token_ids(choice.get("token_ids")), choice.get("prompt_token_ids")
    read = len(echoed) if isinstance(echoed, list) else usage.get("prompt_tokens", len(prompt))
    if read != len(prompt) or (isinstance(echoed, list) and echoed != list(prompt)):
        raise Unable(f"the server read {shown(read)} tokens of a prompt of {len(prompt)}, or others than it was sent")
    predicted = usage.get("completion_tokens", len(tokens))
    return _whole(tokens, limit, ended=choice.get("finish_reason") == "stop", predicted=predicted)


CONTINUATIONS = {"llama.cpp": llama_cpp_continuation, "completions": completions_continuation}


def _whole(tokens: tuple[int, ...], limit: int, *, ended: bool, predicted: Any) -> Continuation:
    if predicted != len(tokens) or not 1 <= len(tokens) <= limit:
        raise BadReply(
            f"the server says {shown(predicted)} tokens, sends {len(tokens)}, and was asked for at most {limit}"
        )
    if not ended and len(tokens) < limit:
        # vLLM shortens max_tokens without a word when prompt and limit do not fit into the context.
        raise Unable(f"the server stopped after {len(tokens)} tokens of {limit}: its context is too small")
    return Continuation(tokens, ended)


def _token_ids(found: Any) -> tuple[int, ...]:
    if found is None:
        raise Unable(
            "the server returns no token ids; a text tokenised again comes back changed, so it cannot write proposals"
        )
    if not _are_ids(found):
        raise BadReply("the token ids are not whole numbers")
    return tuple(found)


def _are_ids(found: Any) -> bool:
    return isinstance(found, list) and all(type(each) is int and 0 <= each <= _LARGEST_COUNT for each in found)


def token_ids_of(reply: dict[str, Any]) -> tuple[int, ...]:
    """Return what a text was turned into; at least one token."""
    found = reply.get("tokens")
    if not found or not _are_ids(found):
        raise BadReply("the server did not turn the prompt into token ids")
    return tuple(found)


def text_of(reply: dict[str, Any], name: str, tokens: int) -> str:
    """Return the text that some tokens were turned into, as it can be stored.

    Args:
        name: of the field that holds it.
        tokens: how many there were.
    """
    text = reply.get(name)
    if not isinstance(text, str):
        raise BadReply("the server did not turn the token ids into a text")
    if len(text) > tokens * _LONGEST_TOKEN:
        raise BadReply(f"the server turned {tokens} tokens into {len(text)} characters")
    return storable(text)


def prompt_of(reply: dict[str, Any]) -> str:
    """Return a chat with its template applied, ready to be sent back."""
    prompt = reply.get("prompt")
    if not is_sendable(prompt):
        raise BadReply("the server did not apply its chat template")
    return prompt


def is_sendable(value: object) -> TypeGuard[str]:
    """Say whether a value is a text that can be sent back to the server."""
    return isinstance(value, str) and not _UNSTORABLE.search(value)


def _same(used: object, wanted: object) -> bool:
    if not isinstance(wanted, float):
        return used == wanted
    if isinstance(used, bool) or not isinstance(used, int | float):
        return False
    # llama.cpp computes in single precision. A whole number may be too large for a float.
    return abs(used) <= _LARGEST_COUNT and abs(used - wanted) <= 1e-6 * max(1.0, abs(wanted))


# Which model a reply says that it is from: its `model` and its `system_fingerprint`. A judge is one model. A server may
# load another under the same address, and says so in its replies; votes of two models are no votes of one judge.

_LONGEST_NAME = 200


@dataclass(frozen=True, order=True)
class Identity:
    """What a reply says it is from; empty where it does not say."""

    model: str = ""
    system_fingerprint: str = ""

    def __str__(self) -> str:
        model = f"“{self.model}”" if self.model else "a model without a name"
        return f"{model} (fingerprint {self.system_fingerprint})" if self.system_fingerprint else model


class Changed(NeedsAttention):
    """The server answers as another model than before."""

    def __init__(self, now: Identity, before: Collection[Identity]) -> None:
        known = " or ".join(map(str, sorted(before)))
        super().__init__(f"the server now answers as {now}, and has been asked as {known}")
        self.now = now


class Admitted:
    """Whose replies count.

    Args:
        identities: those that count; where there is none, that of the first reply checked does.
    """

    def __init__(self, identities: Collection[Identity] = ()) -> None:
        self._identities = set(identities)
        self.change: Changed | None = None

    def check(self, identity: Identity | None = None) -> None:
        """Check a reply's identity; without one, check that no reply so far has shown a change.

        Raises:
            Changed: it does not count, or an earlier reply did not.
        """
        if identity is not None:
            self._identities = self._identities or {identity}
            if identity not in self._identities:
                self.change = Changed(identity, self._identities)
        if self.change is not None:
            raise self.change


def identity_of(reply: dict[str, Any]) -> Identity:
    """Return what a reply says it is from, whatever it holds: what is no text counts as not said."""
    return Identity(_name(reply.get("model")), _name(reply.get("system_fingerprint")))


def _name(found: Any) -> str:
    if not isinstance(found, str):
        return ""
    # No control characters, and none that a database or a page cannot hold.
    text = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in found)
    if len(text) <= _LONGEST_NAME:
        return text
    # Cut, but two long names that differ stay two names.
    digest = sha256(found.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return f"{text[: _LONGEST_NAME - 17]}…{digest}"


# How long a server that refuses for now asks to wait. The forms are those of RFC 9110 (`retry-after`), OpenAI and Azure
# (`retry-after-ms`, `x-ratelimit-reset-requests` as 6m0s, "try again in 20s"), OpenRouter (`x-ratelimit-reset`, also
# repeated in the error's metadata) and Google (`RetryInfo`).

LONGEST_RETRY_AFTER_S = 3600.0
_UNITS = {"d": 86_400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001, "milli": 0.001}
# As in 6m0s, 59.9s, 1m 30s and 26 seconds.
_PIECE = re.compile(r"(\d{1,9}(?:\.\d{1,9})?) ?(ms|milli|d|h|m|s)[a-z]* ?", re.IGNORECASE)
_DURATION = re.compile(rf"(?:{_PIECE.pattern})+", re.IGNORECASE)
_IN_WORDS = re.compile(rf"(?:try again in|retry in|retry after) ({_DURATION.pattern})", re.IGNORECASE)
# No server counts so many seconds to wait; as so many since 1970 they are this century's, and milliseconds are more.
_A_MOMENT, _A_MOMENT_IN_MS = 1.5e9, 1e11
_LONGEST_READ = 2_000


def wait(headers: Mapping[str, str], error: Mapping[str, Any]) -> float | None:
    """Return how many seconds an error asks to wait, by the form that says it best; None where it does not say.

    Args:
        headers: of the reply, by their names in small letters.
        error: the object that describes the error; empty where there is none.
    """
    metadata = error.get("metadata")
    repeated = metadata.get("headers") if isinstance(metadata, dict) else None
    found = repeated.items() if isinstance(repeated, dict) else ()
    named = {str(name).lower(): str(value) for name, value in found if isinstance(value, str | int | float)}
    now = datetime.now(UTC).timestamp()
    said = (
        _seconds(headers.get("retry-after-ms"), now, unit=0.001),
        _seconds(headers.get("retry-after"), now),
        _reset(headers, now),
        *(_seconds(each.get("x-ratelimit-reset"), now) for each in (headers, named)),
        *(_seconds(delay, now) for delay in _delays(error)),
    )
    waits = [seconds for seconds in said if seconds is not None and not math.isnan(seconds)]
    return min(max(waits[0], 0.0), LONGEST_RETRY_AFTER_S) if waits else None


def _seconds(text: str | None, now: float, unit: float = 1.0) -> float | None:
    """Return the seconds of a duration, such as 6m0s, 34.5s or 20 units, or those until a date or another moment; None
    where it is none.
    """
    if text is None:
        return None
    if _DURATION.fullmatch(text.strip()):
        return sum(float(number) * _UNITS[name.lower()] for number, name in _PIECE.findall(text))
    try:
        seconds = float(text)
    except ValueError:
        return _until(text, now)
    if seconds < _A_MOMENT:
        return seconds * unit
    return (seconds if seconds < _A_MOMENT_IN_MS else seconds / 1000) - now


def _until(text: str, now: float) -> float | None:
    """Return the seconds until a date in a form of RFC 9110 (5.6.7) or of RFC 3339, which Anthropic's headers have."""
    for read in (parsedate_to_datetime, datetime.fromisoformat):
        with suppress(ValueError, OverflowError):
            date = read(text.strip())
            return date.replace(tzinfo=date.tzinfo or UTC).timestamp() - now
    return None


def _reset(headers: Mapping[str, str], now: float) -> float | None:
    """Return the seconds until the limits of OpenAI's that are used up are reset."""
    used_up = [
        name for name in ("requests", "tokens") if headers.get(f"x-ratelimit-remaining-{name}", "0").strip() == "0"
    ]
    waits = [_seconds(headers.get(f"x-ratelimit-reset-{name}"), now) for name in used_up]
    return max((wait for wait in waits if wait is not None), default=None)


def _delays(error: Mapping[str, Any]) -> list[str]:
    """Return the delays that an error holds: Google's, and those in words."""
    details = error.get("details")
    found = [each.get("retryDelay") for each in details if isinstance(each, dict)] if isinstance(details, list) else []
    message = error.get("message")
    if isinstance(message, str) and (match := _IN_WORDS.search(message[:_LONGEST_READ])):
        found.append(match.group(1))
    return [delay for delay in found if isinstance(delay, str)]
