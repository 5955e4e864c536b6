"""SGLang.

It ignores `seed` unless it was started as deterministic. `thinking_budget` is a hint that some chat templates read
(https://docs.sglang.io/docs/advanced_features/thinking_budget, as of 2026-11-23).
"""

import json
from collections.abc import Mapping, Sequence
from typing import ClassVar

from prefmh_web.endpoints.dialects.completing import Completing
from prefmh_web.endpoints.dialects.server import Body, Server


class SGLang(Server):
    """SGLang's own server."""

    has_confinement = True
    why_plain = "SGLang takes top_k, top_p, min_p and penalties from the request, where they are switched off"
    plain: ClassVar[Body] = {"top_k": -1, "min_p": 0.0, "repetition_penalty": 1.0, "min_tokens": 0, "ignore_eos": False}
    not_thinking: ClassVar[Body] = {"chat_template_kwargs": {"enable_thinking": False}}
    can_think = True

    trials: ClassVar[Mapping[str, Body]] = {
        **Server.trials,
        "top_k": {"top_k": 1},
        "min_p": {"min_p": 1.0},
    }

    def thinking(self, most: int) -> Body:
        """Return the hint to the chat template; what holds is the limit, which counts thoughts as well."""
        return {"chat_template_kwargs": {"enable_thinking": True, "thinking_budget": most}}

    def completing(self) -> Server:
        """Return how it is asked to go on from a text."""
        return Completing(self)

    def confined(self, choices: Sequence[str]) -> Body:
        """Return the field that confines an answer to some texts."""
        return {"ebnf": "root ::= " + " | ".join(json.dumps(choice) for choice in choices)}
