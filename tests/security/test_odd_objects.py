"""Objects that few measures can be taken of: pages and tables show what is known of them, and leave the rest empty."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize("text", ["'.' * 400_000 + 'a'", "'.' * 100_000 + chr(34) * 300_000 + 'a'", "'?!' * 200_000"])
def test_a_text_of_marks_is_measured_before_anybody_gives_up(text):
    """Steps in proportion to its square, as there once were, would take half an hour."""
    command = [sys.executable, "-c", f"import sampler; print(sampler.describe_text({text}).words)"]
    try:
        words = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    except subprocess.TimeoutExpired:
        words = "still counting"
    assert words in ("1\n", "0\n")
