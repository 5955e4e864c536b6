"""A model's turn while it is taken: renewed by whoever takes it, so that nobody else asks for the same meanwhile.

As with `engine/claims.py`: however slow the endpoint is, one request is on its way for each vote; a process that
dies keeps its turn from the others for `CLAIM_S` and no longer.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

from django.db.models import QuerySet
from django.utils import timezone

from prefmh_web.campaigns.engine import sql
from prefmh_web.campaigns.engine.claims import claim_end, renewed
from prefmh_web.campaigns.engine.usage import Reserved
from prefmh_web.campaigns.models import Comparison, Judge, State, Turn


class TurnClaim:
    """A turn that somebody is taking."""

    def __init__(self, turn: int, until: datetime) -> None:
        self._turn, self._until = turn, until

    def __str__(self) -> str:
        return f"turn {self._turn}"

    @classmethod
    def take(cls, comparison: Comparison, judge: Judge, state: State | None, reserved: Reserved) -> "TurnClaim":
        """Take a turn on a `locked` comparison: so many votes are on their way, or ratings of this object."""
        until, state_id = claim_end(), None if state is None else state.pk
        claimed = reserved.count, state_id, until, "", timezone.now(), reserved.requests, reserved.cost
        # The comparison is locked, so nobody else takes it now.
        [[turn]] = sql.TAKE.rows(comparison.pk, judge.pk, *claimed)
        return cls(turn, until)

    def renew(self) -> None:
        """Keep it for another while."""
        until = claim_end()
        self._mine().update(until=until)
        self._until = until

    def end(self, **outcome: object) -> None:
        """End it: gone, or with what it came to. One that ran out may be somebody else's by now, and stays."""
        if outcome:
            self._mine().update(asked=0, state=None, **outcome)
        else:
            sql.GIVE_UP.change(self._turn, self._until)

    def _mine(self) -> QuerySet[Turn]:
        return Turn.objects.filter(pk=self._turn, until=self._until, asked__gt=0)


@contextmanager
def kept(claim: TurnClaim) -> Iterator[None]:
    """Renew a turn from another thread while this one waits for the endpoint."""
    with renewed(claim):
        yield
