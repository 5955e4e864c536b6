"""SQL of our own on the path of a vote: rows as model instances and back, each statement with the rows that it locks
and the index that finds them, and several changes as one statement.

Django puts a queryset into words each time it is used, and that takes several times as long as the database's answer.
Here the words are fixed; what is read still passes through Django's own converters, so that both databases give the
same.

    COMPARISON, COMPARISONS            locks comparisons; their chains and campaigns beside them
    COMPARISON_OF_LEASE                locks a lease with its comparison and its person; chain and campaign beside them
    PAIR                               locks a comparison unless somebody else holds it; its two objects beside it
    ONE_OPEN, SOME_OPEN, NEXT_OPEN     how open comparisons stand: counted votes, leases, turns
    WANTED                             whether a campaign has room for anybody
    PERSON                             a voter with their campaign, for what their page shows
    VOTES_OF_MODELS                    the keys of a comparison's votes that models have cast
    END_LEASE, COUNT_VOTE, MARK_ASKABLE, DECIDE    what a vote changes, each by the key of its row
    ADVANCE                            moves a chain's head, and tells the status of its campaign in that moment
    JUDGE, TURNS, IDENTITIES           of models' turns: the judge with its endpoint, the turns, whose replies count as
                                       the judge's
    take, GIVE_UP, KEEP                turns that are claimed, that are over, that are kept for another while

Both databases run them. SQLite locks no rows: there every transaction begins as a writer, so `locks` is left away. A
lock that was waited for shows its own row as it is now, and all others as they were before: what else a decision rests
on is read by a statement of its own, afterwards.

PostgreSQL makes several changes in one statement (`Changes`), each a part of a WITH, which costs little more than one
of them alone. All parts see the record as it was before the statement, and none may touch another's row. Their order is
not fixed: a part that needs others names them. On SQLite, which has no such statement and no network in between, they
are made one by one, in the order in which they were added.
"""

from __future__ import annotations

import json
import sqlite3
import uuid
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, cached_property, lru_cache
from typing import Any, Generic, TypeVar

from django.db import DEFAULT_DB_ALIAS, connections, models
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.utils import CursorWrapper
from django.db.models.base import ModelState

from prefmh_web.campaigns.models import Campaign, Chain, Comparison, Judge, Lease, ReplyIdentity, State, Turn, Voter
from prefmh_web.endpoints.models import Endpoint

M = TypeVar("M", bound=models.Model)
# What psycopg takes as it is, in Django's forms for SQLite; a list of keys is JSON there.
sqlite3.register_adapter(datetime, lambda moment: str(moment.astimezone(UTC).replace(tzinfo=None)))
sqlite3.register_adapter(uuid.UUID, lambda key: key.hex)
sqlite3.register_adapter(list, json.dumps)


def current() -> BaseDatabaseWrapper:
    """Return the connection of this thread, which `django.db.connection` looks up anew for each of its attributes."""
    return connections[DEFAULT_DB_ALIAS]


@cache
def _is_postgresql() -> bool:
    return current().vendor == "postgresql"


def executed(sql: str, values: Sequence[Any]) -> CursorWrapper:
    """Run a statement. Read all that it has found before the next one runs: that takes its place."""
    connection = current()
    # Django's own SQLite has none.
    cursor: CursorWrapper = getattr(connection, "kept_cursor", connection.cursor)()
    cursor.execute(sql, values)
    return cursor


