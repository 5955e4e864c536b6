"""llama.cpp's server.

Its defaults truncate: top-k 40, top-p 0.95, min-p 0.05. It repeats the settings it used, which `replies.py` checks.
`thinking_budget_tokens` bounds thinking for one request (https://github.com/ggml-org/llama.cpp/pull/23673, read as an
excerpt on 2026-11-23).
"""

import json
from collections.abc import Mapping, Sequence
from typing import ClassVar

from prefmh_web.endpoints import replies
from prefmh_web.endpoints.dialects.completing import Completing
from prefmh_web.endpoints.dialects.server import Body, Path, Server
from prefmh_web.endpoints.dialects.token_ids import WithTokenIds


class LlamaCpp(WithTokenIds):
    """llama.cpp's own server."""

    has_confinement = True
    why_plain = "llama.cpp runs only the samplers that the request names, which is the temperature alone"
    plain: ClassVar[Body] = {
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
    }
    not_thinking: ClassVar[Body] = {"chat_template_kwargs": {"enable_thinking": False}}
    can_think = True

    # Only the samplers that are named run.
    trials: ClassVar[Mapping[str, Body]] = {
        **Server.trials,
        "top_p": {"top_p": 0.0001, "samplers": ["top_p", "temperature"]},
        "top_k": {"top_k": 1, "samplers": ["top_k", "temperature"]},
        "min_p": {"min_p": 1.0, "samplers": ["min_p", "temperature"]},
        "penalties": {"frequency_penalty": 2.0, "repeat_last_n": 64, "samplers": ["penalties", "temperature"]},
    }

    def thinking(self, most: int) -> Body:
        """Return the field that ends a thought."""
        return {"chat_template_kwargs": {"enable_thinking": True}, "thinking_budget_tokens": most}

    def completing(self) -> Server:
        """Return how it is asked to go on from a text."""
        return Completing(self)

    def confined(self, choices: Sequence[str]) -> Body:
        """Return the field that confines an answer to some texts."""
        return {"grammar": "root ::= " + " | ".join(json.dumps(choice) for choice in choices)}

    def completion_path(self) -> Path:
        """Return where a completion goes."""
        return Path("/completion", is_beside=True)

    def completion(self, model: str, prompt: Sequence[int], *, limit: int, temperature: float, seed: int) -> Body:
        """Return the body of a completion with token ids in and out."""
        # Without its cache, the same seed gives the same text whatever was asked before.
        own = {"n_predict": limit, "return_tokens": True, "cache_prompt": False, "n_keep": 0}
        return {"prompt": list(prompt), **own, **self.sampling(temperature, seed)}

    def continuation(
        self, reply: Body, prompt: Sequence[int], *, limit: int, temperature: float
    ) -> replies.Continuation:
        """Return what a prompt was continued with, having checked that it was sampled as it was told to."""
        return replies.llama_cpp_continuation(reply, prompt, limit, temperature)
