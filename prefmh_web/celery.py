"""The Celery application.

Embedded, its tasks run on threads of the serving process (`embedded/threads.py`). In server mode they go through the
broker to workers of their own:

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
from functools import cache

from celery import Celery, signals

# Not django.conf: this package is imported while Django reads these very settings.
from prefmh_web.settings import EMBEDDED

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "prefmh_web.settings")

# What the sampler imports only once it is used. It takes as long as everything else together.
_LATE = ("arviz_stats.base",)
# Of ten parts of a processor that both want, a web process gets nine.
_NICENESS = 10

app = Celery("prefmh", task_cls="prefmh_web.embedded.threads:InProcessTask" if EMBEDDED else "celery.app.task:Task")
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
