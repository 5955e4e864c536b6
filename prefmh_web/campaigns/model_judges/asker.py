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
import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from django.db import Error, InterfaceError, OperationalError, close_old_connections

from prefmh_web.campaigns.engine import locks
from prefmh_web.campaigns.model_judges import turns
from prefmh_web.campaigns.model_judges.turns import ClaimedTurn, TurnKey, TurnResult
from prefmh_web.campaigns.models import Judge
from prefmh_web.endpoints import limits, loop
from prefmh_web.endpoints.limits import request_limits_of
from prefmh_web.endpoints.models import Endpoint
from prefmh_web.endpoints.replies import Admitted
from prefmh_web.transport import publishing

logger = logging.getLogger(__name__)

Found = TypeVar("Found")

TASK = "prefmh_web.tasks.judge"
# Beyond so many, turns are left to other processes and to the sweep.
_MAX_WAITING = 10_000
# Of answers, and of claims, in one transaction: locks are held for as long as it takes.
_MAX_TOGETHER = 48
# What comes within so short a time is stored in one transaction; models take much longer.
_TOGETHER_S = 0.005
# How soon room is seen that came without a turn's end: the limit has risen, or a minute has passed.
_LOOK_EVERY_S = 0.2
_FLUSH_EVERY_S = 1.0
# A database that is away is tried again so soon; what has come is kept meanwhile.
_PAUSE_S = 0.5
# How soon what the newest turn took outweighs those before.
_WEIGHT = 0.05


@dataclass
class _Whose:
    """A judge's campaign and its endpoint, and how many requests a turn of it mostly takes, by so many turns."""

    campaign: int
    endpoint: Endpoint
    requests: float
    turns: int = 0

    def learn(self, requests: int) -> None:
        """Take in how many requests a turn takes: the first ones give a mean, later ones outweigh those before."""
        self.turns += 1
        self.requests += max(_WEIGHT, 1 / self.turns) * (requests - self.requests)


@dataclass
class _UnderWay:
    """A turn that is being claimed, or asked: how many requests it takes, and the key of its row once it is claimed."""

    whose: _Whose
    requests: float
    turn: int | None = None


