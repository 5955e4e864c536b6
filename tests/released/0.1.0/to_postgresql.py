"""Put the record of version 0.1.0 on PostgreSQL, with the same code (see `make.py`), and dumped it as SQL:

PYTHONPATH=. python .../0.1.0/to_postgresql.py .../0.1.0/record.tar.gz .../0.1.0/postgresql.sql.gz
"""

import gzip
import os
import re
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from tests.support.engines import Postgres, path_of

# Not all versions of PostgreSQL know these, and whoever reads the dump without psql knows none of its commands.
NOT_FOR_ALL = re.compile(r"^(SET transaction_timeout|SELECT pg_catalog\.set_config|\\(un)?restrict).*\n", re.MULTILINE)


def main(record: Path, target: Path) -> None:
    """Load the rows of the SQLite database into an empty one, and dump that."""
    postgres = Postgres()
    postgres.start()
    try:
        url = postgres.create("old")
        with tempfile.TemporaryDirectory() as folder:
            with tarfile.open(record) as packed:
                packed.extractall(folder, filter="data")
            load(url, folder)
        options = ["--inserts", "--rows-per-insert=100", "--no-owner", "--no-privileges"]
        dump = subprocess.run([path_of("pg_dump"), *options, url], check=True, capture_output=True, text=True).stdout
        target.write_bytes(gzip.compress(NOT_FOR_ALL.sub("", dump).encode(), mtime=0))
    finally:
        postgres.remove()


def load(url: str, folder: str) -> None:
    """Take the rows out of the one database and into the other."""
    rows, embedded = f"{folder}/rows.json", {"PREFMH_DATA": folder}
    server = {"DATABASE_URL": url, "REDIS_URL": "redis://127.0.0.1:1/0", "SITE_URL": "http://old.example"}
    server |= {"SECRET_KEY": "x" * 60, "LOG_LEVEL": "ERROR", **embedded}
    # Migrating makes these rows, each time with other numbers.
    made = ("--exclude=contenttypes", "--exclude=auth.permission")
    manage(embedded, "dumpdata", "--natural-foreign", *made, f"--output={rows}", "--verbosity=0")
    manage(server, "migrate", "--verbosity=0")
    manage(server, "loaddata", rows, "--verbosity=0")


def manage(environment: dict[str, str], *command: str) -> None:
    subprocess.run([sys.executable, "manage.py", *command], check=True, env={**os.environ, **environment})


if __name__ == "__main__":
    main(*(Path(path).resolve() for path in sys.argv[1:]))
