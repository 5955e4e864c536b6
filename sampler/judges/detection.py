"""Detectors: what a model is shown that says whether something is in an object.

The message is the question and the object, and nothing else. Detectors are asked greedily, at temperature 0: their
answer is a measurement, not a draw. `replies.parse_yes_or_no` reads it.
"""

from __future__ import annotations

from typing import Final

from sampler.judges.own_prompts import OwnPrompt
from sampler.judges.templates import PromptTemplate

_TEMPLATE: Final = PromptTemplate(user="{{question}}\n\n{{object}}")


def detection_prompt(question: str) -> OwnPrompt:
    """Return what a detector is shown, without the object.

    Args:
        question: whole, as it is to stand there: "Is a red mushroom in the image? Answer yes or no."
    """
    return OwnPrompt(_TEMPLATE, question, objects=1)
