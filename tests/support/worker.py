"""Celery workers of the server stack's tests, and when they have nothing left to do."""

import contextlib
import threading
import time
from collections.abc import Iterator

from celery.signals import before_task_publish, task_postrun

from prefmh_web.celery import app as celery_app
from prefmh_web.embedded.tasks import THREADS
from prefmh_web.transport import publishing


class _Undone:
    """The tasks that threads of this process have given hints of and its worker has not done."""

    def __init__(self) -> None:
        self._ids: set[str] = set()
        self._changed = threading.Condition()

    def add(self, headers: dict, **_) -> None:
        with self._changed:
            self._ids.add(headers["id"])

    def discard(self, task_id: str, **_) -> None:
        with self._changed:
            self._ids.discard(task_id)
            self._changed.notify_all()

    def wait(self, timeout: float) -> None:
        deadline = time.monotonic() + timeout
        while True:
            # A hint is either on its way to the broker or among these; a task that is done may have given another.
            is_sent = publishing.wait_until_sent(max(0.0, deadline - time.monotonic()))
            with self._changed:
                is_done = self._changed.wait_for(lambda: not self._ids, max(0.0, deadline - time.monotonic()))
                if not (is_sent and is_done):
                    raise TimeoutError(f"{len(self._ids)} tasks are still queued or running")
            if publishing.wait_until_sent(0) and not self._ids:
                return


_here: _Undone | None = None


@contextlib.contextmanager
def worker_in_this_process() -> Iterator[None]:
    """Let a worker do this process's tasks on threads of it, where a test's settings and stand-ins hold."""
    global _here
    # On import it makes a task of its own.
    from celery.contrib.testing.worker import start_worker

    _here = _Undone()
    before_task_publish.connect(_here.add, weak=False)
    task_postrun.connect(_here.discard, weak=False)
    with start_worker(celery_app, pool="threads", concurrency=3, perform_ping_check=False, queues=list(THREADS)):
        yield


def wait_until_idle(timeout: float) -> None:
    """Return once no task of a worker in this process is queued or running, those that tasks queue included; where the
    workers are other processes, once they have read the files of all campaigns.

    Raises:
        TimeoutError: there was still something to do after `timeout` seconds.
    """
    if _here is not None:
        _here.wait(timeout)
        return
    publishing.wait_until_sent(timeout)
    # What a worker of another process has taken, no broker tells. What makers of campaigns wait for is this.
    deadline = time.monotonic() + timeout
    while files := _files_to_read():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{files} files are still being read")
        time.sleep(0.01)


def _files_to_read() -> int:
    from prefmh_web.campaigns.models import Catalog

    return Catalog.objects.filter(status=Catalog.Status.READING).count()
