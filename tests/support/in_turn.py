"""Tasks of this process one after another, on one thread: the same campaign then runs the same way every time."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from django.db import connections

from prefmh_web.embedded import tasks


@contextmanager
def tasks_in_turn() -> Iterator[None]:
    """Run every queue's tasks in the order in which they are given; at the end, wait for the last.

    Embedded, each queue has threads of its own, and which of two tasks comes first is chance. The thread keeps no
    connection to the database when it goes.
    """
    usual = dict(tasks._pools)
    with ThreadPoolExecutor(1, thread_name_prefix="task-in-turn") as one:
        tasks._pools.update(dict.fromkeys(usual, one))
        try:
            yield
            tasks.wait_until_idle()
        finally:
            one.submit(connections.close_all).result()
            tasks._pools.update(usual)