class Asker:
    """Takes turns until it is told to end. All but `offer` and `end` happens on the loop for servers."""

    def __init__(self) -> None:
        self.owner = uuid.uuid4()
        self._database = ThreadPoolExecutor(1, thread_name_prefix="turns")
        self._judges: dict[int, _Whose] = {}
        # By endpoint, then by campaign: dictionaries for their order, since no turn waits twice.
        self._waiting: defaultdict[int, dict[int, dict[TurnKey, None]]] = defaultdict(dict)
        self._count = 0
        self._under_way: dict[TurnKey, _UnderWay] = {}
        # To be taken once more: given while they were under way, so that what for may have come after those had looked;
        # or the database was away.
        self._again: set[TurnKey] = set()
        self._answered: list[TurnResult] = []
        self._asking: set[asyncio.Task[None]] = set()
        self._bell = asyncio.Event()
        self._is_over = False
        self._running: Future[None] = loop.start(self._run())

    def offer(self, comparison_id: int, judge_id: int) -> bool:
        """Take a turn soon; False if too many wait already."""
        whose = self._whose(judge_id)
        if whose is None:
            # Deleted meanwhile.
            return True
        if self._is_over or self._count >= _MAX_WAITING:
            return False
        loop.soon(lambda: self._put((comparison_id, judge_id), whose))
        return True

    def end(self) -> None:
        """Begin no more turns, and wait for those under way."""
        self._is_over = True
        loop.soon(self._bell.set)
        self._running.result()
        self._database.shutdown()

    def _whose(self, judge_id: int) -> _Whose | None:
        """Return whose a judge is. Which endpoint it has never changes; what is in its row may be some turns old."""
        if (found := self._judges.get(judge_id)) is None:
            judge = Judge.objects.filter(pk=judge_id, endpoint__isnull=False).select_related("endpoint").first()
            if judge is None or judge.endpoint is None:
                return None
            found = self._judges[judge_id] = _Whose(judge.campaign_id, judge.endpoint, float(judge.max_votes))
        return found

    def _put(self, wanted: TurnKey, whose: _Whose) -> None:
        if wanted in self._under_way:
            self._again.add(wanted)
            return
        mine = self._waiting[whose.endpoint.pk].setdefault(whose.campaign, {})
        self._count += wanted not in mine
        mine[wanted] = None
        self._bell.set()

    async def _run(self) -> None:
        while (reserved := await self._in_database(turns.reserved)) is None:
            pass
        # What processes have reserved may have ended as sent in this minute.
        for endpoint, requests in reserved:
            request_limits_of(endpoint).count_as_spent(requests)
        flushed = renewed = time.monotonic()
        while not (self._is_over and not self._asking and not self._answered):
            await self._look_up()
            now = time.monotonic()
            if self._answered or self._count:
                await self._work()
            if now - flushed >= _FLUSH_EVERY_S:
                flushed = now
                await self._in_database(limits.flush)
            claimed = [each.turn for each in self._under_way.values() if each.turn is not None]
            if claimed and now - renewed >= locks.RENEW_EVERY_S:
                renewed = now
                await self._in_database(partial(turns.keep, claimed, self.owner))
        await self._in_database(limits.flush)

    async def _look_up(self) -> None:
        """Wait until something has come, or room may have."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_LOOK_EVERY_S if self._count or self._is_over else _FLUSH_EVERY_S):
                await self._bell.wait()
                await asyncio.sleep(_TOGETHER_S)
        self._bell.clear()

    async def _work(self) -> None:
        """Store what has come and claim what there is room for, and ask for that."""
        answered = self._answered[:_MAX_TOGETHER]
        wanted = [] if self._is_over else self._next()
        if not answered and not wanted:
            return
        taken = await self._in_database(lambda: self._stored_and_claimed(answered, wanted))
        if taken is None:
            self._again.update(wanted)
        else:
            del self._answered[: len(answered)]
            self._forget(each.taken.wanted for each in answered)
            for begun in taken:
                self._begin(begun)
        self._forget(each for each in wanted if self._under_way[each].turn is None)
        if self._answered or self._count:
            self._bell.set()

    def _stored_and_claimed(self, answered: Sequence[TurnResult], wanted: Sequence[TurnKey]) -> list[ClaimedTurn]:
        """Do it together; where that fails by a defect, one by one, so that it costs the turn that has it."""
        try:
            return turns.work(answered, wanted, self.owner)
        except (OperationalError, InterfaceError):
            raise
        except Exception:  # whatever it is, the others are not to suffer for it; the sweep finds this one again
            logger.exception("a turn failed, or one of some that were taken together")
        finally:
            close_old_connections()
        if len(answered) + len(wanted) == 1:
            return []
        alone = [*(([each], []) for each in answered), *(([], [each]) for each in wanted)]
        return [taken for some, none in alone for taken in self._stored_and_claimed(some, none)]

    def _next(self) -> list[TurnKey]:
        """Take turns out of the line as there is room for them, each campaign's in turn."""
        promised: defaultdict[int, float] = defaultdict(float)
        for each in self._under_way.values():
            promised[each.whose.endpoint.pk] += each.requests
        found: list[TurnKey] = []
        for endpoint_id, campaigns in list(self._waiting.items()):
            while campaigns and len(found) < _MAX_TOGETHER:
                campaign, mine = next(iter(campaigns.items()))
                wanted = next(iter(mine))
                whose = self._judges[wanted[1]]
                if not _has_room(whose, promised[endpoint_id]):
                    break
                # The campaign goes to the end of the line.
                del campaigns[campaign], mine[wanted]
                if mine:
                    campaigns[campaign] = mine
                self._count -= 1
                self._under_way[wanted] = _UnderWay(whose, whose.requests)
                promised[endpoint_id] += whose.requests
                found.append(wanted)
            if not campaigns:
                del self._waiting[endpoint_id]
        return found

    def _begin(self, taken: ClaimedTurn) -> None:
        under_way, asked = self._under_way[taken.wanted], taken.ask.requests
        under_way.turn, under_way.requests = taken.turn, asked
        under_way.whose.learn(asked)
        # The row of the endpoint as it was read with the claim.
        under_way.whose.endpoint = taken.endpoint
        task = asyncio.get_running_loop().create_task(self._ask(taken))
        self._asking.add(task)
        task.add_done_callback(self._asking.discard)

    async def _ask(self, taken: ClaimedTurn) -> None:
        try:
            self._answered.append(await answered(taken))
        except Exception:  # a defect costs this turn, which the sweep finds again once its claim has run out
            logger.exception("a turn failed")
            self._forget([taken.wanted])
        self._bell.set()

    def _forget(self, some: Iterable[TurnKey]) -> None:
        """Turns are not under way any more: stored, or not claimed."""
        for wanted in list(some):
            whose = self._under_way.pop(wanted).whose
            if wanted in self._again:
                self._again.discard(wanted)
                self._put(wanted, whose)

    async def _in_database(self, work: Callable[[], Found]) -> Found | None:
        """Do something on the thread that has the database; None if that is away: it is tried again after a while."""

        def then_close() -> Found:
            try:
                return work()
            finally:
                close_old_connections()

        try:
            return await asyncio.get_running_loop().run_in_executor(self._database, then_close)
        except Error as error:
            logger.warning("the database did not take what models answered or were asked, trying again: %s", error)
            await asyncio.sleep(_PAUSE_S)
            return None


def _has_room(whose: _Whose, promised: float) -> bool:
    """Say whether another turn may be claimed where so many requests are promised already."""
    request_limits = request_limits_of(whose.endpoint)
    if promised > 0 and promised + whose.requests > request_limits.limit.now(whose.endpoint.concurrency):
        return False
    return request_limits.has_minute(round(whose.requests), unsent=round(promised) - request_limits.limit.under_way)


async def answered(taken: ClaimedTurn) -> TurnResult:
    """Ask for a turn that was taken."""
    admitted = Admitted(taken.known)
    with limits.tallied() as tally:
        answers = await taken.ask.answers(admitted=admitted)
    return TurnResult(taken, answers, admitted, tally)


_asker: Asker | None = None


def begin() -> Asker:
    """Make this process take turns by itself."""
    global _asker
    _asker = Asker()
    publishing.take_here(TASK, _asker.offer)
    return _asker


def take(comparison_id: int, judge_id: int) -> None:
    """Take a turn: soon, where this process has begun to take turns by itself, as all do that run the program.

    Where too many wait already, the sweep finds it again. Otherwise, as in tests, it is taken now.
    """
    if _asker is not None:
        _asker.offer(comparison_id, judge_id)
        return
    owner = uuid.uuid4()
    for taken in turns.work([], [(comparison_id, judge_id)], owner):
        came = loop.run(answered(taken))
        limits.flush()
        turns.work([came], [], owner)
