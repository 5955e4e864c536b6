"""Hugging Face's Text Generation Inference.

https://huggingface.co/docs/text-generation-inference/messages_api (as of 2026-11-23); what it refuses and what it
takes a missing field for is read in `router/src/validation.rs` of huggingface/text-generation-inference (as of
2026-11-23): a `top_p` of 1 is refused and is the default, top-k and typical-p are off unless they are sent. It
returns the log-probabilities of as many first tokens as `--max-top-n-tokens` says, 5 by default.
"""

import re
from collections.abc import Mapping, Sequence
from typing import ClassVar

from prefmh_web.endpoints.dialects.completing import CompletingPlainly
from prefmh_web.endpoints.dialects.server import Body, Server


class Tgi(Server):
    """Text Generation Inference's own server."""

    has_confinement = True
    most_log_probabilities = 5
    why_plain = "TGI truncates only where the request asks for it, and this one leaves top_p, top_k and typical_p out"

    trials: ClassVar[Mapping[str, Body]] = {
        "temperature": {"temperature": 0.01},
        "top_p": {"top_p": 0.0001},
        "seed": {},
        "penalties": {"frequency_penalty": 2.0},
    }

    def sampling(self, temperature: float, seed: int) -> Body:
        """Return the fields of plain temperature sampling."""
        # Earlier versions made a repetition penalty of 2 out of a presence penalty of 0.
        return {"temperature": temperature, "frequency_penalty": 0.0, "seed": seed, "stream": False}

    def completing(self) -> Server:
        """Return how it is asked to go on from a text."""
        return CompletingPlainly(self)

    def confined(self, choices: Sequence[str]) -> Body:
        """Return the field that confines an answer to some texts."""
        return {"response_format": {"type": "regex", "value": "|".join(f"({re.escape(choice)})" for choice in choices)}}
