"""What workers and beat say of themselves: which task a message belongs to, and that they are alive.

Alive is told by a file, `HEARTBEAT_FILE`, that a worker touches with each heartbeat to the broker and beat with each
task it sends. A container's health check looks at the file's age, which costs no Python start.
"""

import contextlib

from celery import signals
from django.conf import settings

from prefmh_web.operations import logs

_open: dict[str, contextlib.ExitStack] = {}


@signals.task_prerun.connect
def enter_task(task_id: str, task, args, **_) -> None:
    """Let every message of a task carry its name, and the chain that it works on."""
    fields = {"task": task.name.rpartition(".")[2]}
    if task.name == "prefmh_web.campaigns.tasks.propose" and args:
        fields["chain_id"] = args[0]
    stack = _open[task_id] = contextlib.ExitStack()
    stack.enter_context(logs.context(**fields))


@signals.task_postrun.connect
def leave_task(task_id: str, **_) -> None:
    if stack := _open.pop(task_id, None):
        stack.close()


@signals.heartbeat_sent.connect
@signals.before_task_publish.connect
def beat(**_) -> None:
    """Touch the heartbeat's file, where there is one."""
    if settings.HEARTBEAT_FILE:
        settings.HEARTBEAT_FILE.touch()
