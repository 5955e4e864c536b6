"""Rows of several keys, by one statement however many they are.

`IN` with its values is another statement for each number of them, and for each mixture of their sizes. What asks so all
the time fills what a connection keeps prepared, and the memory of PostgreSQL's process, with statements that hardly
ever come again. Here all values are one parameter.
"""

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
    """`in`, with one parameter."""

    lookup_name = "among"
    prepare_rhs = False

    def as_postgresql(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper) -> tuple[str, list[Any]]:
        return self._with(compiler, connection, "= ANY(%s)", self.rhs)

    def as_sqlite(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper) -> tuple[str, list[Any]]:
        return self._with(compiler, connection, "IN (SELECT value FROM json_each(%s))", json.dumps(self.rhs))

    def _with(
        self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, condition: str, parameter: object
    ) -> tuple[str, list[Any]]:
        sql, parameters = self.process_lhs(compiler, connection)
        return f"{sql} {condition}", [*parameters, parameter]
