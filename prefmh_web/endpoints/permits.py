"""Permits for single requests of a call: asked for by the threads that send, given by the one that has the database.

A thread asks with what its request will take, and waits for as long as a row is locked. If the minute has no room, the
job of a turn ends, and nobody holds a thread or a place until there is. What is of use only as a whole, a text or a
test of the server, waits for the minute to pass.
"""

from __future__ import annotations

import math
import threading
import time
from concurrent.futures import Future
from dataclasses import dataclass

from prefmh_web.endpoints.errors import Busy
from prefmh_web.endpoints.minute_rows import Minute
from prefmh_web.endpoints.minutes import Spent

# A minute that is full is looked at again so soon: others may give something back.
_LOOK_EVERY_S = 0.25
# Alone, a request waits for a minute; beside others it may be longer.
_PATIENCE_S = 180.0


@dataclass(frozen=True)
class Permit:
    """One request may be sent; it was counted in this second as so many tokens."""

    second: int
    tokens: int


@dataclass(frozen=True)
class _Asked:
    """A request that waits for its permit."""

    tokens: int
    answer: Future[int]
    deadline: float


class Permits:
    """The permits of one call.

    Args:
        waits: whether a request waits for the minute to pass.
    """

    def __init__(self, minute: Minute, *, is_ahead: bool, waits: bool) -> None:
        self._minute, self._is_ahead = minute, is_ahead
        self._patience_s = _PATIENCE_S if waits else 0.0
        self._lock = threading.Lock()
        self._asked: list[_Asked] = []
        self._look_at = math.inf
        self._changes: list[Spent] = []
        self._is_over = False
        self.bell: Future[None] = Future()
        """Done when somebody asks."""

    def ask(self, tokens: int) -> Permit:
        """Return a permit for a request of about so many tokens.

        Raises:
            Busy: there is none now.
        """
        answer: Future[int] = Future()
        with self._lock:
            if self._is_over:
                raise Busy("the call has ended")
            self._asked.append(_Asked(tokens, answer, time.monotonic() + self._patience_s))
            if not self.bell.done():
                self.bell.set_result(None)
        return Permit(answer.result(), self._minute.rates.counted(tokens))

    def correct(self, permit: Permit, tokens: int) -> None:
        """Take in how many tokens the server counted."""
        if tokens != permit.tokens:
            with self._lock:
                self._changes.append(Spent(permit.second, 0, tokens - permit.tokens))

    def due_in(self) -> float:
        """Return in how many seconds somebody who waits is to be looked at again."""
        return max(0.0, self._look_at - time.monotonic())

    def answer(self) -> None:
        """Answer those who ask, in their order. Called by the thread that has the database."""
        if not self.bell.done() and self.due_in():
            return
        with self._lock:
            asked, self._asked = self._asked, []
            changes, self._changes = self._changes, []
            self.bell, self._look_at = Future(), math.inf
        try:
            given = self._minute.take([each.tokens for each in asked], changes, is_ahead=self._is_ahead)
        except BaseException:
            _refuse(asked)
            raise
        for each in asked[: given.count]:
            each.answer.set_result(given.second)
        now, left = time.monotonic(), asked[given.count :]
        for each in left:
            if each.deadline <= now:
                each.answer.set_exception(self._minute.full(given.wait))
        with self._lock:
            self._asked[:0] = [each for each in left if each.deadline > now]
            if self._asked:
                self._look_at = now + min(given.wait, _LOOK_EVERY_S)

    def close(self) -> None:
        """Give no more: the call is over, or has failed."""
        with self._lock:
            self._is_over = True
            asked, self._asked = self._asked, []
        _refuse(asked)

    def settle(self) -> None:
        """Put right what replies have told since the last answer."""
        with self._lock:
            changes, self._changes = self._changes, []
        self._minute.settle(changes)


def _refuse(asked: list[_Asked]) -> None:
    for each in asked:
        each.answer.set_exception(Busy("the call has ended"))
