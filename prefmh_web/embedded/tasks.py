"""Celery tasks on two threads of the serving process: `.delay()` returns at once and needs no broker.

A task lost with the process is found again by `campaigns.tasks.sweep`, as with any broker.
"""

import logging
from concurrent.futures import Future, ThreadPoolExecutor, wait

from celery import Task
from django.db import close_old_connections

logger = logging.getLogger(__name__)

_pool = ThreadPoolExecutor(max_workers=2, thread_name_prefix="task")
_running: set[Future] = set()


class InProcessTask(Task):
    """A Celery task whose calls run in this process."""

    abstract = True

    def apply_async(self, args=None, kwargs=None, **options):
        """Queue one call. Celery's delivery options (countdown, queue, ...) have no meaning here and are ignored."""
        future = _pool.submit(self._run, args, kwargs)
        _running.add(future)
        future.add_done_callback(_running.discard)
        return future

    def _run(self, args, kwargs):
        try:
            result = self.apply(args, kwargs)
            if result.failed():
                logger.error("task %s%s failed\n%s", self.name, tuple(args or ()), result.traceback)
        finally:
            close_old_connections()


def wait_until_idle(timeout: float = 30) -> None:
    """Return once no task is queued or running, those that tasks queue included.

    Raises:
        TimeoutError: there was still one after `timeout` seconds without progress.
    """
    while pending := set(_running):
        if not wait(pending, timeout, return_when="FIRST_COMPLETED").done:
            raise TimeoutError(f"{len(pending)} tasks are still running")
