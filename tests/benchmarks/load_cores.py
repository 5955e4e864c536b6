"""Keeping servers and voters apart: which core this process, and whatever it starts from now on, may run on."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Cores:
    """Where the servers run, and where this process with its voters and pgbench does."""

    servers: frozenset[int]
    voters: frozenset[int]


def shared() -> Cores:
    """Return all cores, for everybody."""
    every = frozenset(os.sched_getaffinity(0))
    return Cores(every, every)


def apart() -> Cores:
    """Return one core for the servers and another for the voters.

    Raises:
        RuntimeError: this process may run on one core only.
    """
    every = sorted(os.sched_getaffinity(0))
    if len(every) < 2:
        raise RuntimeError("--pin needs two cores, one for the servers and one for the voters")
    return Cores(frozenset(every[:1]), frozenset(every[1:2]))


@contextlib.contextmanager
def on(cores: frozenset[int]) -> Iterator[None]:
    """Run on these cores; what is started meanwhile stays there for ever."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
