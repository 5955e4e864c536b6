"""Somebody of the crowds that `crowds.py` sends to a campaign."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from typing import Any

from prefmh_web.demo.voters import Voter


@dataclass
class Guest(Voter):
    """Somebody who gives some answers and goes, and notes how long each screen took to come."""

    answers: int = 10
    arrives_s: float = 0
    reads_s: float = 0
    waits: list[float] = field(default_factory=list)
    told_to_wait: int = 0
    _asked_at: float = 0

    async def run(self) -> None:
        await asyncio.sleep(self.arrives_s)
        await super().run()

    def _join(self) -> str:
        cookies = super()._join()
        time.sleep(self.reads_s)
        self._asked_at = time.monotonic()
        return cookies

    async def _decide(self, screen: Any) -> dict[str, str] | None:
        self.told_to_wait += screen.standing == "waiting"
        is_new = screen.standing in ("pair", "check") and screen.values.get("lease") not in self.sent[-1:]
        if is_new:
            self.waits.append(time.monotonic() - self._asked_at)
        if len(self.sent) == self.answers:
            raise LeftError
        message = await super()._decide(screen)
        self._asked_at = time.monotonic()
        return message


class LeftError(Exception):
    """Somebody has given their answers."""


class Indifferent(dict):
    """Scores of somebody to whom every object is alike, whatever is asked."""

    def __missing__(self, question: str) -> Any:
        return lambda content: 0.0