class Columns(Generic[M]):
    """The columns of a table in a SELECT, and what they hold as an instance.

    Args:
        alias: the table's name in the statement.
        without: fields that are not read.
    """

    def __init__(self, model: type[M], alias: str, without: Collection[str] = ()) -> None:
        self._model = model
        self._fields = tuple(field for field in model._meta.concrete_fields if field.name not in without)
        self._names = tuple(field.attname for field in self._fields)
        self.sql, self.count = ", ".join(f'{alias}."{field.column}"' for field in self._fields), len(self._fields)

    def read(self, values: Sequence[Any]) -> M:
        """Return the instance that these columns hold."""
        read, connection = list(values), current()
        for index, column, convert in self._converters:
            read[index] = convert(read[index], column, connection)
        # What `from_db` does, without a call for each column and without signals.
        instance = self._model.__new__(self._model)
        instance._state = ModelState()
        instance._state.adding, instance._state.db = False, DEFAULT_DB_ALIAS
        vars(instance).update(zip(self._names, read, strict=True))
        return instance

    @cached_property
    def _converters(self) -> list[tuple[int, object, Callable[[Any, object, BaseDatabaseWrapper], Any]]]:
        # Asked for once a connection is there: what they are depends on the database.
        connection = current()
        return [
            (index, field.cached_col, convert)
            for index, field in enumerate(self._fields)
            for get in (connection.ops.get_db_converters(field.cached_col), field.get_db_converters(connection))
            for convert in get
        ]


def read_all(columns: Sequence[Columns[Any]], row: Sequence[Any]) -> list[Any]:
    """Return the instances that stand side by side in a row, and behind them whatever else is in it."""
    found, at = [], 0
    for each in columns:
        found.append(each.read(row[at : at + each.count]))
        at += each.count
    return [*found, *row[at:]]


def insertion(instance: models.Model, source: str = "") -> tuple[str, list[Any]]:
    """Return the statement that stores a new instance and returns its key, and the values in it.

    Args:
        source: what follows the values, as in a SELECT: from what rows, or under which condition, it is stored. Values
            of its own come last.
    """
    model, is_postgresql = type(instance), _is_postgresql()
    return _insertion(model, source, is_postgresql), [field.pre_save(instance, True) for field in _stored_fields(model)]


def note_stored(instance: models.Model, key: Any) -> None:
    """Let a new instance know that it is stored, under this key."""
    if instance._meta.auto_field is not None:
        instance.pk = key
    instance._state.adding, instance._state.db = False, DEFAULT_DB_ALIAS


def _stored_fields(model: type[models.Model]) -> tuple[Any, ...]:
    # An automatic key is the database's to give.
    return tuple(field for field in model._meta.concrete_fields if field is not model._meta.auto_field)


@lru_cache(maxsize=64)
def _insertion(model: type[models.Model], source: str, is_postgresql: bool) -> str:
    fields, connection = _stored_fields(model), current()
    columns, marks = ", ".join(f'"{field.column}"' for field in fields), ", ".join(["%s"] * len(fields))
    if source and is_postgresql:
        # In a SELECT, PostgreSQL takes a value whose type it is not told for a text.
        marks = ", ".join(f"%s::{field.db_type(connection)}" for field in fields)
    values = f"SELECT {marks}{source}" if source else f"VALUES ({marks})"
    table, key = model._meta.db_table, model._meta.pk.column
    return f'INSERT INTO "{table}" ({columns}) {values} RETURNING "{key}"'


_OF_THE_COMPARISON = " FOR NO KEY UPDATE OF c"
_OF_THE_LEASE_TOO = " FOR NO KEY UPDATE OF c, l, a"


