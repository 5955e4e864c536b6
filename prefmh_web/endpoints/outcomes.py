"""What single requests came to: for the counts, for a test of fields, and for a person to look at."""

from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True)
class Call:
    """What one request came to: the kind of error or None, its time, its tokens, and whether it was for a label: those
    take as long as the server has other work, and others as long as their texts are.
    """

    error: str | None
    seconds: float
    tokens_in: int = 0
    tokens_out: int = 0
    is_for_label: bool = False


@dataclass(frozen=True)
class Trial:
    """What a question with some fields changed came to."""

    text: str | None
    tokens_in: int
    tokens_out: int


@dataclass(frozen=True)
class Heard:
    """One reply as a person may look at it.

    Args:
        text: of the answer; empty where there is none.
        reasoning: what the model thought, where the server says it. It is no part of the answer.
        tokens: the most probable first tokens with their log-probabilities, where they were asked for.
    """

    text: str
    reasoning: str
    tokens: tuple[tuple[str, float], ...]
    seconds: float
    tokens_in: int
    tokens_out: int


class Effect(StrEnum):
    """What a test saw a server do with a field of a request, or with its own law."""

    OBEYED = "obeyed"
    REFUSED = "refused"
    IGNORED = "ignored"
    UNTOLD = "cannot be told"


@dataclass(frozen=True)
class Seen:
    """What was seen of one field, or of the law, in words."""

    field: str
    effect: str
    evidence: str
