"""The event loop of this process on which all model servers are asked, on a thread of its own.

    run      a coroutine, from a thread that waits for what it returns
    start    a coroutine, from a thread that does not wait
    soon     a function, as soon as the loop comes to it
    held     a context variable's value in a block, which what is run from there sees

Coroutines here touch no database: whoever calls `run` reads before and writes after.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any, TypeVar

from django.db import connection

Result = TypeVar("Result")
Value = TypeVar("Value")
_LOOK_UPS = 128


def run(coroutine: Coroutine[Any, Any, Result]) -> Result:
    """Run a coroutine with the caller's context variables, and return what it returns.

    A database connection that comes from a pool is given back meanwhile.
    """
    # Asked in this order: whether it commits by itself, a connection that is closed would be opened to tell.
    if _is_pooled() and connection.connection is not None and connection.get_autocommit():
        connection.close()
    return start(coroutine).result()


def start(coroutine: Coroutine[Any, Any, Result]) -> Future[Result]:
    """Begin to run a coroutine with the caller's context variables."""
    # What is handed over to a loop runs with the context of whoever hands it over.
    return asyncio.run_coroutine_threadsafe(coroutine, _loop())


def soon(work: Callable[[], object]) -> None:
    """Have something small done there."""
    _loop().call_soon_threadsafe(work)


@contextmanager
def held(variable: ContextVar[Value | None], value: Value) -> Iterator[Value]:
    """Give a context variable a value in this block."""
    before = variable.set(value)
    try:
        yield value
    finally:
        variable.reset(before)


@cache
def _loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    # Names are looked up there, and a look-up that hangs is to keep no other waiting.
    loop.set_default_executor(ThreadPoolExecutor(_LOOK_UPS, thread_name_prefix="look-up"))
    threading.Thread(target=loop.run_forever, name="model servers", daemon=True).start()
    return loop


def _is_pooled() -> bool:
    return connection.vendor == "postgresql" and bool(connection.settings_dict["OPTIONS"].get("pool"))


# A child has none of its parent's threads.
os.register_at_fork(after_in_child=_loop.cache_clear)
