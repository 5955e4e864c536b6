"""The statements on the path of a vote, by name, each with the rows that it locks and the index that finds them.

    COMPARISON                         locks a comparison; its chain and campaign beside it
    COMPARISON_OF_LEASE                locks a lease with its comparison and its person; chain and campaign beside them
    PAIR                               locks a comparison unless somebody else holds it; its two objects beside it
    ONE_OPEN, NEXT_OPEN                how open comparisons stand: counted votes, leases, turns
    WANTED                             whether a campaign has room for anybody
    PERSON                             an annotator with their campaign, for what their page shows
    VOTES_OF_MODELS                    the keys of a comparison's votes that models have cast
    END_LEASE, COUNT_VOTE, MARK_ASKABLE, DECIDE    what a vote changes, each by the key of its row
    ADVANCE                            moves a chain's head, and tells the status of its campaign in that moment

Both databases run them. SQLite locks no rows: there every transaction begins as a writer, so `locks` is left away. A
lock that was waited for shows its own row as it is now, and all others as they were before: what else a decision rests
on is read by a statement of its own, afterwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.utils import CursorWrapper

from prefmh_web.campaigns.engine.rows import Columns, adapted, current, executed
from prefmh_web.campaigns.models import Annotator, Campaign, Chain, Comparison, Lease, State

_OF_THE_COMPARISON = " FOR NO KEY UPDATE OF c"
_OF_THE_LEASE_TOO = " FOR NO KEY UPDATE OF c, l, a"


@dataclass(frozen=True)
class Condition:
    """What must hold for a change to be made, and the values in it."""

    sql: str
    values: list[Any]


@dataclass(frozen=True)
class Statement:
    """SQL with a place for each value.

    Args:
        locks: what is appended where the database locks rows.
        returning: the column that a change returns of its row.
    """

    sql: str
    locks: str = ""
    returning: str = ""

    def rows(self, *values: object) -> list[tuple[Any, ...]]:
        """Return what it finds."""
        found: list[tuple[Any, ...]] = self._executed(values).fetchall()
        return found

    def row(self, *values: object) -> tuple[Any, ...] | None:
        """Return the first row that it finds, or None."""
        return next(iter(self.rows(*values)), None)

    def change(self, *values: object) -> int:
        """Return how many rows it has changed."""
        return int(self._executed(values).rowcount)

    def _executed(self, values: Sequence[object]) -> CursorWrapper:
        connection = current()
        return executed(self.words(connection), [adapted(value, connection) for value in values])

    def words(self, connection: BaseDatabaseWrapper, only_if: Condition | None = None) -> str:
        """Return its SQL for a database; with a condition, whose values come last, for rows of which that holds."""
        where = "" if only_if is None else f" AND {only_if.sql}"
        returning = f" RETURNING {self.returning}" if self.returning else ""
        locks = self.locks if connection.features.has_select_for_update else ""
        return f"{self.sql}{where}{returning}{locks}"


# Nobody sees the codes of a pair; those of an image model's latents have 87,000 characters each. Few campaigns show
# columns of their list: then they are read when they are asked for.
_UNSEEN = ("code", "neighbours", "columns")
OF_COMPARISON = Columns(Comparison, "c")
OF_CHAIN = Columns(Chain, "h")
# What is fixed of a campaign is read once in each process: `started_campaign`.
_OF_NO_VOTE = ("config_data", "instructions", "tuning", "creation_key", "cost_cap", "request_cap", "paused_because")
OF_CAMPAIGN = Columns(Campaign, "m", without=_OF_NO_VOTE)
OF_CURRENT, OF_PROPOSAL = Columns(State, "x", without=_UNSEEN), Columns(State, "y", without=_UNSEEN)
OF_LEASE = Columns(Lease, "l")
OF_ANNOTATOR = Columns(Annotator, "a")

_CHAIN_AND_CAMPAIGN = """
    JOIN campaigns_chain h ON h.id = c.chain_id JOIN campaigns_campaign m ON m.id = h.campaign_id
