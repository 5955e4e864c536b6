"""Connections from the pool: one that the server has ended is never handed out, and none is asked for each vote."""

from datetime import timedelta

import psycopg
import pytest
from django.db.utils import ConnectionHandler, OperationalError, ProgrammingError

from prefmh_web.settings import environment
from prefmh_web.transport.postgresql import base
from tests.support import servers


@pytest.fixture(scope="module")
def postgres():
    servers.require_engines()
    postgres = servers.Postgres()
    postgres.start()
    yield postgres
    postgres.remove()


@pytest.fixture
def pooled(postgres, monkeypatch, django_db_blocker):
    """A connection of Django's, from a pool of one: with several, another one may be handed out."""
    monkeypatch.setenv("DATABASE_URL", postgres.url())
    monkeypatch.setenv("DATABASE_POOL_SIZE", "1")
    monkeypatch.setenv("REDIS_URL", "redis://127.0.0.1:1/0")
    monkeypatch.setenv("SITE_URL", "http://127.0.0.1")
    monkeypatch.setenv("SECRET_KEY", "of this test " * 5)
    database = environment.read().database
    connection = ConnectionHandler({"default": {}, "pooled": database})["pooled"]
    with django_db_blocker.unblock():
        yield connection
    connection.close()
    connection.close_pool()


def told(connection, sql: str) -> object:
    """Take a connection from the pool, ask one thing, and give it back, as a vote does."""
    with connection.cursor() as cursor:
        cursor.execute(sql)
        [answer] = cursor.fetchone()
    connection.close()
    return answer


def ended_sessions(postgres) -> int:
    with psycopg.connect(postgres.url(), autocommit=True) as admin:
        others = "FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
        return len(admin.execute(f"SELECT pg_terminate_backend(pid, 5000) {others}").fetchall())


def test_a_session_that_the_server_has_ended_is_replaced_and_nobody_notices(postgres, pooled):
    first = told(pooled, "SELECT pg_backend_pid()")
    assert told(pooled, "SELECT pg_backend_pid()") == first
    assert ended_sessions(postgres) >= 1
    second = told(pooled, "SELECT pg_backend_pid()")
    assert second != first
    assert told(pooled, "SELECT pg_backend_pid()") == second


def test_without_the_look_the_ended_session_would_be_handed_out(postgres, pooled, monkeypatch):
    told(pooled, "SELECT 1")
    monkeypatch.setattr(base, "_lives", lambda _connection: True)
    ended_sessions(postgres)
    with pytest.raises(OperationalError):
        told(pooled, "SELECT 1")


def test_a_connection_in_use_is_not_asked_whether_it_lives_and_an_idle_one_is(postgres, pooled, monkeypatch):
    pid = told(pooled, "SELECT pg_backend_pid()")
    pooled.ensure_connection()
    assert last_statement(postgres, pid) == "SELECT pg_backend_pid()"
    pooled.close()
    monkeypatch.setattr(base, "_ASK_EVERY_S", 0.0)
    pooled.ensure_connection()
    assert last_statement(postgres, pid) == ""


def last_statement(postgres, pid: int) -> str:
    with psycopg.connect(postgres.url()) as admin:
        [statement] = admin.execute("SELECT query FROM pg_stat_activity WHERE pid = %s", (pid,)).fetchone()
        return statement


def test_a_connection_keeps_a_bounded_number_of_prepared_statements_and_those_in_use(postgres, pooled):
    with pooled.cursor() as cursor:
        for number in range(100):
            for _ in range(5):
                cursor.execute(f"SELECT {number} + %s", [1])
                cursor.execute("SELECT %s AS in_use", [1])
        cursor.execute("SELECT statement FROM pg_prepared_statements")
        prepared = [statement for (statement,) in cursor.fetchall()]
    assert len(prepared) <= base._MAX_PREPARED + 1
    assert "SELECT $1 AS in_use" in prepared


def test_statements_share_a_cursor_until_the_session_ends_and_read_times_as_others_do(postgres, pooled):
    def now_and_session() -> tuple[object, int]:
        cursor = pooled.kept_cursor()
        cursor.execute("SELECT now(), pg_backend_pid()")
        [found] = cursor.fetchall()
        pooled.close()
        return found

    now, first = now_and_session()
    assert now.utcoffset() == timedelta(0)
    assert now_and_session()[1] == first
    raw = pooled.kept_cursor().cursor
    assert pooled.kept_cursor().cursor is raw
    pooled.close()
    ended_sessions(postgres)
    assert now_and_session()[1] != first
    assert pooled.kept_cursor().cursor is not raw


def test_a_refused_statement_leaves_the_shared_cursor_usable(pooled):
    with pytest.raises(ProgrammingError):
        pooled.kept_cursor().execute("SELECT nothing_of_this_name")
    cursor = pooled.kept_cursor()
    cursor.execute("SELECT %s + 1", [1])
    assert cursor.fetchall() == [(2,)]
