"""Questions to servers that may be frozen, asked so that nobody waits for longer than they want to.

A library's own timeouts seldom cover every wait. So each question is asked on a thread of its own, which ends when the
server answers or the library gives up. A question that still waits is not asked a second time: whoever asks it again
waits for the same answer, no longer than if they had asked first, and a probe every few seconds piles up no threads.
"""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

# An answer that nobody has wanted so far is of no use after this.
_FRESH_S = 2.0


@dataclass(eq=False)
class _Asked:
    answer: Future[Any]
    at: float
    # Some caller has had the answer, or has waited for it in vain.
    is_told: bool = False

    def is_over(self) -> bool:
        return self.answer.done() and (self.is_told or time.monotonic() > self.at + _FRESH_S)


_lock = threading.Lock()
_asked: dict[Callable[..., Any], _Asked] = {}


def begin(question: Callable, *arguments) -> None:
    """Ask `question(*arguments)` now, unless it is being asked; the next `within` returns the answer."""
    with _lock:
        if question not in _asked or _asked[question].answer.done():
            _ask(question, arguments)


def within(seconds: float, question: Callable, *arguments) -> Any:
    """Return what `question(*arguments)` returns.

    Raises:
        TimeoutError: it has been asked for `seconds`, without an answer.
        Exception: whatever the question raises.
    """
    with _lock:
        if question not in _asked or _asked[question].is_over():
            _ask(question, arguments)
        asked = _asked[question]
    try:
        return asked.answer.result(max(0.0, asked.at + seconds - time.monotonic()))
    finally:
        with _lock:
            asked.is_told = True
            if asked.answer.done() and _asked.get(question) is asked:
                del _asked[question]


def _ask(question: Callable, arguments: tuple) -> None:
    answer: Future[Any] = Future()
    _asked[question] = _Asked(answer, time.monotonic())
    threading.Thread(target=_answer, args=(answer, question, arguments), name="asking", daemon=True).start()


def _answer(answer: Future[Any], question: Callable, arguments: tuple) -> None:
    try:
        found = question(*arguments)
    except Exception as error:  # noqa: BLE001 - handed on to whoever asked
        answer.set_exception(error)
    else:
        answer.set_result(found)
