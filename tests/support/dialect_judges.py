"""A judge whose preferences are known, in the words of each kind of server: what it is sent, and what it answers.

`Speaking` turns a request of any kind into one of vLLM's, which `KnownJudge` understands, and its reply back.
`Truncating` is the same judge behind a server that drops what is not likely enough, whatever it is told.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from prefmh_web.endpoints.dialects import Dialect
from tests.support.scripted_server import KnownJudge, anything_else

Body = dict[str, Any]


@dataclass(frozen=True)
class Truncating(KnownJudge):
    """A judge whose server keeps replies to a pair only if they are likely enough.

    Args:
        keeps: least probability of what is kept, as a share of the likeliest reply's.
    """

    keeps: float = 0.7

    def logits(self, prompt: str) -> dict[str, float]:
        """Return the logit of every reply that is kept."""
        found = KnownJudge.logits(self, prompt)
        least = max(found.values()) + math.log(self.keeps)
        return {reply: logit for reply, logit in found.items() if logit >= least}


@dataclass(frozen=True)
class Speaking:
    """A judge as a server of some kind.

    Args:
        seeds: of the replies, where a request brings none.
    """

    judge: KnownJudge
    dialect: str
    seeds: Iterator[int] = field(default_factory=lambda: itertools.count(1_000))

    def __call__(self, body: Body) -> Body:
        """Answer a chat; a completion as well, as llama.cpp's own path does."""
        if "n_predict" in body:
            return _completed(body)
        asked = {"seed": next(self.seeds), "temperature": 1.0} | _PLAIN.get(self.dialect, _of_openai)(body)
        reply = self.judge(asked) if self.judge.is_asked_about_two(asked) else anything_else(asked)
        return _SAID.get(self.dialect, dict)(reply)


def _of_openai(body: Body) -> Body:
    known = ("seed", "temperature", "logprobs")
    return {name: body[name] for name in known if name in body} | {
        "messages": _message(body["messages"]),
        **_choice(body),
    }


def _of_ollama(body: Body) -> Body:
    options = {name: body["options"][name] for name in ("seed", "temperature")}
    return options | {"messages": _message(body["messages"]), "logprobs": body.get("logprobs", False)}


def _of_anthropic(body: Body) -> Body:
    return {"messages": _message(body["messages"]), "temperature": body["temperature"]}


def _of_gemini(body: Body) -> Body:
    config = body["generationConfig"]
    texts = [part.get("text", "") for content in body["contents"] for part in content["parts"]]
    plain = {"messages": [{"role": "user", "content": "\n".join(texts)}], "logprobs": "responseLogprobs" in config}
    return plain | {name: config[name] for name in ("seed", "temperature")}


def _message(messages: list[Body]) -> list[Body]:
    """Return the words of all that the user says as one message."""
    said = [message["content"] for message in messages if message["role"] == "user"]
    parts = [[{"text": content}] if isinstance(content, str) else content for content in said]
    return [{"role": "user", "content": "\n".join(part.get("text", "") for each in parts for part in each)}]


def _choice(body: Body) -> Body:
    """Return what a reply is confined to, as vLLM is told."""
    if grammar := body.get("grammar") or body.get("ebnf"):
        rules = grammar.removeprefix("root ::= ").split(" | ")
        return {"structured_outputs": {"choice": [json.loads(rule) for rule in rules]}}
    if pattern := body.get("response_format"):
        return {"structured_outputs": {"choice": [rule.strip("()") for rule in pattern["value"].split("|")]}}
    return {"structured_outputs": body["structured_outputs"]} if "structured_outputs" in body else {}


def _text(reply: Body) -> str:
    text: str = reply["choices"][0]["message"]["content"]
    return text


def _tops(reply: Body) -> list[Body]:
    logged = reply["choices"][0].get("logprobs")
    return logged["content"] if logged else []


def _as_ollama(reply: Body) -> Body:
    said: Body = {"model": "m", "message": {"role": "assistant", "content": _text(reply)}, "done": True}
    return said | ({"logprobs": _tops(reply)} if _tops(reply) else {})


def _as_anthropic(reply: Body) -> Body:
    content = [{"type": "text", "text": _text(reply)}]
    return {"model": "m", "role": "assistant", "content": content, "stop_reason": "end_turn"}


def _as_gemini(reply: Body) -> Body:
    candidate: Body = {"content": {"role": "model", "parts": [{"text": _text(reply)}]}, "finishReason": "STOP"}
    if tops := _tops(reply):
        listed = [{"token": top["token"], "logProbability": top["logprob"]} for top in tops[0]["top_logprobs"]]
        candidate["logprobsResult"] = {"topCandidates": [{"candidates": listed}]}
    return {"candidates": [candidate], "modelVersion": "m"}


def _completed(body: Body) -> Body:
    settings = {"grammar": "", **{name: body[name] for name in ("samplers", "logit_bias", "mirostat", "temperature")}}
    limit = body["n_predict"]
    return {
        "generation_settings": settings | {"n_predict": limit},
        "tokens": [7] * limit,
        "tokens_evaluated": len(body["prompt"]),
        "tokens_predicted": limit,
    }


_PLAIN: dict[str, Callable[[Body], Body]] = {
    Dialect.OLLAMA: _of_ollama,
    Dialect.ANTHROPIC: _of_anthropic,
    Dialect.GEMINI: _of_gemini,
}
_SAID: dict[str, Callable[[Body], Body]] = {
    Dialect.OLLAMA: _as_ollama,
    Dialect.ANTHROPIC: _as_anthropic,
    Dialect.GEMINI: _as_gemini,
}
