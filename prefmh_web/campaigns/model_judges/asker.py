"""Asks models for their turns: hundreds at a time on the loop for servers, with one thread that has the database.

    begin    makes this process ask by itself
    take     takes a turn: soon, where the process has begun to; otherwise now

What comes back, and what is to be asked next, go to the database many at a time, in one transaction (`turns.work`). A
turn that is given here waits in memory, and nobody is told: the sweep finds those of a process that was killed. One is
claimed when its endpoint has room for its requests, and its minute, where that is limited, too. Of those that wait for
one endpoint, the campaigns go in turn. What the end of a turn makes possible, the next one of its chain mostly, comes
here without a message (`transport/publishing.py`).
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from django.db import Error, InterfaceError, OperationalError, close_old_connections

from prefmh_web.campaigns.model_judges import turns
from prefmh_web.campaigns.model_judges.turns import Answered, Taken, Wanted
from prefmh_web.campaigns.models import Judge
from prefmh_web.endpoints import accounting, gates, loop
from prefmh_web.endpoints.gates import gate_of
from prefmh_web.endpoints.identity import Admitted
from prefmh_web.endpoints.limits import alike
from prefmh_web.endpoints.models import Endpoint
from prefmh_web.transport import publishing

logger = logging.getLogger(__name__)

Found = TypeVar("Found")

TASK = "prefmh_web.campaigns.tasks.judge"
# Beyond so many, turns are left to other processes and to the sweep.
_MOST_WAITING = 10_000
# Of answers, and of claims, in one transaction: locks are held for as long as it takes.
_MOST_TOGETHER = 48
# How soon room is seen that came without a turn's end: the limit has risen, or a minute has passed.
_LOOK_EVERY_S = 0.2
_FLUSH_EVERY_S = 1.0
# A database that is away is tried again so soon; what has come is kept meanwhile.
_PAUSE_S = 0.5
# How soon what the newest turn took outweighs those before.
_WEIGHT = 0.05


@dataclass
class _Whose:
    """A judge's campaign and its endpoint, and how many requests a turn of it mostly takes."""

    campaign: int
    endpoint: Endpoint
    requests: float

    def note(self, asked: int) -> None:
        """Take in for how many a turn has asked."""
        self.requests += _WEIGHT * (asked - self.requests)


