"""The kinds of servers: a row of facts for each (`protocol.Server`), by the documentation that its comment names.

All of them speak OpenAI's chat completions, but for Ollama, whose path for these takes no top-k and no min-p, and for
programs, which are sent the pair itself.
"""

import json
import re
from collections.abc import Sequence
from itertools import groupby
from typing import Any

from django.db import models

from prefmh_web.endpoints import replies
from prefmh_web.endpoints.protocol import NEUTRAL, TRIALS, Body, Compared, Path, Question, Server, Writing

__all__ = ["Body", "Compared", "Dialect", "Path", "Question", "Server", "Writing", "dialect_of_host"]


class Dialect(models.TextChoices):
    """The kind of server."""

    OPENAI = "openai", "OpenAI or alike"
    VLLM = "vllm", "vLLM"
    LLAMA_CPP = "llama.cpp", "llama.cpp"
    SGLANG = "sglang", "SGLang"
    OLLAMA = "ollama", "Ollama"
    OPENAI_REASONING = "openai-reasoning", "OpenAI, models that reason"
    AZURE = "azure", "Azure OpenAI"
    AZURE_REASONING = "azure-reasoning", "Azure OpenAI, models that reason"
    OPENROUTER = "openrouter", "OpenRouter"
    ANTHROPIC = "anthropic", "Anthropic"
    GEMINI = "gemini", "Gemini"
    PROGRAM = "program", "A program of your own"

    @property
    def server(self) -> Server:
        """How such a server is spoken to."""
        return _SERVERS[self]

    @property
    def has_token_ids(self) -> bool:
        """Whether token ids can go in and come out."""
        return self.server.has_token_ids

    @property
    def has_confinement(self) -> bool:
        """Whether a reply can be confined to some texts."""
        return self.server.has_confinement


def dialect_of_host(host: str) -> Dialect | None:
    """Return the kind of server that is known to answer under a host's name; None where none is."""
    for dialect, server in _SERVERS.items():
        if any(host == name or (name.startswith(".") and host.endswith(name)) for name in server.hosts):
            return dialect
    return None


def _rule(choices: Sequence[str]) -> str:
    """Return a grammar of nothing but some texts."""
    return "root ::= " + " | ".join(json.dumps(choice) for choice in choices)


# As vLLM and SGLang read it.
_UNCHANGED: Body = NEUTRAL | {"min_p": 0.0, "repetition_penalty": 1.0, "min_tokens": 0, "ignore_eos": False}
_NOT_THINKING: Body = {"chat_template_kwargs": {"enable_thinking": False}}
_MORE_TRIALS = TRIALS | {"top_k": {"top_k": 1}, "min_p": {"min_p": 1.0}}

# It fills in what is missing from the model's own `generation_config.json`, and ignores fields that it does not know,
# the removed `guided_choice` among them, with a 200. `thinking_token_budget` bounds thinking where the server has a
# reasoning parser: https://docs.vllm.ai/en/v0.22.1/api/vllm/v1/sample/thinking_budget_state/ (an excerpt, 2026-11-23).
_VLLM = Server(
    neutral=_UNCHANGED | {"top_k": 0, "stop": [], "stop_token_ids": []},
    confined=lambda choices: {"structured_outputs": {"choice": list(choices)}},
    not_thinking=_NOT_THINKING,
    thinking=lambda most: {"chat_template_kwargs": {"enable_thinking": True}, "thinking_token_budget": most},
    why_plain="vLLM takes top_k, top_p, min_p and penalties from the request, where they are switched off; they "
    "override the model's generation_config.json",
    trials=_MORE_TRIALS,
    completes=True,
    writing=Writing(
        Path("/completions"),
        "max_tokens",
        {"return_token_ids": True, "echo": False},
        replies.completions_continuation,
    ),
)

# It ignores `seed` unless it was started as deterministic. `thinking_budget` is a hint that some chat templates read;
# what holds is the limit, which counts thoughts as well: https://docs.sglang.io/docs/advanced_features/thinking_budget
# (2026-11-23).
_SGLANG = Server(
    neutral=_UNCHANGED | {"top_k": -1},
    confined=lambda choices: {"ebnf": _rule(choices)},
    not_thinking=_NOT_THINKING,
    thinking=lambda most: {"chat_template_kwargs": {"enable_thinking": True, "thinking_budget": most}},
    why_plain="SGLang takes top_k, top_p, min_p and penalties from the request, where they are switched off",
    trials=_MORE_TRIALS,
    completes=True,
)

