"""What works in a process that does everything by itself: tasks on threads, turns of models that judge, and the clock.

`serve` and `demo` serve people meanwhile; `experiment` waits for its campaigns.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from prefmh_web.annotate.tasks import settle_parts, sweep_leases
from prefmh_web.campaigns.model_judges import scheduling
from prefmh_web.campaigns.tasks import sweep
from prefmh_web.embedded.server import Clock
from prefmh_web.embedded.tasks import run_here
from prefmh_web.endpoints import lending
from prefmh_web.endpoints.calls import many_at_once
from prefmh_web.loading import load_everything
from prefmh_web.scorers import commands

# Voters' sockets, tasks and pages share one interpreter; a shorter switch keeps a long task from holding the rest.
_SWITCH_INTERVAL_S = 0.0005
# Turns of models that judge, each of which mostly waits for a server; so many of them work on the record at a time.
_TURNS = 64
_WORKING = 2


@contextmanager
def at_work() -> Iterator[None]:
    """Do whatever there is to do on threads of this process until the block ends."""
    sys.setswitchinterval(_SWITCH_INTERVAL_S)
    # Before the clock's thread starts: two threads that load the same packages for the first time may clash.
    load_everything()
    lending.share(_WORKING)
    gates = many_at_once()
    turns = scheduling.begin(_TURNS, gates)
    clock = Clock(sweep_everything)
    clock.start()
    try:
        yield
    finally:
        clock.stop()
        # Python waits for the threads of tasks, and one of these may wait for a program's answer.
        commands.end()
        turns.end()
        gates.end()


def sweep_everything() -> None:
    """Find whatever waits: chains without a question, files to read, leases whose time is over."""
    # On the clock's own thread: a sweep that takes long delays the next one, instead of queueing up behind it.
    run_here(sweep)
    run_here(sweep_leases)
    run_here(settle_parts)