_AMONG, _AMONG_JSON = "= ANY(%s)", "IN (SELECT value FROM json_each(%s))"


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
        found: list[tuple[Any, ...]] = executed(self.words(), values).fetchall()
        return found

    def row(self, *values: object) -> tuple[Any, ...] | None:
        """Return the first row that it finds, or None."""
        return next(iter(self.rows(*values)), None)

    def change(self, *values: object) -> int:
        """Return how many rows it has changed."""
        return int(executed(self.words(), values).rowcount)

    def words(self, only_if: Condition | None = None) -> str:
        """Return its SQL for this database; with a condition, whose values come last, for rows of which that holds."""
        where = "" if only_if is None else f" AND {only_if.sql}"
        returning = f" RETURNING {self.returning}" if self.returning else ""
        if _is_postgresql():
            return f"{self.sql}{where}{returning}{self.locks}"
        # A list of keys is an array of PostgreSQL, and JSON here.
        return f"{self.sql.replace(_AMONG, _AMONG_JSON)}{where}{returning}"


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
OF_VOTER = Columns(Voter, "a")

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
# Locked in the order of their keys, by everybody who locks several.
COMPARISONS = Statement(
    f"""
    SELECT {OF_COMPARISON.sql}, {OF_CHAIN.sql}, {OF_CAMPAIGN.sql}
    FROM campaigns_comparison c {_CHAIN_AND_CAMPAIGN} WHERE c.id {_AMONG} ORDER BY c.id
    """,
    _OF_THE_COMPARISON,
)
# Found by the lease's key; the person's other leases by lease_one_live_per_voter. What is locked is shown as it is
# once the lock is there, the chain and the campaign as they were when the statement began.
COMPARISON_OF_LEASE = Statement(
    f"""
    SELECT {OF_COMPARISON.sql}, {OF_CHAIN.sql}, {OF_CAMPAIGN.sql}, {OF_LEASE.sql}, {OF_VOTER.sql},
        EXISTS (SELECT 1 FROM campaigns_lease o WHERE o.voter_id = a.id AND o.ended_at IS NULL AND o.key <> l.key)
    FROM campaigns_comparison c {_CHAIN_AND_CAMPAIGN}
    JOIN campaigns_lease l ON l.comparison_id = c.id JOIN campaigns_voter a ON a.id = l.voter_id
    WHERE l.key = %s AND l.voter_id = %s
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
    SELECT {OF_VOTER.sql}, {OF_CAMPAIGN.sql},
        EXISTS (SELECT 1 FROM campaigns_lease l WHERE l.voter_id = a.id AND l.ended_at IS NULL)
    FROM campaigns_voter a JOIN campaigns_campaign m ON m.id = a.campaign_id WHERE a.id = %s
    """
)


