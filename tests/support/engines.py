"""Servers of a test's own, PostgreSQL and Redis, which it may kill: nobody else's is touched."""

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import psycopg
import redis

from tests.support import needs
from tests.support.ports import port_from

_DEBIAN = Path("/usr/lib/postgresql")
# A killed process leaves what it wrote to the system; only a power cut would need the disk's promise.
WITHOUT_FSYNC = ("fsync=off",)
DURABLE = ("fsync=on", "synchronous_commit=on")
HOW = "needs PostgreSQL's and Redis's programs (Debian: apt-get install postgresql redis-server)"


def demand() -> None:
    """Skip the calling test, with the reason, where a server's program is missing; under CI, fail."""
    needs.demand(path_of("initdb") and path_of("redis-server"), HOW)


class Postgres:
    """A PostgreSQL cluster in a folder and on a port of its own.

    Args:
        durability: the settings that say what a commit waits for.
    """

    def __init__(self, durability: tuple[str, ...] = WITHOUT_FSYNC) -> None:
        self._durability = durability
        self.port = port_from(25_000)
        # Not below pytest's folder, which only its owner may enter: PostgreSQL refuses to run as root.
        self._folder = Path(tempfile.mkdtemp(prefix="prefmh-postgres-"))
        user = "postgres" if os.getuid() == 0 else None
        if user:
            shutil.chown(self._folder, user)
        quiet = subprocess.DEVNULL
        self._options = {"user": user, "cwd": self._folder, "stdout": quiet, "stderr": quiet}
        options = ("--username=postgres", "--auth=trust", "--no-sync", "--encoding=UTF8", "--locale=C")
        subprocess.run(self._command("initdb", *options), **self._options, check=True)
        self._process: subprocess.Popen | None = None

    def start(self) -> None:
        """Start and wait until it answers."""
        options = ["listen_addresses=127.0.0.1", f"unix_socket_directories={self._folder}", *self._durability]
        # Whole statements, so that a test can tell who waits for what.
        options.append("track_activity_query_size=16384")
        settings = [part for option in options for part in ("-c", option)]
        # A child of ours, so that a killed one is gone: PostgreSQL starts only once its predecessor's number is free.
        self._process = subprocess.Popen([*self._command("postgres", "-p", str(self.port)), *settings], **self._options)
        while not self._answers():
            assert self._process.poll() is None, "PostgreSQL did not start"
            time.sleep(0.05)

    def kill(self) -> None:
        """Kill it and all its sessions without a warning; nothing when it does not run."""
        if self._process is None or self._process.poll() is not None:
            return
        pid = self._process.pid
        sessions = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        self._process.kill()
        self._process.wait()
        for session in sessions:
            # Most end by themselves once the first process is gone.
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(session), signal.SIGKILL)
        while any(_runs(session) for session in sessions):
            time.sleep(0.02)

    def remove(self) -> None:
        self.kill()
        shutil.rmtree(self._folder)

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}"

    def create(self, database: str) -> str:
        """Make an empty database and return its address."""
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(f'CREATE DATABASE "{database}"')
        return self.url(database)

    def _command(self, program: str, *arguments: str) -> list[str]:
        return [path_of(program), "-D", str(self._folder / "data"), *arguments]

    def _answers(self) -> bool:
        try:
            with psycopg.connect(self.url()) as connection:
                [folder] = connection.execute("SHOW data_directory").fetchone()
        except psycopg.OperationalError:
            return False
        # Another run may have taken the port since it was chosen.
        return folder == str(self._folder / "data")


class Redis:
    """A Redis server on a port of its own, which keeps nothing on disk."""

    def __init__(self) -> None:
        self.port = port_from(27_000)
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self.client = redis.Redis.from_url(self.url)
        self._process: subprocess.Popen | None = None

    def start(self) -> None:
        """Start, empty, and wait until it answers."""
        command = [path_of("redis-server"), "--port", str(self.port), "--bind", "127.0.0.1"]
        self._process = subprocess.Popen(
            [*command, "--save", "", "--appendonly", "no"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        while not self._answers():
            assert self._process.poll() is None, "Redis did not start"
            time.sleep(0.02)

    def freeze(self) -> None:
        """Stop it where it stands: it refuses nothing and answers nothing."""
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """Kill it without a warning; nothing when it does not run."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def remove(self) -> None:
        self.kill()
        self.client.close()

    def _answers(self) -> bool:
        try:
            return self.client.ping()
        except redis.ConnectionError:
            return False


def _runs(process: str) -> bool:
    """True unless the process has ended; one that nobody has asked for its status yet has no command line."""
    try:
        return bool(Path(f"/proc/{process}/cmdline").read_text())
    except OSError:
        return False


def path_of(name: str) -> str | None:
    """Return the path of a server's program; Debian keeps PostgreSQL's out of the way, one folder a version."""
    if found := shutil.which(name):
        return found
    candidates = sorted(_DEBIAN.glob(f"*/bin/{name}"))
    return str(candidates[-1]) if candidates else None
