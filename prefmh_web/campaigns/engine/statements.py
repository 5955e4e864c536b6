"""The statements on the path of a vote, by name, each with the rows that it locks and the index that finds them.

    COMPARISON, COMPARISON_OF_LEASE    lock a comparison; its chain and campaign beside it
    PAIR                               locks a comparison unless somebody else holds it; its two objects beside it
    LEASE                              one lease, unless its person was shown out, and whether they rest
    ONE_OPEN, NEXT_OPEN                how open comparisons stand: their counted votes, leases, and models' turns
    WANTED                             whether a campaign has room for anybody
    PERSON                             an annotator with their campaign, for what their page shows
    END_LEASE, VOTE_ON_EXPIRED, MARK_ASKABLE, DECIDE    what a vote changes
    ADVANCE                            moves a chain's head, and tells the status of its campaign in that moment

Both databases run them. SQLite locks no rows: there every transaction begins as a writer, so `locks` is left away. A
lock that was waited for shows its own row as it is now, and all others as they were before: what else a decision rests
on is read by a statement of its own, afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db import connection

from prefmh_web.campaigns.engine.rows import Columns, adapted
from prefmh_web.campaigns.models import Annotator, Campaign, Chain, Comparison, Lease, State

_OF_THE_COMPARISON = " FOR NO KEY UPDATE OF c"


@dataclass(frozen=True)
class Statement:
    """SQL with a place for each value.

    Args:
        locks: what is appended where the database locks rows.
    """

    sql: str
    locks: str = ""

    def rows(self, *values: object) -> list[tuple[Any, ...]]:
        """Return what it finds."""
        with connection.cursor() as cursor:
            cursor.execute(self._words(), [adapted(value) for value in values])
            found: list[tuple[Any, ...]] = cursor.fetchall()
            return found

    def row(self, *values: object) -> tuple[Any, ...] | None:
        """Return the first row that it finds, or None."""
        return next(iter(self.rows(*values)), None)

    def change(self, *values: object) -> int:
        """Return how many rows it has changed."""
        with connection.cursor() as cursor:
            cursor.execute(self._words(), [adapted(value) for value in values])
            return int(cursor.rowcount)

    def _words(self) -> str:
        return self.sql + self.locks if connection.features.has_select_for_update else self.sql


# Nobody sees the codes of a pair; those of an image model's latents have 87,000 characters each.
_UNSEEN = ("code", "neighbours")
OF_COMPARISON = Columns(Comparison, "c")
OF_CHAIN = Columns(Chain, "h")
# What is fixed of a campaign is read once in each process: `started_campaign`.
OF_CAMPAIGN = Columns(Campaign, "m", without=("recipe", "instructions"))
OF_CURRENT, OF_PROPOSAL = Columns(State, "x", without=_UNSEEN), Columns(State, "y", without=_UNSEEN)
OF_LEASE = Columns(Lease, "l")
OF_ANNOTATOR = Columns(Annotator, "a")

_WITH_CHAIN_AND_CAMPAIGN = f"""
    SELECT {OF_COMPARISON.sql}, {OF_CHAIN.sql}, {OF_CAMPAIGN.sql}
    FROM campaigns_comparison c
    JOIN campaigns_chain h ON h.id = c.chain_id JOIN campaigns_campaign m ON m.id = h.campaign_id
    WHERE c.id =
"""
# Found by the primary keys.
COMPARISON = Statement(f"{_WITH_CHAIN_AND_CAMPAIGN} %s", _OF_THE_COMPARISON)
# Found by the lease's key.
COMPARISON_OF_LEASE = Statement(
    f"{_WITH_CHAIN_AND_CAMPAIGN} (SELECT comparison_id FROM annotate_lease WHERE key = %s AND annotator_id = %s)",
    _OF_THE_COMPARISON,
)
_PAIR = f"""
    SELECT {OF_COMPARISON.sql}, {OF_CURRENT.sql}, {OF_PROPOSAL.sql}
    FROM campaigns_comparison c
    JOIN campaigns_state x ON x.id = c.current_id JOIN campaigns_state y ON y.id = c.proposal_id
    WHERE c.id = %s
