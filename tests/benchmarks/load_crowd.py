"""Many voters in one process: sockets that vote at a human pace, and when what they sent was answered."""

from __future__ import annotations

import asyncio
import json
import random
import re
import time
from dataclasses import dataclass, field

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

_LEASE = re.compile(r'name="lease" value="([0-9a-f-]{36})"')
# Its last class; before it stands "panel", as in version 0.1.0, or "screen", or both.
_STATUS = re.compile(r'id="panel" class="(?:\w+ )*(\w+)"')
_CONNECTIONS_PER_S = 40
_PATIENCE_S = 120


@dataclass(frozen=True)
class Seat:
    """Where one voter votes, and the cookie by which the server knows them."""

    origin: str
    path: str
    cookie: str


@dataclass
class Seen:
    """What the crowd saw. Times are seconds of the system's clock, which the database shares."""

    acknowledged: list[tuple[float, float]] = field(default_factory=list)
    """When each vote was sent and how many seconds its answer, another screen, took."""
    thought: list[tuple[float, float]] = field(default_factory=list)
    """When each think time began and how many seconds it was to be."""
    lost: int = 0

    def answers_between(self, start: float, end: float) -> list[float]:
        """Return the seconds that the answers to the votes sent in this time took."""
        return [seconds for sent, seconds in self.acknowledged if start <= sent < end]

    def thinking_between(self, start: float, end: float) -> float:
        """Return how many people were thinking in this time, on average."""
        shares = (min(began + seconds, end) - max(began, start) for began, seconds in self.thought)
        return sum(share for share in shares if share > 0) / (end - start)


class Crowd:
    """Voters on sockets, each of whom thinks for an exponential time before each vote and then tosses a coin."""

    def __init__(self, seats: list[Seat], think_s: float, seed: int) -> None:
        self.seen = Seen()
        self._seats, self._think_s, self._seed = seats, think_s, seed
        self._open = 0
        self._all_open = asyncio.Event()

    async def __aenter__(self) -> Crowd:
        self._tasks = []
        for index, seat in enumerate(self._seats):
            self._tasks.append(asyncio.create_task(self._stay(seat, random.Random(self._seed + index))))
            await asyncio.sleep(1 / _CONNECTIONS_PER_S)
        if not self._seats:
            return self
        opened = asyncio.create_task(self._all_open.wait())
        done, _ = await asyncio.wait([opened, *self._tasks], timeout=_PATIENCE_S, return_when=asyncio.FIRST_COMPLETED)
        if opened not in done:
            # Whoever has ended tells why; else somebody still waits for a first screen.
            for task in done:
                task.result()
            raise RuntimeError(f"only {self._open} of {len(self._seats)} sockets show a screen")
        return self

    async def __aexit__(self, *_) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _stay(self, seat: Seat, rng: random.Random) -> None:
        address = seat.origin.replace("http", "ws", 1) + "/ws" + seat.path
        headers = {"Cookie": seat.cookie}
        # Compression as browsers offer it; a browser sends no pings of its own. Thousands who open at once wait long.
        options = {"open_timeout": _PATIENCE_S, "ping_interval": None}
        async with connect(address, origin=seat.origin, additional_headers=headers, **options) as socket:
            try:
                await self._vote(socket, rng)
            except ConnectionClosed:
                self.seen.lost += 1

    async def _vote(self, socket: ClientConnection, rng: random.Random) -> None:
        lease, status = await self._look(socket)
        self._open += 1
        if self._open == len(self._seats):
            self._all_open.set()
        while status != "finished":
            if status == "pair":
                now = time.time()
                think_s = rng.expovariate(1 / self._think_s)
                self.seen.thought.append((now, think_s))
                await asyncio.sleep(think_s)
                lease, status = await self._answer(socket, lease, rng)
            else:
                if status == "resting":
                    await socket.send(json.dumps({"choice": "continue"}))
                lease, status = await self._look(socket)

    async def _answer(self, socket: ClientConnection, lease: str, rng: random.Random) -> tuple[str, str]:
        """Send a vote and return the first screen that shows anything but its own pair."""
        sent = time.time()
        choice = rng.choice(("first", "second"))
        await socket.send(json.dumps({"lease": lease, "choice": choice, "elapsed_ms": "4000"}))
        found = await self._look(socket)
        while found == (lease, "pair"):
            found = await self._look(socket)
        self.seen.acknowledged.append((sent, time.time() - sent))
        return found

    async def _look(self, socket: ClientConnection) -> tuple[str, str]:
        html = await socket.recv()
        found = _LEASE.search(html)
        return found[1] if found else "", _STATUS.search(html)[1]
