"""OpenAI's reasoning models: the o-series, and GPT-5 and later where they think before they answer.

https://platform.openai.com/docs/guides/reasoning and https://platform.openai.com/docs/api-reference/chat/create (as
of 2026-11-23): `max_tokens`, `temperature`, `top_p`, penalties and log-probabilities are refused with a 400;
`max_completion_tokens` bounds thinking and answer together; `usage.completion_tokens` counts both, and
`completion_tokens_details.reasoning_tokens` the first alone. The thoughts are not in the reply. "low" is the least
effort that all of these models take.
"""

from collections.abc import Mapping
from typing import ClassVar

from prefmh_web.endpoints.dialects.openai import OpenAI
from prefmh_web.endpoints.dialects.server import THINKING_TOKENS, Body, Question


class OpenAIReasoning(OpenAI):
    """Models of OpenAI that think before they answer."""

    has_log_probabilities = False
    hottest = 1.0
    sets_temperature = False

    trials: ClassVar[Mapping[str, Body]] = {"seed": {}}
    limit_field = "max_completion_tokens"
    bounds_the_answer_alone = False
    can_think = True

    def body(self, question: Question) -> Body:
        """Return the body of a request for one answer, its thinking bounded by effort and by tokens."""
        thinking = THINKING_TOKENS if question.thinking is None else question.thinking
        return {
            "model": question.model,
            "messages": list(question.messages),
            "max_completion_tokens": question.max_tokens + thinking,
            "reasoning_effort": "low",
            "n": 1,
            "seed": question.seed,
            "stream": False,
        }
