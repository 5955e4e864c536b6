"""Celery tasks on threads of the serving process: `.delay()` returns at once and needs no broker.

Each queue has threads of its own, so that reading a large file keeps no chain waiting.

A task lost with the process is found again by `prefmh_web.tasks.sweep`, as with any broker.
"""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from celery import Task
from django.db import close_old_connections

THREADS = {"default": 2, "files": 1, "endpoints": 16, "gpu": 1, "scores": 4}
_pools = {queue: ThreadPoolExecutor(count, thread_name_prefix=f"task-{queue}") for queue, count in THREADS.items()}
_running: set[Future[None]] = set()
_dropping = False


@contextmanager
def left_to_the_sweep() -> Iterator[None]:
    """Queue nothing in the block: what is wanted there is found by the sweep that comes with serving.

    So nobody waits for the processor, or for SQLite's one writer, while there is more to do before that.
    """
    global _dropping
    _dropping = True
    try:
        yield
    finally:
        _dropping = False


class InProcessTask(Task):
    """A Celery task whose calls run in this process."""

    abstract = True

    def apply_async(self, args=None, kwargs=None, **options):  # type: ignore[override]  # nobody reads the result here
        """Queue one call. Of Celery's delivery options only the queue has a meaning here; others are ignored."""
        if _dropping:
            return None
        own = self._get_exec_options()  # type: ignore[attr-defined]  # Celery's types leave it out
        route = self.app.amqp.router.route({**own, **options}, self.name)
        try:
            future = _pools[route["queue"].name].submit(run_here, self, args, kwargs)
        except RuntimeError:
            # The process ends, as a command does that has started a campaign: whoever serves finds the work.
            return None
        _running.add(future)
        future.add_done_callback(_running.discard)
        return future


def run_here(task: Task, args: tuple[Any, ...] | None = None, kwargs: dict[str, Any] | None = None) -> None:
    """Run one call of a task on this thread. Celery logs a failure with its traceback."""
    try:
        task.apply(args, kwargs)
    finally:
        close_old_connections()


def running() -> int:
    """Return how many calls are queued or running."""
    return len(_running)
