"""Cells that the database writes, so that a million rows pass through as they come."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Case, F, Func, Q, TextField, Value, When
from django.db.models.functions import Cast
from django.db.models.sql.compiler import SQLCompiler


class Moment(Func):
    """What `sampler.moment` writes of a column of moments: in UTC, milliseconds cut off; null without one."""

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


class Key(Func):
    """A key in its form with hyphens, as PostgreSQL has it; SQLite stores 32 digits. Null without one."""

    arity = 1
    output_field = TextField()

    def as_sqlite(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **context: Any) -> Any:
        """Cut the digits as RFC 9562 does: 8, 4, 4, 4 and 12."""
        cuts = ((1, 8), (9, 4), (13, 4), (17, 4), (21, 12))
        template = " || '-' || ".join(f"substr(%(expressions)s, {start}, {length})" for start, length in cuts)
        return self.as_sql(compiler, connection, template=template, **context)

    def as_postgresql(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **context: Any) -> Any:
        """PostgreSQL has a type for it."""
        return self.as_sql(compiler, connection, template="(%(expressions)s)::text", **context)


def by_key(name: str, texts: Mapping[int, str]) -> Case:
    """Return the expression for a text by what a row refers to, which is known by its primary key."""
    cases = (When(**{name: pk}, then=Value(text)) for pk, text in texts.items())
    return Case(*cases, default=Value(""), output_field=TextField())


FOR_PROPOSAL = Case(When(chosen_side=F("proposal_side"), then=Value("1")), default=Value("0"), output_field=TextField())
"""Of a vote. As text: whole numbers would be looked at one by one on their way."""
TRANSLATED = Case(
    When(is_translated=True, then=Value("1")),
    When(is_translated=False, then=Value("0")),
    default=Value(""),
    output_field=TextField(),
)
"""Of a vote: whether the browser had translated the words around its pair; empty where that is not known."""
LEASE = Case(When(annotator__isnull=False, then=Key("key")), default=None, output_field=TextField())
"""Of a vote: a person's has the key of its lease; a model has none."""


def _object_if(is_proposal: Q) -> Case:
    """Return the expression for the number of a vote's proposal where this holds, else of the current object."""
    proposal = Cast("comparison__proposal__place", TextField())
    return Case(
        When(is_proposal, then=proposal),
        default=Cast("comparison__current__place", TextField()),
        output_field=TextField(),
    )


FIRST_STATE = _object_if(Q(proposal_side="first"))
SECOND_STATE = _object_if(Q(proposal_side="second"))
CHOSEN_STATE = _object_if(Q(chosen_side=F("proposal_side")))
"""Of a vote: which object stood where, and which one was chosen."""
