"""The Celery application.

Embedded, its tasks run on threads of the serving process: `.delay()` returns at once and needs no broker. Each queue
has threads of its own, so that reading a large file keeps no chain waiting. A task lost with the process is found again
by `prefmh_web.tasks.sweep`, as with any broker. In server mode they go through the broker to workers of their own:

    celery -A prefmh_web worker --queues default                proposals, sweeps
    manage.py judges                                            model servers: votes and texts
    celery -A prefmh_web worker --queues files                  uploaded files, one at a time
    celery -A prefmh_web worker --queues gpu                    kernels that need the accelerator
    celery -A prefmh_web worker --queues scores                 programs that give objects a number
    celery -A prefmh_web beat                                   gives the hint to sweep every few seconds
"""

import gc
import importlib
import os
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import Any

from celery import Celery, Task, signals

# Not django.conf: this package is imported while Django reads these very settings.
from prefmh_web.settings import EMBEDDED

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "prefmh_web.settings")

# What the sampler imports only once it is used. It takes as long as everything else together.
_LATE = ("arviz_stats.base",)
# Of ten parts of a processor that both want, a web process gets nine.
_NICENESS = 10

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
        from django.db import close_old_connections

        close_old_connections()


def running() -> int:
    """Return how many calls are queued or running."""
    return len(_running)


app = Celery("prefmh", task_cls=InProcessTask if EMBEDDED else Task)
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@signals.setup_logging.connect
def _keep_our_logging(**_) -> None:
    """Celery sets up no logging where this signal has a receiver: `LOGGING` says it all."""


@signals.task_prerun.connect
@signals.task_postrun.connect
def _close_dead_connections(**_) -> None:
    """Let go of database connections that failed: a worker keeps its own across tasks, and servers restart."""
    from django.db import close_old_connections

    if not EMBEDDED:
        close_old_connections()


@cache
def load_everything() -> None:
    """Load every public name of the sampler and every task, so that no request waits for RDKit.

    Whoever starts the one embedded process waits for its first page, so there the first tab *Convergence* waits
    for ArviZ.
    """
    import sampler

    for name in dir(sampler):
        getattr(sampler, name)
    for module in () if EMBEDDED else _LATE:
        importlib.import_module(module)
    app.loader.import_default_modules()
    # All of this stays. The garbage collector would look through it again and again, and nobody is served meanwhile.
    gc.freeze()


@signals.worker_init.connect
def _share_what_is_loaded(**_) -> None:
    """Load it before the worker forks: its processes share that memory."""
    load_everything()


@signals.worker_init.connect
@signals.beat_init.connect
def _let_votes_come_first(**_) -> None:
    """Run at a lower priority than the web processes of the same machine: people wait for those."""
    os.setpriority(os.PRIO_PROCESS, 0, max(_NICENESS, os.getpriority(os.PRIO_PROCESS, 0)))
