"""Questions to servers that may be frozen, asked so that nobody waits for longer than they want to.

A library's own timeouts seldom cover every wait. So each question is asked on a thread of its own, which ends when the
server answers or the library gives up. A question that still waits is not asked a second time: whoever asks it again
waits for the same answer, no longer than if they had asked first, and a probe every few seconds piles up no threads.
"""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

_lock = threading.Lock()
# What has been asked and not answered, and when.
_under_way: dict[Callable, tuple[Future, float]] = {}


def begin(question: Callable, *arguments) -> tuple[Future, float]:
    """Ask `question(*arguments)` now, unless it is being asked; `within` returns the answer."""
    with _lock:
        if question not in _under_way:
            answer = Future()
            _under_way[question] = answer, time.monotonic()
            threading.Thread(target=_ask, args=(answer, question, arguments), name="asking", daemon=True).start()
        return _under_way[question]


def within(seconds: float, question: Callable, *arguments) -> Any:
    """Return what `question(*arguments)` returns.

    Raises:
        TimeoutError: it has been asked for `seconds`, without an answer.
        Exception: whatever the question raises.
    """
    answer, asked_at = begin(question, *arguments)
    return answer.result(max(0.0, asked_at + seconds - time.monotonic()))


def _ask(answer: Future, question: Callable, arguments: tuple) -> None:
    try:
        found = question(*arguments)
    except Exception as error:  # noqa: BLE001 - handed on to whoever asked
        _end(question)
        answer.set_exception(error)
    else:
        _end(question)
        answer.set_result(found)


def _end(question: Callable) -> None:
    with _lock:
        del _under_way[question]
