"""Google's Gemini API, `generateContent`.

https://ai.google.dev/api/generate-content and https://ai.google.dev/gemini-api/docs/thinking (as of 2026-11-23): the
model stands in the path, the key in `x-goog-api-key`, system text outside the contents. A `topK` is fixed by the model
and cannot be switched off for all of them, so nobody can say whether it truncates. A `thinkingBudget` of 0 switches
thinking off where the model lets it; others take no less than 128. Thoughts are parts with `thought` true, and are
counted in `thoughtsTokenCount`. A filtered prompt has no candidate but a `blockReason`, a filtered answer a
`finishReason` other than STOP and MAX_TOKENS. A 429 says how long to wait in its `RetryInfo`, not in a header.
"""

import re
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar
from urllib.parse import quote

from pydantic import ConfigDict
from pydantic.alias_generators import to_camel

from prefmh_web.endpoints import replies, waits
from prefmh_web.endpoints.dialects.server import (
    THINKING_TOKENS,
    Body,
    Path,
    Question,
    Server,
    parts_of,
    picture_of,
    words_of,
)
from prefmh_web.endpoints.errors import BadReply, Unable
from prefmh_web.endpoints.identity import Identity, identity_of
from prefmh_web.endpoints.replies import Count, Shape, Text, Told, read_as

# Models that cannot be kept from thinking.
_THINKS = re.compile(r"gemini-2\.5-pro|gemini-[3-9]")
_LEAST_THINKING = 128
_ROLES = {"user": "user", "assistant": "model"}
_WHOLE = (None, "STOP", "MAX_TOKENS")


class Gemini(Server):
    """Google's own API; the base URL ends in /v1beta."""

    hosts = ("generativelanguage.googleapis.com",)
    key_header = "x-goog-api-key"
    key_prefix = ""
    varies = ("contents", "systemInstruction", "generationConfig.seed")

    trials: ClassVar[Mapping[str, Body]] = {
        "temperature": {"generationConfig.temperature": 0.01},
        "top_p": {"generationConfig.topP": 0.0001},
        "top_k": {"generationConfig.topK": 1},
        "seed": {},
    }
    limit_field = "maxOutputTokens"
    can_think = True
    least_thinking = _LEAST_THINKING

    def path(self, model: str) -> Path:
        """Return the path of a model."""
        return Path(f"/models/{quote(model, safe='')}:generateContent")

    def body(self, question: Question) -> Body:
        """Return the body of a request for one answer."""
        system = words_of(question.messages, "system")
        contents = [
            {"role": _ROLES[message["role"]], "parts": [_part(part) for part in parts_of(message)]}
            for message in question.messages
            if message["role"] != "system"
        ]
        instruction = {"systemInstruction": {"parts": [{"text": system}]}} if system else {}
        return {**instruction, "contents": contents, "generationConfig": self._config(question)}

    def _config(self, question: Question) -> Body:
        must_think = bool(_THINKS.search(question.model))
        room = (THINKING_TOKENS if must_think else 0) if question.thinking is None else question.thinking
        budget = (_LEAST_THINKING if must_think else 0) if question.thinking is None else question.thinking
        asked = (
            {"responseLogprobs": True, "logprobs": self.most_log_probabilities} if question.log_probabilities else {}
        )
        return {
            "temperature": question.temperature,
            "topP": 1.0,
            "seed": question.seed,
            "candidateCount": 1,
            "maxOutputTokens": question.max_tokens + room,
            "thinkingConfig": {"thinkingBudget": budget, "includeThoughts": False},
            **asked,
        }

    def text(self, reply: Body) -> str | None:
        """Return the texts of the one candidate's parts that are no thoughts."""
        candidate = _candidate(reply)
        if candidate is None or candidate.finish_reason not in _WHOLE or candidate.content is None:
            return None
        texts = [part.text for part in candidate.content.parts or () if not part.thought and part.text is not None]
        return "".join(texts) if texts else None

    def reasoning(self, reply: Body) -> str:
        """Return the parts that are thoughts, which are asked for nowhere and may come all the same."""
        candidate = _candidate(reply)
        parts = candidate.content.parts or [] if candidate and candidate.content else []
        return replies.thoughts_of([part.text for part in parts if part.thought])

    def first_token(self, reply: Body) -> list[tuple[str, float]]:
        """Return the most probable first tokens."""
        candidate = _candidate(reply)
        if candidate is None or candidate.logprobs_result is None:
            raise Unable("the server returns no log-probabilities")
        positions = candidate.logprobs_result.top_candidates
        if not positions:
            raise BadReply("the reply holds no token, so no log-probabilities either")
        return [(entry.token, entry.log_probability) for entry in positions[0].candidates]

    def tokens_used(self, reply: Body) -> tuple[int, int]:
        """Return the tokens read and written, thoughts included."""
        usage = _Counted.model_validate(reply).usage_metadata
        if usage is None:
            return 0, 0
        return usage.prompt_token_count or 0, (usage.candidates_token_count or 0) + (usage.thoughts_token_count or 0)

    def identity(self, reply: Body) -> Identity:
        """Return which version of the model a reply says that it is from."""
        return identity_of({"model": reply.get("modelVersion")})

    def wait(self, headers: Mapping[str, str], reply: Any) -> float | None:
        """Return the delay of the error's `RetryInfo`."""
        error = reply.get("error") if isinstance(reply, dict) else None
        details = error.get("details") if isinstance(error, dict) else None
        delays = [detail.get("retryDelay") for detail in details or () if isinstance(detail, dict)]
        said = [waits.duration(delay) for delay in delays if isinstance(delay, str)]
        return waits.first_said(waits.retry_after(headers), *said)


class _Named(Shape):
    # Google's names are in camel case.
    model_config = ConfigDict(alias_generator=to_camel)


class _Part(_Named):
    text: Text | None = None
    thought: bool = False


class _Content(_Named):
    parts: list[_Part] | None = None


class _LogProbability(_Named):
    token: Text
    log_probability: float


class _Position(_Named):
    candidates: list[_LogProbability]


class _LogProbabilities(_Named):
    top_candidates: list[_Position]


class _Candidate(_Named):
    content: _Content | None = None
    finish_reason: Any = None
    logprobs_result: _LogProbabilities | None = None


class _Reply(_Named):
    candidates: list[_Candidate] | None = None
    prompt_feedback: Any = None


class _Usage(_Named):
    prompt_token_count: Annotated[Count | None, Told] = None
    candidates_token_count: Annotated[Count | None, Told] = None
    thoughts_token_count: Annotated[Count | None, Told] = None


class _Counted(_Named):
    usage_metadata: Annotated[_Usage | None, Told] = None


def _candidate(reply: Body) -> _Candidate | None:
    """Return the one candidate; None where a filter left none."""
    found = read_as(_Reply, reply, "the reply is not in the form of the protocol")
    if not found.candidates and isinstance(found.prompt_feedback, dict) and found.prompt_feedback.get("blockReason"):
        return None
    if found.candidates is None or len(found.candidates) != 1:
        raise BadReply("the reply does not hold one candidate")
    return found.candidates[0]


def _part(part: Body) -> Body:
    if part["type"] != "image_url":
        return {"text": part["text"]}
    media_type, data = picture_of(part)
    return {"inlineData": {"mimeType": media_type, "data": data}}
