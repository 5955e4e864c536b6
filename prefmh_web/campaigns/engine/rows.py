"""Rows as model instances and back, for SQL of our own.

Django puts a queryset into words each time it is used, and that takes several times as long as the database's answer.
On the path of a vote the words are fixed (`statements.py`); values still pass through Django's own converters, so that
both databases give and take the same.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from functools import cached_property, lru_cache
from typing import Any, Generic, TypeVar

from django.db import DEFAULT_DB_ALIAS, connections, models
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.utils import CursorWrapper
from django.db.models.base import ModelState

M = TypeVar("M", bound=models.Model)
_NONE = type(None)
# Of these fields, what has such a type is stored as it is by both databases.
_STORED_AS_IT_IS: dict[type[models.Field[Any, Any]], set[type]] = {
    models.BooleanField: {bool},
    models.CharField: {str, _NONE},
    models.FloatField: {float, _NONE},
    models.ForeignKey: {int, _NONE},
    models.PositiveIntegerField: {int, _NONE},
    models.PositiveSmallIntegerField: {int, _NONE},
}


def current() -> BaseDatabaseWrapper:
    """Return the connection of this thread, which `django.db.connection` looks up anew for each of its attributes."""
    return connections[DEFAULT_DB_ALIAS]


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
        self.sql = ", ".join(f'{alias}."{field.column}"' for field in self._fields)

    def __len__(self) -> int:
        return len(self._fields)

    def read(self, values: Sequence[Any]) -> M:
        """Return the instance that these columns hold."""
        read = list(values)
        for place, convert in self._converters:
            read[place] = convert(read[place])
        # What `from_db` does, without a call for each column and without signals.
        instance = self._model.__new__(self._model)
        instance._state = ModelState()
        instance._state.adding, instance._state.db = False, DEFAULT_DB_ALIAS
        vars(instance).update(zip(self._names, read, strict=True))
        return instance

    @cached_property
    def _converters(self) -> list[tuple[int, Callable[[Any], Any]]]:
        # Asked for once a connection is there: what they are depends on the database.
        connection = current()
        found: list[tuple[int, Callable[[Any], Any]]] = []
        for place, field in enumerate(self._fields):
            column = field.cached_col
            steps = (*connection.ops.get_db_converters(column), *field.get_db_converters(connection))
            found.extend((place, _bound(step, column)) for step in steps)
        return found


def read_all(columns: Sequence[Columns[Any]], row: Sequence[Any]) -> list[Any]:
    """Return the instances that stand side by side in a row, and behind them whatever else is in it."""
    found, at = [], 0
    for each in columns:
        found.append(each.read(row[at : at + len(each)]))
        at += len(each)
    return [*found, *row[at:]]


def insert(instance: models.Model) -> None:
    """Store a new instance, as `save(force_insert=True)` does. Nobody listens to signals of what is stored so.

    Raises:
        django.db.IntegrityError: a constraint of the table does not hold.
    """
    [[key]] = executed(*insertion(instance)).fetchall()
    note_stored(instance, key)


def insertion(instance: models.Model, source: str = "") -> tuple[str, list[Any]]:
    """Return the statement that stores a new instance and returns its key, and the values in it.

    Args:
        source: what follows the values, as in a SELECT: from what rows, or under which condition, it is stored. Values
            of its own come last.
    """
    model, connection = type(instance), current()
    values = [_prepared(field, instance, connection) for field in _stored_fields(model)]
    return _insertion(model, source, connection.vendor), values


def _prepared(field: Any, instance: models.Model, connection: BaseDatabaseWrapper) -> Any:
    taken = _STORED_AS_IT_IS.get(type(field))
    if taken is not None and type(value := getattr(instance, field.attname)) in taken:
        return value
    return field.get_db_prep_save(field.pre_save(instance, True), connection)


def note_stored(instance: models.Model, key: Any) -> None:
    """Let a new instance know that it is stored, under this key."""
    if instance._meta.auto_field is not None:
        instance.pk = key
    instance._state.adding, instance._state.db = False, DEFAULT_DB_ALIAS


def adapted(value: Any, connection: BaseDatabaseWrapper) -> Any:
    """Return a value as this database takes it."""
    if isinstance(value, datetime):
        return connection.ops.adapt_datetimefield_value(value)
    if isinstance(value, uuid.UUID) and not connection.features.has_native_uuid_field:
        return value.hex
    return value


def _bound(step: Callable[[Any, Any, Any], Any], column: object) -> Callable[[Any], Any]:
    return lambda value: step(value, column, current())


def _stored_fields(model: type[models.Model]) -> tuple[Any, ...]:
    # An automatic key is the database's to give.
    return tuple(field for field in model._meta.concrete_fields if field is not model._meta.auto_field)


@lru_cache(maxsize=64)
def _insertion(model: type[models.Model], source: str, vendor: str) -> str:
    fields, connection = _stored_fields(model), current()
    columns, places = ", ".join(f'"{field.column}"' for field in fields), ", ".join(["%s"] * len(fields))
    if source and vendor == "postgresql":
        # In a SELECT, PostgreSQL takes a value whose type it is not told for a text.
        places = ", ".join(f"%s::{field.db_type(connection)}" for field in fields)
    values = f"SELECT {places}{source}" if source else f"VALUES ({places})"
    table, key = model._meta.db_table, model._meta.pk.column
    return f'INSERT INTO "{table}" ({columns}) {values} RETURNING "{key}"'
