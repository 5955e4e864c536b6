"""A condition of queries that are made all the time: that a field has one of some values."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import F, Lookup
from django.db.models.sql.compiler import SQLCompiler


def among(field: str, values: Collection[int] | Collection[str]) -> Among:
    """Return the condition that a field of the model has one of these values."""
    return Among(F(field), list(values))


class Among(Lookup):
    """`in`, with all values as one parameter.

    `IN` with its values is another statement for each number of them, and for each mixture of their sizes. What asks so
    all the time fills what a connection keeps prepared, and the memory of PostgreSQL's process, with statements that
    hardly ever come again.
    """

    lookup_name = "among"
    prepare_rhs = False

    def as_sql(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper) -> tuple[str, tuple[Any, ...]]:
        """Return the condition as PostgreSQL or SQLite has it, with its parameters."""
        sql, parameters = self.process_lhs(compiler, connection)
        if connection.vendor == "postgresql":
            return f"{sql} = ANY(%s)", (*parameters, self.rhs)
        return f"{sql} IN (SELECT value FROM json_each(%s))", (*parameters, json.dumps(self.rhs))  # noqa: S608 - its column