# How open comparisons stand, each by `open_comparisons`. One is found by its primary key.
# None at which its chain was ended: whoever waited for the lock meanwhile has the chain as it was before.
ONE_OPEN = """
    SELECT c.id, c.step, h."index" AS chain_index, c.log_r0, c.uniform
    FROM campaigns_comparison c JOIN campaigns_chain h ON h.id = c.chain_id
    WHERE c.verdict IS NULL AND (c.suspended_at IS NULL OR h.ended_at IS NULL) AND c.id = %s
"""
SOME_OPEN = ONE_OPEN.replace("= %s", _AMONG)
# The index comparison_next holds those that are open and askable in this order, so that what it costs does not grow
# with the chains. Its values: the campaign, the step and chain of the last one seen, and how many to read.
NEXT_OPEN = """
    SELECT c.id, c.step, c.chain_index, c.log_r0, c.uniform
    FROM campaigns_campaign m JOIN campaigns_comparison c ON c.chain_campaign_id = m.id
    WHERE m.status = 'running' AND c.verdict IS NULL AND c.is_askable AND m.id = %s
        AND (c.step, c.chain_index) > (%s, %s)
    ORDER BY c.step, c.chain_index LIMIT %s
"""
# A row for each open comparison, one for each of its counted votes and of its leases, and one for each model's turn,
# with the votes that it may still bring.
_WHAT_HAPPENED = """
    SELECT o.id, o.step, o.chain_index, o.log_r0, o.uniform,
        'open' AS what, NULL AS judge_id, NULL AS voter_id, 0 AS votes
    FROM open o
    UNION ALL
    SELECT o.id, o.step, o.chain_index, o.log_r0, o.uniform,
        CASE WHEN v.chosen_side = v.proposal_side THEN 'for' ELSE 'against' END, v.judge_id, v.voter_id, 1
    FROM open o JOIN campaigns_vote v ON v.comparison_id = o.id WHERE v.number IS NOT NULL
    UNION ALL
    SELECT o.id, o.step, o.chain_index, o.log_r0, o.uniform,
        CASE WHEN l.ending IS NULL THEN 'live'
            WHEN l.ending IN ('skipped', 'unasked') AND l.ended_at > %s THEN 'resting'
            ELSE l.ending END, l.judge_id, l.voter_id, 1
    FROM open o JOIN campaigns_lease l ON l.comparison_id = o.id
"""
_TURNS = """
    UNION ALL
    SELECT o.id, o.step, o.chain_index, o.log_r0, o.uniform,
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
def open_comparisons(which: str, *, with_turns: bool) -> Statement:
    """Return the statement of how some open comparisons stand.

    Args:
        which: these, as SQL.
        with_turns: models judge in their campaign, too.
    """
    turns = _TURNS if with_turns else ""
    return Statement(f"WITH open AS ({which}) {_WHAT_HAPPENED}{turns}{_IN_ORDER}")


# By the index comparison_next.
WANTED = Statement(
    """
    SELECT m.status, m.status = 'running' AND EXISTS (
        SELECT 1 FROM campaigns_comparison c WHERE c.verdict IS NULL AND c.is_askable AND c.chain_campaign_id = m.id
    ) FROM campaigns_campaign m WHERE m.id = %s
    """
)

# Found by the index of the comparison.
VOTES_OF_MODELS = Statement(
    "SELECT v.comparison_id, v.judge_id, v.slot, v.key FROM campaigns_vote v "
    f"WHERE v.comparison_id {_AMONG} AND v.voter_id IS NULL"
)

# A vote may follow an expiry, of this very moment perhaps.
END_LEASE = Statement(
    "UPDATE campaigns_lease SET ended_at = %s, ending = %s WHERE key = %s AND (ended_at IS NULL OR ending = 'expired')",
    returning="ending",
)
COUNT_VOTE = Statement("UPDATE campaigns_voter SET votes_cast = votes_cast + 1 WHERE id = %s", returning="votes_cast")
MARK_ASKABLE = Statement("UPDATE campaigns_comparison SET is_askable = %s WHERE id = %s", returning="is_askable")
DECIDE = Statement("UPDATE campaigns_comparison SET verdict = %s, decided_at = %s WHERE id = %s", returning="verdict")
ADVANCE = Statement(
    "UPDATE campaigns_chain SET head_id = %s, step = %s, moves = moves + %s, accepted = accepted + %s, "
    "votes = votes + %s, votes_for = votes_for + %s WHERE id = %s AND step = %s",
    returning="(SELECT status FROM campaigns_campaign m WHERE m.id = campaign_id)",
)


OF_JUDGE, OF_ENDPOINT = Columns(Judge, "j"), Columns(Endpoint, "e")
OF_TURN, OF_IDENTITY = Columns(Turn, "t"), Columns(ReplyIdentity, "i")

JUDGE = Statement(
    f"""
    SELECT {OF_JUDGE.sql}, {OF_ENDPOINT.sql}, m.cost_cap IS NOT NULL OR m.request_cap IS NOT NULL
    FROM campaigns_judge j JOIN endpoints_endpoint e ON e.id = j.endpoint_id
    JOIN campaigns_campaign m ON m.id = j.campaign_id
    WHERE j.id = %s AND j.campaign_id = %s AND j.stopped_because = ''
    """
)
TURNS = Statement(f"SELECT {OF_TURN.sql} FROM campaigns_turn t WHERE t.comparison_id {_AMONG}")
IDENTITIES = Statement(
    f"SELECT {OF_IDENTITY.sql} FROM campaigns_replyidentity i WHERE i.judge_id = %s AND i.accepted_at IS NOT NULL"
)
# Only those that are still their owner's: one that ran out may be somebody else's by now.
_MINE = f"WHERE id {_AMONG} AND owner = %s AND asked > 0"
GIVE_UP = Statement(f"DELETE FROM campaigns_turn {_MINE}")
KEEP = Statement(f"UPDATE campaigns_turn SET until = %s {_MINE}")
_CLAIMED = ("asked", "state_id", "until", "reason", "reserved_requests", "reserved_cost", "owner")


def take(claims: Sequence[Sequence[object]]) -> dict[tuple[int, int], int]:
    """Store turns that are claimed, on locked comparisons; return their keys by comparison and judge.

    Args:
        claims: of each the comparison, the judge, and what `_CLAIMED` names.
    """
    if not claims:
        return {}
    one = f"({', '.join(['%s'] * (2 + len(_CLAIMED)))})"
    columns, rows_of = ", ".join(_CLAIMED), ", ".join([one] * len(claims))
    statement = Statement(
        f"""
        INSERT INTO campaigns_turn (comparison_id, judge_id, {columns}) VALUES {rows_of}
        ON CONFLICT (comparison_id, judge_id) DO UPDATE SET
            {", ".join(f"{name} = excluded.{name}" for name in _CLAIMED)}
        """,
        returning="comparison_id, judge_id, id",
    )
    rows = statement.rows(*(value for claim in claims for value in claim))
    return {(comparison, judge): turn for comparison, judge, turn in rows}


@dataclass(frozen=True)
class _Change:
    """One part: its words and its values.

    Args:
        statement: what it runs, if it changes a row.
        instance: what it stores, if it stores a new one.
        after: the indices of the parts without which it is not made, and what the last of them must return.
    """

    words: str
    values: list[Any]
    statement: Statement | None = None
    instance: models.Model | None = None
    after: tuple[tuple[int, ...], str] | None = None


class Changes:
    """Changes of one row each, to be made at once. Each returns one value of its row, or None if it changes none."""

    def __init__(self) -> None:
        self._changes: list[_Change] = []
        self._found: list[Any] = []

    def __contains__(self, statement: Statement) -> bool:
        return any(change.statement is statement for change in self._changes)

    def insert(self, instance: models.Model, only_if: Condition | None = None) -> None:
        """Add the storing of a new instance. Nobody listens to signals of what is stored so. Where the condition does
        not hold, it has no key then.

        What else is added under the same condition must come before.
        """
        words, values = insertion(instance, "" if only_if is None else f" WHERE {only_if.sql}")
        if only_if is not None:
            values = values + only_if.values
        self._changes.append(_Change(words, values, instance=instance))

    def insert_after(self, instance: models.Model, *statements: Statement, found: str) -> None:
        """Add the storing of a new instance if these statements change their rows, and the last returns `found`."""
        indices = tuple(self._index(statement) for statement in statements)
        if _is_postgresql():
            names = ", ".join(f"change_{index}" for index in indices)
            words, values = insertion(instance, f" FROM {names} WHERE change_{indices[-1]}.found = %s")
            self._changes.append(_Change(words, [*values, found], instance=instance))
        else:
            self._changes.append(_Change(*insertion(instance), instance=instance, after=(indices, found)))

    def change(self, statement: Statement, *values: object, only_if: Condition | None = None) -> None:
        """Add a statement that returns one value of the row that it changes."""
        more = [] if only_if is None else only_if.values
        self._changes.append(_Change(statement.words(only_if), [*values, *more], statement))

    def make(self) -> None:
        """Make them.

        Raises:
            django.db.IntegrityError: a constraint does not hold.
        """
        if not self._changes:
            return
        self._found = self._at_once() if _is_postgresql() else self._one_by_one()
        for change, found in zip(self._changes, self._found, strict=True):
            if change.instance is not None and found is not None:
                note_stored(change.instance, found)

    def found(self, statement: Statement) -> Any:
        """Return what a statement has returned of its row, None if it has changed none."""
        return self._found[self._index(statement)]

    def _index(self, statement: Statement) -> int:
        return next(index for index, change in enumerate(self._changes) if change.statement is statement)

    def _at_once(self) -> list[Any]:
        words = _as_one(tuple(change.words for change in self._changes))
        [found] = executed(words, [value for change in self._changes for value in change.values]).fetchall()
        return list(found)

    def _one_by_one(self) -> list[Any]:
        found: list[Any] = []
        for change in self._changes:
            rows = executed(change.words, change.values).fetchall() if _is_due(change, found) else []
            found.append(rows[0][0] if rows else None)
        return found


def _is_due(change: _Change, found: list[Any]) -> bool:
    if change.after is None:
        return True
    indices, wanted = change.after
    return all(found[index] is not None for index in indices) and found[indices[-1]] == wanted


@lru_cache(maxsize=64)
def _as_one(statements: tuple[str, ...]) -> str:
    parts = ", ".join(f"change_{index} (found) AS ({words})" for index, words in enumerate(statements))
    found = ", ".join(f"(SELECT found FROM change_{index})" for index in range(len(statements)))
    return f"WITH {parts} SELECT {found}"
