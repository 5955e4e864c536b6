"""vLLM.

It fills in what is missing from the model's own `generation_config.json`, and ignores fields that it does not know, the
removed `guided_choice` among them, with a 200. `thinking_token_budget` bounds thinking where the server has a reasoning
parser (https://docs.vllm.ai/en/v0.22.1/api/vllm/v1/sample/thinking_budget_state/, read as an excerpt on 2026-11-23).
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from prefmh_web.endpoints import replies
from prefmh_web.endpoints.dialects.completing import Completing
from prefmh_web.endpoints.dialects.server import Body, Path, Server
from prefmh_web.endpoints.dialects.token_ids import WithTokenIds


class Vllm(WithTokenIds):
    """vLLM's own server."""

    has_confinement = True
    why_plain = (
        "vLLM takes top_k, top_p, min_p and penalties from the request, where they are switched off; they "
        "override the model's generation_config.json"
    )
    plain: ClassVar[Body] = {
        "top_k": 0,
        "min_p": 0.0,
        "repetition_penalty": 1.0,
        "min_tokens": 0,
        "ignore_eos": False,
        "stop": [],
        "stop_token_ids": [],
    }
    not_thinking: ClassVar[Body] = {"chat_template_kwargs": {"enable_thinking": False}}
    can_think = True

    trials: ClassVar[Mapping[str, Body]] = {
        **Server.trials,
        "top_k": {"top_k": 1},
        "min_p": {"min_p": 1.0},
    }

    def thinking(self, most: int) -> Body:
        """Return the field that ends a thought, which a server reads that was started with a reasoning parser."""
        return {"chat_template_kwargs": {"enable_thinking": True}, "thinking_token_budget": most}

    def completing(self) -> Server:
        """Return how it is asked to go on from a text."""
        return Completing(self)

    def confined(self, choices: Sequence[str]) -> Body:
        """Return the field that confines an answer to some texts."""
        return {"structured_outputs": {"choice": list(choices)}}

    def completion_path(self) -> Path:
        """Return where a completion goes."""
        return Path("/completions")

    def completion(self, model: str, prompt: Sequence[int], *, limit: int, temperature: float, seed: int) -> Body:
        """Return the body of a completion with token ids in and out."""
        own = {"max_tokens": limit, "return_token_ids": True, "echo": False}
        return {"model": model, "prompt": list(prompt), **own, **self.sampling(temperature, seed)}

    def continuation(
        self, reply: Body, prompt: Sequence[int], *, limit: int, temperature: float
    ) -> replies.Continuation:
        """Return what a prompt was continued with."""
        return replies.completions_continuation(reply, prompt, limit)
