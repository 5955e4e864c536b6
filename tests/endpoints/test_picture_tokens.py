"""Tokens of a picture by documented rules; the figures are those of the pages' own examples, worked out by hand."""

import pytest

from prefmh_web.endpoints.picture_tokens import estimated
from prefmh_web.endpoints.servers import Dialect


@pytest.mark.parametrize(
    ("dialect", "size", "detail", "tokens"),
    [
        # 2048 by 4096 becomes 768 by 1536, six tiles.
        (Dialect.OPENAI, (2048, 4096), "high", 1105),
        (Dialect.OPENAI, (4096, 8192), "low", 85),
        (Dialect.AZURE, (420, 320), None, 255),
        (Dialect.ANTHROPIC, (200, 200), None, 54),
        (Dialect.ANTHROPIC, (4000, 4000), None, 1600),
        (Dialect.GEMINI, (384, 384), None, 258),
        (Dialect.GEMINI, (960, 540), None, 516),
    ],
)
def test_a_picture_is_as_many_tokens_as_the_rule_says(dialect, size, detail, tokens):
    found = estimated(dialect, *size, detail)
    assert found.tokens == tokens
    assert "2026-11-23" in str(found)


@pytest.mark.parametrize("dialect", [Dialect.VLLM, Dialect.LLAMA_CPP, Dialect.OLLAMA, Dialect.OPENROUTER])
def test_where_no_rule_is_documented_nothing_is_said(dialect):
    assert estimated(dialect, 512, 512) is None
