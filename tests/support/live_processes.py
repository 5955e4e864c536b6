"""The live site of the tests as separate processes, on the database and the Redis of the run itself.

The same tests drive it as drive the server on a thread: they look at the record as one more process does.
"""

import contextlib
import os
import signal
from collections.abc import Iterator
from urllib.parse import urlsplit

from django.db import connection

from tests.support.processes import Processes, wait_for
from tests.support.relay import Relay
from tests.support.server_stack import environment
from tests.support.stack import wait_until_idle


@contextlib.contextmanager
def on_the_test_database(processes: Processes) -> Iterator[None]:
    """Let the processes serve from the database that pytest has made; beat waits for a live site."""
    url = urlsplit(os.environ["DATABASE_URL"])._replace(path=f"/{connection.settings_dict['NAME']}")
    servers = {name: os.environ[name] for name in environment("", "") if name in os.environ}
    try:
        processes.serve({**servers, "DATABASE_URL": url.geturl()})
        processes.beat.send(signal.SIGSTOP)
        yield
    finally:
        processes.stop()


class LiveProcesses:
    """Both web processes behind one address, a worker and beat, for one test."""

    def __init__(self, processes: Processes) -> None:
        self._processes, self._relay = processes, Relay(processes.ports)
        self.url, self.drop_connections = self._relay.url, self._relay.drop_connections

    def start(self) -> None:
        self._before = {each.name: len(each.log()) for each in self._processes.all}
        self._processes.beat.send(signal.SIGCONT)
        self._relay.start()

    def stop(self) -> None:
        """Let everything come to rest, so that the database can be emptied, and look what was logged meanwhile."""
        self._relay.stop()
        self._processes.beat.send(signal.SIGSTOP)
        wait_until_idle()
        wait_for(lambda: not _others_at_work(), "no other process in a transaction")
        for process in self._processes.all:
            process.assert_runs()
            log = process.log()[self._before[process.name] :]
            assert "Traceback" not in log, log


def _others_at_work() -> int:
    with connection.cursor() as cursor:
        others = "datname = current_database() AND pid <> pg_backend_pid() AND state <> 'idle'"
        cursor.execute(f"SELECT count(*) FROM pg_stat_activity WHERE {others}")
        return cursor.fetchone()[0]