class Asker:
    """Takes turns until it is told to end. All but `offer` and `end` happens on the loop for servers."""

    def __init__(self) -> None:
        self.owner = uuid.uuid4()
        self._database = ThreadPoolExecutor(1, thread_name_prefix="turns")
        self._judges: dict[int, _Whose] = {}
        # By endpoint, then by campaign: dictionaries for their order, since no turn waits twice.
        self._waiting: defaultdict[int, dict[int, dict[Wanted, None]]] = defaultdict(dict)
        self._lock, self._count = threading.Lock(), 0
        self._under_way: dict[Wanted, float] = {}
        self._turns: dict[Wanted, int] = {}
        self._promised: defaultdict[int, float] = defaultdict(float)
        self._again: set[Wanted] = set()
        self._answered: list[Answered] = []
        self._asking: set[asyncio.Task[None]] = set()
        self._bell: asyncio.Event | None = None
        self._is_over = False
        self._running: Future[None] = loop.start(self._run())

    def offer(self, comparison_id: int, judge_id: int) -> bool:
        """Take a turn soon; False if too many wait already."""
        wanted = comparison_id, judge_id
        whose = self._whose(judge_id)
        if whose is None:
            # Deleted meanwhile.
            return True
        with self._lock:
            if self._is_over or self._count >= _MOST_WAITING:
                return False
            if wanted in self._under_way:
                # What it is given for may have come after that one looked.
                self._again.add(wanted)
                return True
            self._put(wanted, whose)
        self._ring()
        return True

    def end(self) -> None:
        """Begin no more turns, and wait for those under way."""
        self._is_over = True
        self._ring()
        self._running.result()
        self._database.shutdown()

    def _ring(self) -> None:
        bell = self._bell
        if bell is not None:
            loop.soon(bell.set)

    def _put(self, wanted: Wanted, whose: _Whose) -> None:
        mine = self._waiting[whose.endpoint.pk].setdefault(whose.campaign, {})
        self._count += wanted not in mine
        mine[wanted] = None

    def _whose(self, judge_id: int) -> _Whose | None:
        """Return whose a judge is. Which endpoint it has never changes; what is in its row may be some turns old."""
        if (found := self._judges.get(judge_id)) is None:
            judge = Judge.objects.filter(pk=judge_id, endpoint__isnull=False).select_related("endpoint").first()
            if judge is None or judge.endpoint is None:
                return None
            found = self._judges[judge_id] = _Whose(judge.campaign_id, judge.endpoint, float(judge.max_votes))
        return found

    async def _run(self) -> None:
        self._bell = asyncio.Event()
        await self._count_what_was_sent()
        flushed = renewed = time.monotonic()
        while not (self._is_over and not self._asking and not self._answered):
            await self._look_up()
            now = time.monotonic()
            if self._answered or self._count:
                await self._work()
            if now - flushed >= _FLUSH_EVERY_S:
                flushed = now
                await self._in_database(gates.flush)
            if now - renewed >= turns.RENEW_EVERY_S and self._turns:
                renewed = now
                await self._in_database(partial(turns.keep, list(self._turns.values()), self.owner))
        await self._in_database(gates.flush)

    async def _count_what_was_sent(self) -> None:
        """Take what processes have reserved that may have ended as sent in this minute."""
        for endpoint, requests in await self._in_executor(turns.reserved):
            gate_of(endpoint).count_as_spent(requests)

    async def _look_up(self) -> None:
        """Wait until something has come, or room may have."""
        bell = self._bell
        if bell is None:
            raise TypeError("the asker does not run yet")
        try:
            async with asyncio.timeout(_LOOK_EVERY_S if self._count or self._is_over else _FLUSH_EVERY_S):
                await bell.wait()
        except TimeoutError:
            return
        bell.clear()

    async def _work(self) -> None:
        """Store what has come and claim what there is room for, and ask for that."""
        answered = self._answered[:_MOST_TOGETHER]
        wanted = [] if self._is_over else self._next()
        if not answered and not wanted:
            return
        try:
            taken = await self._in_executor(lambda: self._stored_and_claimed(answered, wanted))
        except (OperationalError, InterfaceError) as error:
            logger.warning("the database did not take what models answered, trying again: %s", error)
            self._forget(wanted)
            await asyncio.sleep(_PAUSE_S)
            self._ring()
            return
        del self._answered[: len(answered)]
        for stored in answered:
            self._over(stored.taken.wanted)
        for begun in taken:
            self._begin(begun)
        self._forget([each for each in wanted if each not in self._turns])
        if self._answered or self._count:
            self._ring()

    def _stored_and_claimed(self, answered: Sequence[Answered], wanted: Sequence[Wanted]) -> list[Taken]:
        """Do it together; where that fails by a defect, one by one, so that it costs the turn that has it."""
        try:
            return turns.work(answered, wanted, self.owner)
        except (OperationalError, InterfaceError):
            raise
        except Exception:  # whatever it is, the others are not to suffer for it
            logger.exception("turns failed together; they are taken one by one")
        finally:
            close_old_connections()
        taken: list[Taken] = []
        for some, none in [*(([each], []) for each in answered), *(([], [each]) for each in wanted)]:
            try:
                taken += turns.work(some, none, self.owner)
            except (OperationalError, InterfaceError):
                raise
            except Exception:  # a defect costs this turn, which the sweep finds again
                logger.exception("a turn failed")
        return taken

    def _next(self) -> list[Wanted]:
        """Take turns out of the line as there is room for them, each campaign's in turn."""
        found: list[Wanted] = []
        with self._lock:
            for endpoint_id, campaigns in list(self._waiting.items()):
                while campaigns and len(found) < _MOST_TOGETHER:
                    campaign, mine = next(iter(campaigns.items()))
                    wanted = next(iter(mine))
                    whose = self._judges[wanted[1]]
                    if not self._has_room(whose):
                        break
                    # The campaign goes to the end of the line.
                    del campaigns[campaign], mine[wanted]
                    if mine:
                        campaigns[campaign] = mine
                    self._count -= 1
                    self._under_way[wanted] = whose.requests
                    self._promised[endpoint_id] += whose.requests
                    found.append(wanted)
                if not campaigns:
                    del self._waiting[endpoint_id]
        return found

    def _has_room(self, whose: _Whose) -> bool:
        gate, promised = gate_of(whose.endpoint), self._promised[whose.endpoint.pk]
        if promised > 0 and promised + whose.requests > gate.limit.now(whose.endpoint.concurrency):
            return False
        return gate.has_minute(round(whose.requests), unsent=round(promised) - gate.limit.under_way)

    def _begin(self, taken: Taken) -> None:
        self._turns[taken.wanted] = taken.turn
        whose, asked = self._judges[taken.wanted[1]], len(taken.asking.slots)
        self._promised[whose.endpoint.pk] += asked - self._under_way[taken.wanted]
        self._under_way[taken.wanted] = float(asked)
        whose.note(asked)
        # The row of the endpoint as it was read with the claim.
        whose.endpoint = taken.endpoint
        task = asyncio.get_running_loop().create_task(self._ask(taken))
        self._asking.add(task)
        task.add_done_callback(self._asking.discard)

    async def _ask(self, taken: Taken) -> None:
        try:
            self._answered.append(await answered(taken))
        except Exception:  # a defect costs this turn, which the sweep finds again once its claim has run out
            logger.exception("a turn failed")
            self._over(taken.wanted)
        self._ring()

    def _over(self, wanted: Wanted) -> None:
        self._turns.pop(wanted, None)
        self._forget([wanted])

    def _forget(self, some: Sequence[Wanted]) -> None:
        """Turns are not under way any more: stored, or not claimed."""
        with self._lock:
            for wanted in some:
                whose = self._judges[wanted[1]]
                self._promised[whose.endpoint.pk] -= self._under_way.pop(wanted, 0.0)
                if wanted in self._again:
                    self._again.discard(wanted)
                    self._put(wanted, whose)
            if not self._under_way:
                # Of a sum of floats.
                self._promised.clear()

    async def _in_database(self, work: Callable[[], None]) -> None:
        """Do what can be done another time as well."""
        try:
            await self._in_executor(work)
        except Error:
            logger.warning("the database did not take what models were asked; trying again", exc_info=True)

    async def _in_executor(self, work: Callable[[], Found]) -> Found:
        def then_close() -> Found:
            try:
                return work()
            finally:
                close_old_connections()

        return await asyncio.get_running_loop().run_in_executor(self._database, then_close)


async def answered(taken: Taken) -> Answered:
    """Ask for a turn that was taken."""
    admitted = Admitted(taken.known)
    with accounting.tallied() as tally, alike(taken.asking.judge.pk):
        answers = await taken.ask(admitted)
    return Answered(taken, answers, admitted, tally)


_asker: Asker | None = None


def begin() -> Asker:
    """Make this process take turns by itself."""
    global _asker
    _asker = Asker()
    publishing.take_here(TASK, _asker.offer)
    return _asker


def take(comparison_id: int, judge_id: int) -> None:
    """Take a turn: soon, where this process has begun to take turns by itself and has room; otherwise now."""
    if _asker is None or not _asker.offer(comparison_id, judge_id):
        _take_now((comparison_id, judge_id))


def _take_now(wanted: Wanted) -> None:
    owner = uuid.uuid4()
    for taken in turns.work([], [wanted], owner):
        asking = loop.start(answered(taken))
        while not asking.done():
            try:
                asking.result(turns.RENEW_EVERY_S)
            except TimeoutError:
                turns.keep([taken.turn], owner)
        gates.flush()
        turns.work([asking.result()], [], owner)
