"""Real programs for SCORERS, written as small Python scripts."""

import os
import shlex
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from prefmh_web.scorers.kinds import commands

Declare = Callable[..., None]
READS = "import json, os, sys, time\nfor number, line in enumerate(sys.stdin):\n    told = json.loads(line)\n"
"""The head of a scorer that reads its lines."""
# Stand-ins for the scorers of experiments, by role: numbers that depend on the object and on what is told about it.
_STAND_INS = {
    "quality": "0.05 + 0.9 * (sum(map(ord, told['content'] + told['prompt'])) % 101) / 100",
    "xcomet": "(len(told['content']) + len(told['prompt']) + len(told['reference'])) / 1000",
    "aesthetic": "len(told['content']) % 100 / 10",
    "molskill": "-len(told['content']) / 10",
}


@dataclass(frozen=True)
class Programs:
    """Stand-ins for scorers.

    Args:
        environment: what declares them, each by its role's name.
        told: by role, where its program writes down each line that it is sent.
    """

    environment: Mapping[str, str]
    told: dict[str, Path]


def declared(folder: Path, roles: Iterable[str]) -> Programs:
    """Write a program for each role of an experiment."""
    words, told = [], {}
    for role in roles:
        script, told[role] = folder / f"{role}.py", folder / f"{role}.told"
        script.write_text(
            f"{READS}    open({str(told[role])!r}, 'a').write(line)\n    print({_STAND_INS[role]}, flush=True)\n"
        )
        words.append(f"{role}={shlex.quote(sys.executable)} {shlex.quote(str(script))}")
    return Programs({"SCORERS": ",".join(words)} if words else {}, told)


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