_ONE_SAMPLER: Body = {"samplers": ["temperature"], "ignore_eos": False, "logit_bias": [], "stop": []}
# For servers that do not know `samplers`.
_NO_SAMPLER: Body = {"top_k": 0, "min_p": 0.0, "typical_p": 1.0, "top_n_sigma": -1.0, "repeat_penalty": 1.0}
_NO_SAMPLER |= {"dry_multiplier": 0.0, "xtc_probability": 0.0, "dynatemp_range": 0.0, "mirostat": 0}
# Its defaults truncate: top-k 40, top-p 0.95, min-p 0.05. It repeats the settings it used, which `replies.py` checks.
# `thinking_budget_tokens` bounds thinking: https://github.com/ggml-org/llama.cpp/pull/23673 (an excerpt, 2026-11-23).
_LLAMA_CPP = Server(
    neutral=NEUTRAL | _ONE_SAMPLER | _NO_SAMPLER,
    confined=lambda choices: {"grammar": _rule(choices)},
    not_thinking=_NOT_THINKING,
    thinking=lambda most: {"chat_template_kwargs": {"enable_thinking": True}, "thinking_budget_tokens": most},
    why_plain="llama.cpp runs only the samplers that the request names, which is the temperature alone",
    # Only the samplers that are named run.
    trials=TRIALS
    | {
        "top_p": {"top_p": 0.0001, "samplers": ["top_p", "temperature"]},
        "top_k": {"top_k": 1, "samplers": ["top_k", "temperature"]},
        "min_p": {"min_p": 1.0, "samplers": ["min_p", "temperature"]},
        "penalties": {"frequency_penalty": 2.0, "repeat_last_n": 64, "samplers": ["penalties", "temperature"]},
    },
    completes=True,
    writing=Writing(
        Path("/completion", is_beside=True),
        "n_predict",
        # Without its cache, the same seed gives the same text whatever was asked before.
        {"return_tokens": True, "cache_prompt": False, "n_keep": 0},
        replies.llama_cpp_continuation,
    ),
)

# https://platform.openai.com/docs/api-reference/chat/create (2026-11-23): a field that is not known is refused with a
# 400. `max_tokens` is deprecated there, and chat models still take it; servers alike often know nothing else, and some
# of them have words of their own for an end.
_OPENAI = Server(hosts=("api.openai.com",), has_detail=True, ends=("stop", "eos", "eos_token", "end_turn", "STOP"))
# https://platform.openai.com/docs/guides/reasoning (2026-11-23): `max_tokens`, `temperature`, `top_p`, penalties and
# log-probabilities are refused with a 400; `max_completion_tokens` bounds thinking and answer together. The thoughts
# are not in the reply. "low" is the least effort that all of these models take.
_LOW = {"reasoning_effort": "low"}
_THINKS: dict[str, Any] = {
    "has_detail": True,
    "limit_field": "max_completion_tokens",
    "bounds_the_answer_alone": False,
    "neutral": {"n": 1, "stream": False},
    "sets_temperature": False,
    "hottest": 1.0,
    "most_log_probabilities": 0,
    "thinking": lambda most: _LOW,
    "cannot_but_think": re.compile(""),
    "least_effort": _LOW,
    "trials": {"seed": {}},
}
# https://learn.microsoft.com/en-us/azure/ai-services/openai/reference (2026-11-23): the key goes into `api-key`, the
# deployment stands in the path and the version in the query; the latest stable version is 2024-10-21, and reasoning
# models need a preview. A filtered prompt is a 400 with the code `content_filter`, a filtered answer has that as its
# `finish_reason`.
_AZURE: dict[str, Any] = {"key_header": "api-key", "key_prefix": "", "is_beside": True, "has_detail": True}
_DEPLOYMENT = "/openai/deployments/{model}/chat/completions?api-version="

