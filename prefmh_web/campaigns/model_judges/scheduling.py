"""Turns of all campaigns in one process: many at a time, as many as their endpoints serve, each campaign in its turn.

    begin    makes this process take turns by itself, on threads of its own
    take     takes a turn: now, or soon where the process has begun to

A turn that is given here waits in memory, and nobody is told: the sweep finds those of a process that was killed. One
is begun when its endpoint has room for its votes, and its minute, where that is limited, too: none holds a thread while
it waits for others. Of those that wait for one endpoint, the campaigns go in turn. What the end of a turn makes
possible, the next one of its chain mostly, comes here without a message (`transport/publishing.py`).
"""

from __future__ import annotations

import logging
import threading
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from django.db import Error, close_old_connections

from prefmh_web.campaigns.model_judges import turns
from prefmh_web.campaigns.models import Judge
from prefmh_web.endpoints.gates import Gates
from prefmh_web.endpoints.lending import working
from prefmh_web.endpoints.models import Endpoint
from prefmh_web.transport import publishing

logger = logging.getLogger(__name__)

TASK = "prefmh_web.campaigns.tasks.judge"
# Beyond so many for each thread, turns are left to other processes and to the sweep.
_WAITING_FOR_EACH = 4
# How soon room is seen that came without a turn's end: another process has given it, or the limit has risen.
_LOOK_EVERY_S = 0.2
# How soon what the newest turn took outweighs those before.
_WEIGHT = 0.05
# Of a sum of floats.
_ALMOST_NONE = 1e-6

Turn = tuple[int, int]


@dataclass
class _Whose:
    """A judge's campaign and its endpoint, and what is known of its turns."""

    campaign: int
    endpoint: Endpoint
    requests: float
    """How many requests a turn mostly takes: as many of N votes as can be needed at once."""

    def note(self, asked: int) -> None:
        """Take in for how many a turn has asked."""
        self.requests += _WEIGHT * (asked - self.requests)


class Scheduler:
    """Takes turns on threads.

    Args:
        most: how many at a time.
        gates: of the endpoints.
    """

    def __init__(self, most: int, gates: Gates) -> None:
        self._most, self._gates = most, gates
        self._threads = ThreadPoolExecutor(most, thread_name_prefix="turn")
        self._changed = threading.Condition()
        # By endpoint, then by campaign: dictionaries for their order, since no turn waits twice.
        self._waiting: dict[int, dict[int, dict[Turn, None]]] = defaultdict(dict)
        self._count = 0
        self._under_way: set[Turn] = set()
        self._again: set[Turn] = set()
        self._promised: dict[int, float] = defaultdict(float)
        self._judges: dict[int, _Whose] = {}
        self._is_over = False
        self._looker = threading.Thread(target=self._look, name="turns", daemon=True)
        self._looker.start()

    def offer(self, comparison_id: int, judge_id: int) -> bool:
        """Take a turn soon; False if too many wait already."""
        turn = comparison_id, judge_id
        whose = self._whose(judge_id)
        if whose is None:
            # Deleted meanwhile.
            return True
        with self._changed:
            if self._is_over or self._count >= self._most * _WAITING_FOR_EACH:
                return False
            if turn in self._under_way:
                # What it is given for may have come after that one looked.
                self._again.add(turn)
                return True
            self._put(turn, whose)
            self._changed.notify()
        return True

    def end(self) -> None:
        """Begin no more turns, and wait for those under way."""
        with self._changed:
            self._is_over = True
            self._changed.notify()
        self._looker.join()
        self._threads.shutdown()

    def _put(self, turn: Turn, whose: _Whose) -> None:
        mine = self._waiting[whose.endpoint.pk].setdefault(whose.campaign, {})
        self._count += turn not in mine
        mine[turn] = None

    def _whose(self, judge_id: int) -> _Whose | None:
        """Return whose a judge is. Which endpoint it has never changes; what is in its row may be some turns old."""
        if (found := self._judges.get(judge_id)) is None:
            judge = Judge.objects.filter(pk=judge_id, endpoint__isnull=False).select_related("endpoint").first()
            if judge is None or judge.endpoint is None:
                return None
            found = self._judges[judge_id] = _Whose(judge.campaign_id, judge.endpoint, float(judge.max_votes))
        return found

    def _look(self) -> None:
        """Begin turns as there is room for them."""
        while True:
            with self._changed:
                if self._is_over:
                    return
                begun = [self._next(endpoint) for endpoint in list(self._waiting)]
                if not any(begun):
                    self._changed.wait(_LOOK_EVERY_S if self._count else None)

    def _next(self, endpoint_id: int) -> bool:
        """Begin a turn at an endpoint, if there is room for one; say whether."""
        campaigns = self._waiting[endpoint_id]
        if not campaigns:
            del self._waiting[endpoint_id]
            return False
        campaign, mine = next(iter(campaigns.items()))
        turn = next(iter(mine))
        whose = self._judges[turn[1]]
        promised = self._promised[endpoint_id]
        has_room = promised + whose.requests <= self._gates.limit(whose.endpoint) or promised < _ALMOST_NONE
        if not has_room or len(self._under_way) >= self._most or not self._has_minute(whose):
            return False
        # The campaign goes to the end of the line.
        del campaigns[campaign], mine[turn]
        if mine:
            campaigns[campaign] = mine
        self._count -= 1
        self._under_way.add(turn)
        self._promised[endpoint_id] += whose.requests
        self._threads.submit(self._take, turn, whose, whose.requests)
        return True

    def _has_minute(self, whose: _Whose) -> bool:
        """Set aside what the next turn may send this minute; say whether there is enough of it."""
        try:
            return self._gates.has_minute(whose.endpoint, whose.requests)
        except Error:
            logger.warning("could not look at how much a model server was asked; trying again", exc_info=True)
            return False
        finally:
            close_old_connections()

    def _take(self, turn: Turn, whose: _Whose, promised: float) -> None:
        asked = 0
        try:
            with working():
                asked = turns.take_turn(*turn)
            if asked:
                whose.note(asked)
        except Error:
            logger.warning("a turn could not be taken, and is found again by the sweep", exc_info=True)
        except Exception:  # a defect costs this turn, which the sweep finds again, and not the thread of all others
            logger.exception("a turn failed")
        finally:
            close_old_connections()
            self._gates.turn_over(whose.endpoint, promised, asked)
            with self._changed:
                self._under_way.discard(turn)
                self._promised[whose.endpoint.pk] -= promised
                if turn in self._again:
                    self._again.discard(turn)
                    self._put(turn, whose)
                self._changed.notify()


_scheduler: Scheduler | None = None


def begin(most: int, gates: Gates) -> Scheduler:
    """Make this process take turns by itself, so many at a time."""
    global _scheduler
    _scheduler = Scheduler(most, gates)
    publishing.take_here(TASK, _scheduler.offer)
    return _scheduler


def take(comparison_id: int, judge_id: int) -> None:
    """Take a turn: soon, where this process has begun to take turns by itself and has room; otherwise now."""
    if _scheduler is None or not _scheduler.offer(comparison_id, judge_id):
        turns.take_turn(comparison_id, judge_id)
