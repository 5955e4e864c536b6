"""Meters on the processor time of processes and their children, as Linux tells it under /proc; and on the machine: what
it is, and how fast in this moment.
"""

from __future__ import annotations

import contextlib
import os
import re
import statistics
import subprocess
import time
from pathlib import Path

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_LOOPS, _TURNS = 5, 5_000_000


def processor() -> str:
    """Return the processor's name."""
    found = re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return found[1] if found else "unknown"


def loop_s() -> float:
    """Return the processor seconds that Python takes for five million multiplications: the median of five times.

    Where a machine is shared, that changes by the minute, and what a vote costs with it.
    """
    taken = []
    for _ in range(_LOOPS):
        start = time.process_time()
        for number in range(_TURNS):
            _ = number * number
        taken.append(time.process_time() - start)
    return statistics.median(taken)


class Tree:
    """The processes of this machine at one moment."""

    def __init__(self) -> None:
        self._seconds: dict[int, float] = {}
        self._children: dict[int, list[int]] = {}
        for path in Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError):
                # The name, in brackets, may hold anything.
                fields = path.read_text().rpartition(")")[2].split()
                pid = int(path.parent.name)
                self._seconds[pid] = sum(map(int, fields[11:15])) / _TICKS_PER_S
                self._children.setdefault(int(fields[1]), []).append(pid)

    def below(self, root: int) -> list[int]:
        """Return a process and all that descend from it; nothing if it has gone."""
        if root not in self._seconds:
            return []
        return [root] + [each for child in self._children.get(root, []) for each in self.below(child)]

    def processor_seconds(self, root: int) -> float:
        """Return the user and system time that a process, its children and those that have ended took."""
        return sum(self._seconds[pid] for pid in self.below(root))


def commit() -> str:
    """Return the full number of the commit that lies here."""
    return subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=Path(__file__).parent, capture_output=True, text=True, check=True
    ).stdout.strip()
