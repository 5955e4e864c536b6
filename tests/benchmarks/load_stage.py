"""What a load is put on: an installation of several processes, two campaigns in it, and meters on its processes."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path

import psycopg

from prefmh_web.embedded.server import free_port
from tests.benchmarks.load_crowd import Seat
from tests.support.processes import Installation, wait_for

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
TEXTS = 200
# The busy campaign always wants votes; in the scarce one every vote is a verdict and somebody always waits for it.
BUSY_JUDGES = [{"question": "Which is darker?", "budget": 4}, {"question": "Which is better?", "budget": 2}]
SCARCE_JUDGES = [{"question": "Which is darker?", "budget": 1}]
_SOCKETS_PER_SCARCE_CHAIN = 2


@dataclass(frozen=True)
class Campaigns:
    """The two campaigns and the seats of their people."""

    busy: int
    scarce: int
    seats: list[Seat]


class Stage(Installation):
    """An installation with as many web processes as asked for, whose PostgreSQL counts statements."""

    def __init__(self, folder: Path, webs: int) -> None:
        super().__init__(folder)
        # Not the first that is free: another run may have chosen it and not yet listen.
        first = 31_000 + 10 * (os.getpid() % 100)
        self.ports = [free_port("127.0.0.1", None, first=first + 1000 * place, tries=1000) for place in range(webs)]
        self.urls = [f"http://127.0.0.1:{port}" for port in self.ports]

    def start(self) -> None:
        # It counts what it loads a library for, and it loads that when it starts.
        self.postgres.start()
        with psycopg.connect(self.postgres.url(), autocommit=True) as connection:
            connection.execute("ALTER SYSTEM SET shared_preload_libraries = 'pg_stat_statements'")
        self.postgres.kill()
        super().start()
        self.query("CREATE EXTENSION pg_stat_statements")

    def make(self, sockets: int, waiting: int, chains: int) -> Campaigns:
        """Start the busy campaign for `sockets` people, and the scarce one for `waiting` of them."""
        asked = json.dumps({"sockets": sockets, "waiting": waiting, "chains": chains})
        made = json.loads(self.run("-m", "tests.benchmarks.load_stage", asked).stdout)
        open_ones = "SELECT count(*) FROM campaigns_comparison WHERE verdict IS NULL"
        wait_for(lambda: self.query(open_ones)[0][0] >= chains, "all chains ask", seconds=300)
        seats = [
            Seat(self.urls[place % len(self.urls)], path, f"prefmh_session={key}")
            for place, (path, key) in enumerate(made["seats"])
        ]
        return Campaigns(made["busy"], made["scarce"], seats)

    def stop_serving(self) -> None:
        """Stop everything but the two servers."""
        for process in (*self.webs, self.worker, self.beat):
            process.kill()

    def statements(self) -> list[tuple[float, float, float, str]]:
        """Return calls, seconds, rows and text of the statements sent since the last reset, most frequent first."""
        # What checks foreign keys at a commit is PostgreSQL's own.
        return self.query(
            "SELECT calls::float, total_exec_time / 1000, rows::float, regexp_replace(query, '\\s+', ' ', 'g')"
            " FROM pg_stat_statements WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database())"
            " AND query NOT LIKE '%%pg_stat_statements%%' AND query NOT LIKE '%%FOR KEY SHARE OF x' ORDER BY calls DESC"
        )

    def processor_seconds(self) -> dict[str, float]:
        """Return the user and system time that each kind of process, and this one, has taken so far."""
        roots = {
            "web": self.webs,
            "worker": [self.worker],
            "beat": [self.beat],
            "PostgreSQL": [self.postgres],
            "Redis": [self.redis],
        }
        tree = _processes()
        seconds = {name: sum(_seconds(tree, each._process.pid) for each in kind) for name, kind in roots.items()}
        own = os.times()
        return seconds | {"(these voters)": own.user + own.system}


def _processes() -> dict[int, tuple[int, float]]:
    """Return, for each process, its parent and the seconds that it and its ended children took."""
    found = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            # The name, in brackets, may hold anything.
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        found[int(path.parent.name)] = (int(fields[1]), sum(map(int, fields[11:15])) / TICKS_PER_S)
    return found


def _seconds(tree: dict[int, tuple[int, float]], root: int) -> float:
    children = [pid for pid, (parent, _) in tree.items() if parent == root]
    # One that has been killed takes no more.
    own = tree[root][1] if root in tree else 0.0
    return own + sum(_seconds(tree, child) for child in children)


def _make(sockets: int, waiting: int, chains: int) -> dict:
    """Make campaigns and people, in a process of the installation."""
    from django.contrib.auth import get_user_model

    from prefmh_web.campaigns import lifecycle
    from tests.support.stack import make_draft, make_recipe

    file = "text\n" + "".join(f"On day {day} the sea was grey and nobody came to the house.\n" for day in range(TEXTS))
    owner = get_user_model().objects.create(username="ada")
    sizes = (
        {"chains": chains, "judges": BUSY_JUDGES},
        {
            "chains": max(1, waiting // _SOCKETS_PER_SCARCE_CHAIN),
            "judges": SCARCE_JUDGES,
        },
    )
    busy, scarce = [make_draft(owner, file=file, recipe=make_recipe(steps=5000, **size)) for size in sizes]
    lifecycle.start(busy)
    lifecycle.start(scarce)
    seats = [seat_in(busy) for _ in range(sockets - waiting)] + [seat_in(scarce) for _ in range(waiting)]
    return {"busy": busy.pk, "scarce": scarce.pk, "seats": seats}


def seat_in(campaign) -> tuple[str, str]:
    """Join as a new person; return the invitation's path and the session's key."""
    from django.contrib.sessions.backends.db import SessionStore

    from prefmh_web.annotate import admission

    session = SessionStore()
    admission.join(session, campaign.invitations.get())
    session.save()
    return campaign.invitations.get().get_absolute_url(), session.session_key


if __name__ == "__main__":
    import django

    django.setup()
    print(json.dumps(_make(**json.loads(sys.argv[1]))))
