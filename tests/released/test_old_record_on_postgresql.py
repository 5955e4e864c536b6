"""The same record on PostgreSQL, whose migrations run other statements than SQLite's."""

import gzip
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.released.site import unpack
from tests.support import engines

ROOT = Path(__file__).resolve().parents[2]
KEPT = Path(__file__).with_name("0.1.0")


@pytest.fixture
def database() -> Iterator[str]:
    engines.demand()
    postgres = engines.Postgres()
    postgres.start()
    try:
        url = postgres.create("old")
        with psycopg.connect(url) as connection:
            connection.execute(gzip.decompress((KEPT / "postgresql.sql.gz").read_bytes()))
        yield url
    finally:
        postgres.remove()


def test_it_migrates_is_read_and_goes_on(database, tmp_path):
    server = {"DATABASE_URL": database, "REDIS_URL": "redis://127.0.0.1:1/0", "SITE_URL": "http://old.example"}
    own = {"PREFMH_DATA": str(unpack(KEPT / "record.tar.gz", tmp_path)), "SECRET_KEY": "x" * 60, "LOG_LEVEL": "ERROR"}
    command = [sys.executable, "-m", "tests.released.on_postgresql"]
    environment = {**os.environ, **server, **own, "DJANGO_SETTINGS_MODULE": "prefmh_web.settings"}
    ended = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr[-3000:]
    assert "19 campaigns read, 3 voted to their end" in ended.stdout
