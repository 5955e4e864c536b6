"""How many tokens a picture is, by the rule that a server's documentation gives: an estimate, before anything is asked.

Rules change with models, and each model has its own figures: what *Start* and the campaign's page count is what a
picture really took. Read as excerpts on 2026-11-23.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from prefmh_web.endpoints.servers import Dialect


@dataclass(frozen=True)
class PictureTokens:
    """An estimate for one picture, and the rule and the page that it is from."""

    tokens: int
    rule: str

    def __str__(self) -> str:
        return f"about {self.tokens} ({self.rule})"


def estimated(dialect: str, width: int, height: int, detail: str | None = None) -> PictureTokens | None:
    """Return how many tokens a picture of so many pixels is about; None where no rule is documented.

    Args:
        detail: "low", "high" or "auto", which counts as "high"; None for auto.
    """
    if dialect in (Dialect.OPENAI, Dialect.AZURE, Dialect.OPENAI_REASONING, Dialect.AZURE_REASONING):
        return PictureTokens(_openai(width, height, detail), _OPENAI)
    if dialect == Dialect.ANTHROPIC:
        return PictureTokens(_anthropic(width, height), _ANTHROPIC)
    if dialect == Dialect.GEMINI:
        return PictureTokens(_gemini(width, height), _GEMINI)
    return None


_OPENAI = (
    "OpenAI's rule for GPT-4o: 85, and 170 for each tile of 512 pixels; other models differ; "
    "platform.openai.com/docs/guides/images-vision, 2026-11-23"
)
_ANTHROPIC = (
    "Anthropic's rule: pixels / 750, after the longer side is at most 1568 pixels; newer models differ; "
    "platform.claude.com/docs/en/build-with-claude/vision, 2026-11-23"
)
_GEMINI = (
    "Gemini's rule: 258 up to 384 by 384 pixels, else 258 for each tile of 768; "
    "ai.google.dev/gemini-api/docs/tokens, 2026-11-23"
)


def _openai(width: int, height: int, detail: str | None) -> int:
    if detail == "low":
        return 85
    # Made to fit into 2048 by 2048, then its shorter side into 768; never made larger.
    shrunk = min(1.0, 2048 / max(width, height))
    shrunk *= min(1.0, 768 / (shrunk * min(width, height)))
    across, down = (math.ceil(round(side * shrunk) / 512) for side in (width, height))
    return 85 + 170 * across * down


def _anthropic(width: int, height: int) -> int:
    shrunk = min(1.0, 1568 / max(width, height))
    return min(1600, math.ceil(width * shrunk * height * shrunk / 750))


def _gemini(width: int, height: int) -> int:
    if max(width, height) <= 384:
        return 258
    return 258 * math.ceil(width / 768) * math.ceil(height / 768)
