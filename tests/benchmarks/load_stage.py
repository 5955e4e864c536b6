"""What a load is put on: an installation of several processes, with a campaign in it, and its meters."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import psycopg

from tests.benchmarks.load_crowd import Seat
from tests.benchmarks.load_meters import Tree
from tests.support.installations import Installation, wait_for
from tests.support.models import port_from
from tests.support.servers import WITHOUT_FSYNC

_ALL_ASK_S = 300


class Stage(Installation):
    """An installation with as many web processes as asked for, whose PostgreSQL counts statements."""

    def __init__(
        self,
        folder: Path,
        webs: int,
        durability: tuple[str, ...] = WITHOUT_FSYNC,
    ) -> None:
        super().__init__(folder, durability=durability)
        # Not the first that is free: another run may have chosen it and not yet listen.
        self.ports = [port_from(31_000 + 1000 * place) for place in range(webs)]
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
        arguments = json.dumps([people, texts, config])
        path, keys = json.loads(self.run("-m", "tests.support.in_an_installation", "crowd", arguments).stdout)
        open_ones = "SELECT count(*) FROM campaigns_comparison WHERE verdict IS NULL"
        wait_for(lambda: self.query(open_ones)[0][0] >= config["chains"], "all chains ask", seconds=_ALL_ASK_S)
        return [
            Seat(self.urls[place % len(self.urls)], path, f"prefmh_session={key}") for place, key in enumerate(keys)
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
        return {name: sum(map(tree.processor_seconds, kind)) for name, kind in self._roots().items()}

    def _roots(self) -> dict[str, list[int]]:
        kinds = {
            "web": self.webs,
            "worker": [self.worker],
            "beat": [self.beat],
            "PostgreSQL": [self.postgres],
            "Redis": [self.redis],
        }
        return {name: [each._process.pid for each in kind] for name, kind in kinds.items()}