"""
# Found by the primary keys.
COMPARISON = Statement(
    f"""
    SELECT {OF_COMPARISON.sql}, {OF_CHAIN.sql}, {OF_CAMPAIGN.sql}
    FROM campaigns_comparison c {_CHAIN_AND_CAMPAIGN} WHERE c.id = %s
    """,
    _OF_THE_COMPARISON,
)
# Found by the lease's key; the person's other leases by lease_one_live_per_annotator. What is locked is shown as it is
# once the lock is there, the chain and the campaign as they were when the statement began.
COMPARISON_OF_LEASE = Statement(
    f"""
    SELECT {OF_COMPARISON.sql}, {OF_CHAIN.sql}, {OF_CAMPAIGN.sql}, {OF_LEASE.sql}, {OF_ANNOTATOR.sql},
        EXISTS (SELECT 1 FROM campaigns_lease o WHERE o.annotator_id = a.id AND o.ended_at IS NULL AND o.key <> l.key)
    FROM campaigns_comparison c {_CHAIN_AND_CAMPAIGN}
    JOIN campaigns_lease l ON l.comparison_id = c.id JOIN campaigns_annotator a ON a.id = l.annotator_id
    WHERE l.key = %s AND l.annotator_id = %s
    """,
    _OF_THE_LEASE_TOO,
)
_PAIR = f"""
    SELECT {OF_COMPARISON.sql}, {OF_CURRENT.sql}, {OF_PROPOSAL.sql}
    FROM campaigns_comparison c
    JOIN campaigns_state x ON x.id = c.current_id JOIN campaigns_state y ON y.id = c.proposal_id
    WHERE c.id = %s
"""
PAIR = Statement(_PAIR, f"{_OF_THE_COMPARISON} SKIP LOCKED")
PAIR_ONCE_FREE = Statement(_PAIR, _OF_THE_COMPARISON)
# Found by the primary keys.
PERSON = Statement(
    f"""
    SELECT {OF_ANNOTATOR.sql}, {OF_CAMPAIGN.sql},
        EXISTS (SELECT 1 FROM campaigns_lease l WHERE l.annotator_id = a.id AND l.ended_at IS NULL)
    FROM campaigns_annotator a JOIN campaigns_campaign m ON m.id = a.campaign_id WHERE a.id = %s
    """
)


@dataclass(frozen=True)
class Standing:
    """How some open comparisons stand: in campaigns where people alone judge, and where models judge too.

    Args:
        which: the comparisons, as SQL.
    """

    which: str

    def statement(self, *, with_turns: bool) -> Statement:
        """Return the statement that a campaign needs."""
        return _standing(self.which, with_turns)


_ONE = """
    SELECT c.id, c.step, h.place, c.log_r0, c.uniform
    FROM campaigns_comparison c JOIN campaigns_chain h ON h.id = c.chain_id
    WHERE c.verdict IS NULL AND c.id = %s
"""
_NEXT = """
    SELECT c.id, c.step, c.chain_place AS place, c.log_r0, c.uniform
    FROM campaigns_campaign m JOIN campaigns_comparison c ON c.chain_campaign_id = m.id
    WHERE m.status = 'running' AND c.verdict IS NULL AND c.is_askable AND m.id = %s
        AND (c.step, c.chain_place) > (%s, %s)
    ORDER BY c.step, c.chain_place LIMIT %s
