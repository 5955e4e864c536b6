"""Meters on processes and their children: processor time, memory and cores, as Linux tells them under /proc. And on the
machine: what it is, and how fast in this moment.
"""

from __future__ import annotations

import contextlib
import os
import re
import statistics
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.stats import theilslopes

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_KIB_PER_MIB = 1024
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

    def memory_mib(self, root: int) -> float:
        """Return the resident memory of a process and its children, in MiB.

        What several share counts once, and shared memory not at all: PostgreSQL's buffers fill, as they should.
        """
        return sum(map(_own_memory_mib, self.below(root)))


def _own_memory_mib(pid: int) -> float:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
    except OSError:
        # It has ended in the meantime.
        return 0.0
    kib = {name: int(rest.split()[0]) for name, _, rest in (line.partition(":") for line in lines)}
    return (kib["Pss"] - kib["Pss_Shmem"]) / _KIB_PER_MIB


@dataclass(frozen=True)
class Memory:
    """The memory of some processes over a run, in MiB; the slope, the median of those between samples, in MiB a minute.

    A median (Theil and Sen): PostgreSQL's workers of autovacuum come and go, and would turn a line of least squares.
    """

    start: float
    end: float
    slope: float
    risen: float
    """By how much that line rises over the run."""

    @classmethod
    def over(cls, samples: list[tuple[float, float]]) -> Memory:
        """Summarise samples of (seconds, MiB), at least two."""
        seconds, mib = np.array(samples).T
        per_s = float(theilslopes(mib, seconds).slope)
        return cls(float(mib[0]), float(mib[-1]), 60 * per_s, per_s * float(seconds[-1] - seconds[0]))
