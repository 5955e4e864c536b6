"""Questions to servers that may be frozen, asked so that nobody waits for longer than they want to.

A library's own timeouts seldom cover every wait. So each question is asked on a thread of its own, which ends when the
server answers or the library gives up. A question that still waits is not asked a second time: whoever asks it again
waits for the same answer, and a probe every few seconds piles up no threads.
"""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

_lock = threading.Lock()
_under_way: dict[Callable, Future] = {}


def within(seconds: float, question: Callable, *arguments) -> Any:
    """Return what `question(*arguments)` returns.

    Raises:
        TimeoutError: it takes longer than `seconds`.
        Exception: whatever the question raises.
    """
    with _lock:
        answer = _under_way.get(question)
        if answer is None:
            answer = _under_way[question] = Future()
            asking = threading.Thread(target=_ask, args=(answer, question, arguments), name="asking", daemon=True)
            asking.start()
    return answer.result(seconds)


def _ask(answer: Future, question: Callable, arguments: tuple) -> None:
    try:
        answer.set_result(question(*arguments))
    except Exception as error:  # noqa: BLE001 - handed on to whoever asked
        answer.set_exception(error)
    finally:
        with _lock:
            del _under_way[question]
