"""Cells that the database writes, so that a million rows pass through as they come."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Case, F, Func, TextField, Value, When
from django.db.models.sql.compiler import SQLCompiler


class Moment(Func):
    """What `sampler.schema.moment` writes of a column of moments: in UTC, milliseconds cut off; null without one."""

    arity = 1
    output_field = TextField()

    def as_sqlite(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **context: Any) -> Any:
        """Django stores “2026-01-02 03:04:05.678912”, in UTC, and leaves a fraction of zero out."""
        template = "replace(substr(%(expressions)s || '.000', 1, 23), ' ', 'T') || '+00:00'"
        return self.as_sql(compiler, connection, template=template, **context)

    def as_postgresql(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **context: Any) -> Any:
        """PostgreSQL cuts milliseconds off as well."""
        template = """to_char(%(expressions)s AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"+00:00"')"""
        return self.as_sql(compiler, connection, template=template, **context)


def of_judge(texts: Mapping[int, str]) -> Case:
    """Return the expression for a text by the row's judge, which is known by its primary key."""
    cases = (When(judge=pk, then=Value(text)) for pk, text in texts.items())
    return Case(*cases, default=Value(""), output_field=TextField())


FOR_PROPOSAL = Case(When(chosen_side=F("proposal_side"), then=Value("1")), default=Value("0"), output_field=TextField())
"""Of a vote. As text: whole numbers would be looked at one by one on their way."""
