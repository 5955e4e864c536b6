"""The Celery application.

Embedded, its tasks run on threads of the serving process (`embedded/tasks.py`). In server mode they go through the
broker to workers of their own:

    celery -A prefmh_web worker --queues default                proposals, sweeps
    manage.py judges                                            model servers: votes and texts
    celery -A prefmh_web worker --queues files                  uploaded files, one at a time
    celery -A prefmh_web worker --queues gpu                    kernels that need the accelerator
    celery -A prefmh_web worker --queues scores                 programs that give objects a number
    celery -A prefmh_web beat                                   gives the hint to sweep every few seconds
"""

import os

from celery import Celery, signals

# Not django.conf: this package is imported while Django reads these very settings.
from prefmh_web.settings import EMBEDDED

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "prefmh_web.settings")

# Of ten parts of a processor that both want, a web process gets nine.
_NICENESS = 10

app = Celery("prefmh", task_cls="prefmh_web.embedded.tasks:InProcessTask" if EMBEDDED else "celery.app.task:Task")
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


@signals.worker_init.connect
def _load_everything(**_) -> None:
    """Load the sampler before the worker forks: its processes share that memory."""
    from prefmh_web.loading import load_everything

    load_everything()


@signals.worker_init.connect
@signals.beat_init.connect
def _let_votes_come_first(**_) -> None:
    """Run at a lower priority than the web processes of the same machine: people wait for those."""
    os.setpriority(os.PRIO_PROCESS, 0, max(_NICENESS, os.getpriority(os.PRIO_PROCESS, 0)))