# https://openrouter.ai/docs/parameters and https://openrouter.ai/docs/features/provider-routing (2026-11-23): a field
# that a provider does not know is left out without a word, so nobody can say how it samples. With `sort` there is no
# balancing between providers, and without fallbacks a request goes to the first of them or to none; which one it was,
# the reply says. It turns the providers' words for an end into OpenAI's. 1,024 tokens are the least of Anthropic's
# models, which it passes the budget on to.
_ONE_PROVIDER: Body = {"provider": {"sort": "price", "allow_fallbacks": False}}
_OPENROUTER = Server(
    hosts=("openrouter.ai",),
    neutral=NEUTRAL | {"top_k": 0, "min_p": 0.0, "top_a": 0.0, "repetition_penalty": 1.0},
    not_thinking=_ONE_PROVIDER | {"reasoning": {"effort": "none"}},
    thinking=lambda most: _ONE_PROVIDER | {"reasoning": {"max_tokens": most}},
    least_thinking=1_024,
    names_its_provider=True,
    trials=_MORE_TRIALS,
)

# https://docs.anthropic.com/en/api/openai-sdk (an excerpt, 2026-11-28): `max_tokens`, `temperature` up to 1, `top_p`
# and `stop` are taken, `n` must be 1, `thinking` is passed on and the thoughts are not told; `seed`, penalties,
# log-probabilities, `response_format` and `reasoning_effort` are ignored, and so they are not sent. Newer models refuse
# a `top_p`, a temperature other than 1 or thinking switched off, with a 400 that is shown. A budget is at least 1,024,
# and goes with temperature 1.
_ANTHROPIC = Server(
    hosts=("api.anthropic.com",),
    neutral={"n": 1, "stream": False},
    hottest=1.0,
    takes_seed=False,
    most_log_probabilities=0,
    ends=("stop", "end_turn"),
    not_thinking={"thinking": {"type": "disabled"}},
    thinking=lambda most: {"thinking": {"type": "enabled", "budget_tokens": most}},
    least_thinking=1_024,
    thinks_at_any_temperature=False,
    trials={"temperature": {"temperature": 0.01}},
)

# https://ai.google.dev/gemini-api/docs/openai (an excerpt, 2026-11-28): the base URL ends in /v1beta/openai, the key is
# a bearer's. `reasoning_effort` "none" switches thinking off where the model lets it; a budget goes into
# `extra_body.google`, and not beside an effort. `seed` and penalties were refused as unknown names
# (https://github.com/Vali-98/ChatterUI/issues/227, 2025-02), log-probabilities are not documented: none is sent. A
# top-k is fixed by the model, so nobody can say whether it truncates.
_GEMINI = Server(
    hosts=("generativelanguage.googleapis.com",),
    neutral={"top_p": 1.0, "n": 1, "stream": False},
    takes_seed=False,
    most_log_probabilities=0,
    ends=("stop", "STOP"),
    not_thinking={"reasoning_effort": "none"},
    thinking=lambda most: {
        "extra_body": {"google": {"thinking_config": {"thinking_budget": most, "include_thoughts": False}}}
    },
    least_thinking=128,
    cannot_but_think=re.compile(r"gemini-2\.5-pro|gemini-[3-9]"),
    least_effort=_LOW,
    trials={"temperature": {"temperature": 0.01}, "top_p": {"top_p": 0.0001}},
)


class _Ollama(Server):
    """Ollama's own path, since the one that speaks as OpenAI does takes no top-k and no min-p.

    https://docs.ollama.com/api/chat with https://docs.ollama.com/openapi.yaml (2026-11-23). Fields that are missing
    come from the model's Modelfile, or from defaults that truncate (top-k 40, top-p 0.9). In `sample/samplers.go` of
    ollama/ollama (2026-11-23) a top-k of no less than the vocabulary, a top-p of 1 and a min-p of 0 change nothing.
    Prompts that do not fit are cut without a word unless `truncate` is false. Thoughts come in a field of their own;
    the limit, which counts them as well, is what bounds them. Log-probabilities came with version 0.12.11.
    """

    def body(self, question: Question) -> Body:
        """Return the body of a request for one answer."""
        options = self.sampling(question.temperature, question.seed) | {self.limit_field: self.limit(question)}
        return {
            "model": question.model,
            "messages": [each for message in question.messages for each in _pictures_apart(message)],
            "stream": False,
            "think": question.thinking is not None,
            "truncate": False,
            "shift": False,
            "options": options,
            **self.extras(question),
        }

    def as_chat(self, reply: Body) -> Body:
        """Return a reply in the form of a chat completion."""
        choice = {"finish_reason": reply.get("done_reason"), "logprobs": {"content": reply.get("logprobs")}}
        choice |= {"message": reply["message"]} if "message" in reply else {}
        usage = {"prompt_tokens": reply.get("prompt_eval_count"), "completion_tokens": reply.get("eval_count")}
        return {**reply, "choices": [choice], "usage": usage}


