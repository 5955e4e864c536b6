"""What a load is put on: an installation of several processes, with a campaign in it; and meters on the processor time
of processes, as Linux tells it under /proc, and on the machine: what it is, and how fast in this moment.
"""

from __future__ import annotations

import contextlib
import os
import re
import statistics
import subprocess
import time
from pathlib import Path
from typing import Any

import psycopg

from tests.benchmarks.load_crowd import Seat
from tests.support.installations import Installation, wait_for
from tests.support.models import port_from
from tests.support.servers import WITHOUT_FSYNC

_ALL_ASK_S = 300
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_LOOPS, _TURNS = 5, 5_000_000


class Stage(Installation):
    """An installation with as many web processes as asked for, whose PostgreSQL counts statements."""

    def __init__(self, folder: Path, webs: int, durability: tuple[str, ...] = WITHOUT_FSYNC) -> None:
        super().__init__(folder, durability=durability)
        # Not the first that is free: another run may have chosen it and not yet listen.
        self.ports = [port_from(31_000 + 1000 * index) for index in range(webs)]
        self.urls = [f"http://127.0.0.1:{port}" for port in self.ports]

    def start(self) -> None:
        # It counts what it loads a library for, and it loads that when it starts.
        self.postgres.start()
        with psycopg.connect(self.postgres.url(), autocommit=True) as connection:
            connection.execute("ALTER SYSTEM SET shared_preload_libraries = 'pg_stat_statements'")
        self.postgres.kill()
        super().start()
        self.query("CREATE EXTENSION pg_stat_statements")

    def seats(self, people: int, texts: int, **config: Any) -> list[Seat]:
        """Start a campaign of so many texts, wait until its chains ask, and return the seats of its people."""
        path, keys = self.call("crowd", people, texts, config)
        open_ones = "SELECT count(*) FROM campaigns_comparison WHERE verdict IS NULL"
        wait_for(lambda: self.query(open_ones)[0][0] >= config["chains"], "all chains ask", seconds=_ALL_ASK_S)
        return [
            Seat(self.urls[index % len(self.urls)], path, f"prefmh_session={key}") for index, key in enumerate(keys)
        ]

    def stop_serving(self) -> None:
        """Stop everything but the two servers."""
        for process in (*self.webs, self.worker, self.beat):
            process.kill()

    def statements(self) -> float:
        """Return how many statements were sent since the last reset."""
        # What checks foreign keys at a commit is PostgreSQL's own.
        [[calls]] = self.query(
            "SELECT sum(calls)::float FROM pg_stat_statements"
            " WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database())"
            " AND query NOT LIKE '%%pg_stat_statements%%' AND query NOT LIKE '%%FOR KEY SHARE OF x'"
        )
        return calls

    def processor_seconds(self) -> dict[str, float]:
        """Return the user and system time that each kind of process has taken so far."""
        tree = Tree()
        return {name: sum(map(tree.processor_seconds, kind)) for name, kind in self.roots().items()}

    def roots(self) -> dict[str, list[int]]:
        """Return the numbers of the processes of each kind, whose children are of the same."""
        kinds = {"web": self.webs, "worker": [self.worker], "beat": [self.beat]}
        kinds |= {"PostgreSQL": [self.postgres], "Redis": [self.redis]}
        return {name: [each.pid for each in kind] for name, kind in kinds.items()}


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