"""
PAIR = Statement(_PAIR, f"{_OF_THE_COMPARISON} SKIP LOCKED")
PAIR_ONCE_FREE = Statement(_PAIR, _OF_THE_COMPARISON)
LEASE = Statement(
    f"SELECT {OF_LEASE.sql}, a.resting FROM annotate_lease l JOIN campaigns_annotator a ON a.id = l.annotator_id "
    "WHERE l.key = %s AND a.removed_at IS NULL"
)
PERSON = Statement(
    f"""
    SELECT {OF_ANNOTATOR.sql}, {OF_CAMPAIGN.sql},
        (SELECT COUNT(*) FROM campaigns_vote v WHERE v.annotator_id = a.id),
        EXISTS (SELECT 1 FROM annotate_lease l WHERE l.annotator_id = a.id AND l.ended_at IS NULL)
    FROM campaigns_annotator a JOIN campaigns_campaign m ON m.id = a.campaign_id WHERE a.id = %s
    """
)


@dataclass(frozen=True)
class Standing:
    """How some open comparisons stand, in campaigns where people alone judge, and where models judge too."""

    of_people: Statement
    with_turns: Statement


_OPEN = """
    SELECT c.id, c.step, h.place, c.log_r0, c.uniform
    FROM campaigns_comparison c JOIN campaigns_chain h ON h.id = c.chain_id
    WHERE c.verdict IS NULL AND
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
        CASE WHEN l.ending IS NULL THEN 'live' WHEN l.ending = 'skipped' AND l.ended_at > %s THEN 'resting'
            ELSE l.ending END, l.judge_id, l.annotator_id, 1
    FROM open o JOIN annotate_lease l ON l.comparison_id = o.id
"""
_TURNS = """
    UNION ALL
    SELECT o.id, o.step, o.place, o.log_r0, o.uniform,
        'turn', t.judge_id, NULL, CASE WHEN t.until > %s THEN t.asked ELSE 0 END
    FROM open o JOIN campaigns_turn t ON t.comparison_id = o.id
"""
_IN_ORDER = " ORDER BY 2, 3"


def _standing(which: str) -> Standing:
    people = f"WITH open AS ({_OPEN} {which}) {_WHAT_HAPPENED}"
    return Standing(Statement(people + _IN_ORDER), Statement(people + _TURNS + _IN_ORDER))


ONE_OPEN = _standing("c.id = %s")
# The index comparison_askable holds those that are open and askable. The step and place of the last one seen, and how
# many to read.
NEXT_OPEN = _standing(
    "c.is_askable AND h.campaign_id = %s AND (c.step, h.place) > (%s, %s) ORDER BY c.step, h.place LIMIT %s"
)
WANTED = Statement(
    """
    SELECT m.status, m.status = 'running' AND EXISTS (
        SELECT 1 FROM campaigns_comparison c JOIN campaigns_chain h ON h.id = c.chain_id
        WHERE c.verdict IS NULL AND c.is_askable AND h.campaign_id = m.id
    ) FROM campaigns_campaign m WHERE m.id = %s
    """
)

# Guarded updates: of a vote, a skip and an expiry at the same moment the first wins.
END_LEASE = Statement("UPDATE annotate_lease SET ended_at = %s, ending = %s WHERE key = %s AND ended_at IS NULL")
VOTE_ON_EXPIRED = Statement(
    "UPDATE annotate_lease SET ended_at = %s, ending = %s WHERE key = %s AND ending = 'expired'"
)
MARK_ASKABLE = Statement("UPDATE campaigns_comparison SET is_askable = %s WHERE id = %s")
DECIDE = Statement("UPDATE campaigns_comparison SET verdict = %s, decided_at = %s WHERE id = %s")
ADVANCE = Statement(
    "UPDATE campaigns_chain SET head_id = %s, step = %s, moves = moves + %s, accepted = accepted + %s, "
    "votes = votes + %s WHERE id = %s AND step = %s "
    "RETURNING (SELECT status FROM campaigns_campaign m WHERE m.id = campaign_id)"
)