def _pictures_apart(message: Body) -> list[Body]:
    """Return a message as one or more: each picture in one of its own, so that it stands where it stood.

    Ollama puts the pictures of a message before its text, and joins messages of one role.
    """
    role, content = message["role"], message["content"]
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
    found: list[Body] = []
    for kind, group in groupby(parts, key=lambda part: part["type"]):
        if kind == "text":
            found.append({"role": role, "content": "\n".join(part["text"] for part in group)})
        else:
            pictures = [part["image_url"]["url"].partition(";base64,")[2] for part in group]
            found.extend({"role": role, "content": "", "images": [picture]} for picture in pictures)
    return found


class _Program(Server):
    """A program of the researcher's, which compares two objects and is no language model.

    It is sent the question with both objects, each as its text or as the data URL of its picture, and answers
    {"choice": "A"} or {"choice": "B"}, with a "version" where it has one. It samples as it likes.
    """

    def body(self, question: Question) -> Body:
        """Return the pair; where there is none, as in a test of the endpoint, the words of the chat."""
        shown = question.compared
        if shown is None:
            shown = Compared("\n".join(str(message["content"]) for message in question.messages), "A", "B")
        return {"question": shown.question, "first": shown.first, "second": shown.second}

    def as_chat(self, reply: Body) -> Body:
        """Return a reply in the form of a chat completion: a program's answer is whole, or an error."""
        choice = {"message": {"content": reply.get("choice")}, "finish_reason": "stop"}
        version = reply.get("version")
        return {"choices": [choice], "error": reply.get("error"), "model": "program", "system_fingerprint": version}


# More tokens than any vocabulary has; in some versions a top-k of 0 stands for none at all.
_OPTIONS: Body = {"top_k": 1_000_000, "top_p": 1.0, "min_p": 0.0, "typical_p": 1.0, "repeat_penalty": 1.0}
_OPTIONS |= {"repeat_last_n": 0, "presence_penalty": 0.0, "frequency_penalty": 0.0, "mirostat": 0, "stop": []}
_TRIED = {"temperature": 0.01, "top_p": 0.0001, "top_k": 1, "min_p": 1.0}
_OLLAMA = _Ollama(
    chat_path="/api/chat",
    is_beside=True,
    limit_field="num_predict",
    neutral=_OPTIONS,
    thinking=lambda most: {},
    why_plain="Ollama takes top_k, top_p, min_p and penalties from the request's options, where they are switched off",
    trials={name: {f"options.{name}": value} for name, value in _TRIED.items()} | {"seed": {}},
    varies=("messages", "options.seed"),
)

_SERVERS: dict[Dialect, Server] = {
    Dialect.OPENAI: _OPENAI,
    Dialect.VLLM: _VLLM,
    Dialect.LLAMA_CPP: _LLAMA_CPP,
    Dialect.SGLANG: _SGLANG,
    Dialect.OLLAMA: _OLLAMA,
    Dialect.OPENAI_REASONING: Server(**_THINKS),
    Dialect.AZURE: Server(
        hosts=(".openai.azure.com", ".cognitiveservices.azure.com"), chat_path=f"{_DEPLOYMENT}2024-10-21", **_AZURE
    ),
    Dialect.AZURE_REASONING: Server(**_THINKS | _AZURE | {"chat_path": f"{_DEPLOYMENT}2025-04-01-preview"}),
    Dialect.OPENROUTER: _OPENROUTER,
    Dialect.ANTHROPIC: _ANTHROPIC,
    Dialect.GEMINI: _GEMINI,
    Dialect.PROGRAM: _Program(
        chat_path="",
        sets_temperature=False,
        hottest=1.0,
        takes_seed=False,
        most_log_probabilities=0,
        trials={},
        varies=("question", "first", "second"),
    ),
}
