"""Real programs for SCORERS, written as small Python scripts."""

import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from prefmh_web.scorers.kinds import commands

Declare = Callable[..., None]
READS = "import json, os, sys, time\nfor number, line in enumerate(sys.stdin):\n    told = json.loads(line)\n"
"""The head of a scorer that reads its lines."""


@pytest.fixture
def declare(tmp_path: Path, settings) -> Iterator[Declare]:
    """Declare a program in SCORERS: the lines of the loop over what it is sent, or, with `whole`, all of it."""

    def declared(body: str, name: str = "length", seconds: float = 20, whole: bool = False) -> None:
        script = tmp_path / f"{name}.py"
        indented = body if whole else READS + "".join(f"    {line}\n" for line in body.splitlines())
        script.write_text(indented)
        settings.SCORERS = {**settings.SCORERS, name: (sys.executable, str(script))}
        settings.SCORER_TIMEOUT_SECONDS = seconds

    settings.SCORERS = {}
    yield declared
    commands.close_all()
    commands.forget()


def is_gone(pid: int) -> bool:
    """Return whether a process ends soon: one that was killed is there until somebody has taken note."""
    for _ in range(100):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.05)
    return False
