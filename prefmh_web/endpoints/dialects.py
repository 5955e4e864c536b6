"""What each kind of server has to be told, and where it puts its answer.

Every field that shapes the sampling is sent every time: servers fill in what is missing from the model's own
`generation_config.json`, or from defaults that truncate (llama.cpp: top-k 40, top-p 0.95, min-p 0.05).

    vLLM        ignores fields it does not know, the removed `guided_choice` among them, with a 200
    llama.cpp   repeats the settings it used, which `replies.py` checks
    SGLang      ignores `seed` unless started as deterministic
    OpenAI      refuses fields it does not know with a 400
"""

import json
from collections.abc import Sequence
from typing import Any

from django.db import models

Body = dict[str, Any]
# OpenAI's and vLLM's limit; the labels are among the first few where the model is willing to answer.
MOST_LOG_PROBABILITIES = 20


class Dialect(models.TextChoices):
    """The kind of server."""

    OPENAI = "openai", "OpenAI or alike"
    VLLM = "vllm", "vLLM"
    LLAMA_CPP = "llama.cpp", "llama.cpp"
    SGLANG = "sglang", "SGLang"

    @property
    def has_token_ids(self) -> bool:
        """Whether token ids can go in and come out."""
        return self in (Dialect.VLLM, Dialect.LLAMA_CPP)

    @property
    def has_confinement(self) -> bool:
        """Whether a reply can be confined to some texts."""
        return self is not Dialect.OPENAI


# Top-k, top-p, min-p, penalties and all else that changes probabilities, off.
_PLAIN: dict[Dialect, Body] = {
    Dialect.OPENAI: {},
    Dialect.VLLM: {
        "top_k": 0,
        "min_p": 0.0,
        "repetition_penalty": 1.0,
        "min_tokens": 0,
        "ignore_eos": False,
        "stop": [],
        "stop_token_ids": [],
    },
    Dialect.SGLANG: {"top_k": -1, "min_p": 0.0, "repetition_penalty": 1.0, "min_tokens": 0, "ignore_eos": False},
    Dialect.LLAMA_CPP: {
        "samplers": ["temperature"],
        "top_k": 0,
        "min_p": 0.0,
        "typical_p": 1.0,
        "top_n_sigma": -1.0,
        "repeat_penalty": 1.0,
        "dry_multiplier": 0.0,
        "xtc_probability": 0.0,
        "dynatemp_range": 0.0,
        "mirostat": 0,
        "ignore_eos": False,
        "logit_bias": [],
        "stop": [],
    },
}
# Models that think first would use up their few tokens, and say nothing.
_NO_THINKING = {"chat_template_kwargs": {"enable_thinking": False}}


def sampling(dialect: str, temperature: float, seed: int) -> Body:
    """Return the fields of plain temperature sampling."""
    return {
        "temperature": temperature,
        "top_p": 1.0,
        "presence_penalty": 0.0,
        "frequency_penalty": 0.0,
        # One answer a request: vLLM gives the second of n the seed after the first one's.
        "n": 1,
        "seed": seed,
        "stream": False,
        **_PLAIN[Dialect(dialect)],
    }


def chat(dialect: str, model: str, messages: list[Body], *, max_tokens: int, fields: Body) -> Body:
    """Return the body of a chat completion."""
    thinking = {} if dialect == Dialect.OPENAI else _NO_THINKING
    return {"model": model, "messages": messages, "max_tokens": max_tokens, **thinking, **fields}


def confined(dialect: str, choices: Sequence[str]) -> Body:
    """Return the fields that confine a reply to some texts; none where the server knows no such field."""
    if dialect == Dialect.VLLM:
        return {"structured_outputs": {"choice": list(choices)}}
    if dialect == Dialect.LLAMA_CPP:
        return {"grammar": "root ::= " + " | ".join(json.dumps(choice) for choice in choices)}
    if dialect == Dialect.SGLANG:
        return {"ebnf": "root ::= " + " | ".join(json.dumps(choice) for choice in choices)}
    return {}


def log_probabilities() -> Body:
    """Return the fields that ask for the most probable first tokens."""
    return {"logprobs": True, "top_logprobs": MOST_LOG_PROBABILITIES}


def completion(dialect: str, model: str, prompt: Sequence[int], *, limit: int, fields: Body) -> Body:
    """Return the body of a completion with token ids in and out, for a dialect that has them."""
    if dialect == Dialect.LLAMA_CPP:
        # Without its cache, the same seed gives the same text whatever was asked before.
        own = {"n_predict": limit, "return_tokens": True, "cache_prompt": False, "n_keep": 0}
        return {"prompt": list(prompt), **own, **fields}
    own = {"max_tokens": limit, "return_token_ids": True, "echo": False}
    return {"model": model, "prompt": list(prompt), **own, **fields}