"""
# A row for each open comparison, one for each of its counted votes and of its leases, and one for each model's turn,
# with the votes that it may still bring.
_WHAT_HAPPENED = """
    SELECT o.id, o.step, o.place, o.log_r0, o.uniform,
        'open' AS what, NULL AS judge_id, NULL AS annotator_id, 0 AS votes
    FROM open o
    UNION ALL
    SELECT o.id, o.step, o.place, o.log_r0, o.uniform,
        CASE WHEN v.chosen_side = v.proposal_side THEN 'for' ELSE 'against' END, v.judge_id, v.annotator_id, 1
    FROM open o JOIN campaigns_vote v ON v.comparison_id = o.id WHERE v.number IS NOT NULL
    UNION ALL
    SELECT o.id, o.step, o.place, o.log_r0, o.uniform,
        CASE WHEN l.ending IS NULL THEN 'live'
            WHEN l.ending IN ('skipped', 'unasked') AND l.ended_at > %s THEN 'resting'
            ELSE l.ending END, l.judge_id, l.annotator_id, 1
    FROM open o JOIN campaigns_lease l ON l.comparison_id = o.id
"""
_TURNS = """
    UNION ALL
    SELECT o.id, o.step, o.place, o.log_r0, o.uniform,
        'turn', t.judge_id, NULL, CASE WHEN t.until > %s THEN t.asked ELSE 0 END
    FROM open o JOIN campaigns_turn t ON t.comparison_id = o.id
"""
_IN_ORDER = " ORDER BY 2, 3"


def is_as_seen(comparison_id: int, leases: int, live: int, counted: int) -> Condition:
    """Return the condition that a comparison has so many leases, so many of them live, and so many counted votes. Each
    is found by the index of its foreign key.
    """
    leased = "(SELECT COUNT(*) FROM campaigns_lease s WHERE s.comparison_id = %s"
    return Condition(
        f"{leased}) = %s AND {leased} AND s.ended_at IS NULL) = %s AND "
        "(SELECT COUNT(*) FROM campaigns_vote s WHERE s.comparison_id = %s AND s.number IS NOT NULL) = %s",
        [comparison_id, leases, comparison_id, live, comparison_id, counted],
    )


@lru_cache
def _standing(which: str, with_turns: bool) -> Statement:
    turns = _TURNS if with_turns else ""
    return Statement(f"WITH open AS ({which}) {_WHAT_HAPPENED}{turns}{_IN_ORDER}")


# Found by its primary key.
ONE_OPEN = Standing(_ONE)
# The index comparison_next holds those that are open and askable in this order, so that what it costs does not grow
# with the chains. Its values: the campaign, the step and place of the last one seen, and how many to read.
NEXT_OPEN = Standing(_NEXT)
# By the same index.
WANTED = Statement(
    """
    SELECT m.status, m.status = 'running' AND EXISTS (
        SELECT 1 FROM campaigns_comparison c WHERE c.verdict IS NULL AND c.is_askable AND c.chain_campaign_id = m.id
    ) FROM campaigns_campaign m WHERE m.id = %s
    """
)

# Found by the index of the comparison.
VOTES_OF_MODELS = Statement("SELECT v.key FROM campaigns_vote v WHERE v.comparison_id = %s AND v.annotator_id IS NULL")

# A vote may follow an expiry, of this very moment perhaps.
END_LEASE = Statement(
    "UPDATE campaigns_lease SET ended_at = %s, ending = %s WHERE key = %s AND (ended_at IS NULL OR ending = 'expired')",
    returning="ending",
)
COUNT_VOTE = Statement(
    "UPDATE campaigns_annotator SET votes_cast = votes_cast + 1 WHERE id = %s", returning="votes_cast"
)
MARK_ASKABLE = Statement("UPDATE campaigns_comparison SET is_askable = %s WHERE id = %s", returning="is_askable")
DECIDE = Statement("UPDATE campaigns_comparison SET verdict = %s, decided_at = %s WHERE id = %s", returning="verdict")
ADVANCE = Statement(
    "UPDATE campaigns_chain SET head_id = %s, step = %s, moves = moves + %s, accepted = accepted + %s, "
    "votes = votes + %s, votes_for = votes_for + %s WHERE id = %s AND step = %s",
    returning="(SELECT status FROM campaigns_campaign m WHERE m.id = campaign_id)",
)
