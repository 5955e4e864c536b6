"""PostgreSQL, Redis, RabbitMQ and nginx for the tests: each started by them on a free port."""

import asyncio
import contextlib
import itertools
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import IO

import psycopg
import pytest
import redis
from kombu import Connection
from kombu.exceptions import OperationalError

from tests.support.models import port_from

# What a machine may lack: tests that need it are skipped, with the reason; in CI, which installs it, they fail.


def demand(found: object, reason: str) -> None:
    """Skip the calling test when `found` is false; under CI, fail."""
    if not found:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(reason)


# Servers of a test's own, PostgreSQL and Redis, which it may kill: nobody else's is touched.


_DEBIAN = Path("/usr/lib/postgresql")
# A killed process leaves what it wrote to the system; only a power cut would need the disk's promise.
WITHOUT_FSYNC = ("fsync=off",)
DURABLE = ("fsync=on", "synchronous_commit=on")
HOW = "needs PostgreSQL's and Redis's programs (Debian: apt-get install postgresql redis-server)"


def require_engines() -> None:
    """Skip the calling test, with the reason, where a server's program is missing; under CI, fail."""
    demand(path_of("initdb") and path_of("redis-server"), HOW)


class Server:
    """A server as a process on a port of its own, which a test may freeze and kill."""

    def __init__(self, name: str, first_port: int) -> None:
        self.name, self.port = name, port_from(first_port)
        self._process: subprocess.Popen | None = None

    @property
    def pid(self) -> int:
        return self._process.pid

    def _launch(self, command: list[str], said: int | IO = subprocess.DEVNULL, **options) -> None:
        """Start a command, in a process group of its own, and wait until it answers."""
        self._process = subprocess.Popen(command, stdout=said, stderr=said, process_group=0, **options)
        while not self._answers():
            assert self._process.poll() is None, f"{self.name} did not start"
            time.sleep(0.05)

    def _answers(self) -> bool:
        raise NotImplementedError

    def freeze(self) -> None:
        """Stop it where it stands: it refuses nothing and answers nothing."""
        os.killpg(self.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        os.killpg(self.pid, signal.SIGCONT)

    def kill(self) -> None:
        """Kill it with its children, without a warning; nothing when it does not run."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
            self._process.wait()


class Postgres(Server):
    """A PostgreSQL cluster in a folder and on a port of its own.

    Args:
        durability: the settings that say what a commit waits for.
    """

    def __init__(self, durability: tuple[str, ...] = WITHOUT_FSYNC) -> None:
        super().__init__("PostgreSQL", 25_000)
        self._durability = durability
        # Not below pytest's folder, which only its owner may enter: PostgreSQL refuses to run as root.
        self._folder = Path(tempfile.mkdtemp(prefix="prefmh-postgres-"))
        user = "postgres" if os.getuid() == 0 else None
        if user:
            shutil.chown(self._folder, user)
        self._options = {"user": user, "cwd": self._folder}
        options = ("--username=postgres", "--auth=trust", "--no-sync", "--encoding=UTF8", "--locale=C")
        subprocess.run(self._command("initdb", *options), **self._options, capture_output=True, check=True)

    def start(self) -> None:
        """Start and wait until it answers."""
        options = ["listen_addresses=127.0.0.1", f"unix_socket_directories={self._folder}", *self._durability]
        # Whole statements, so that a test can tell who waits for what.
        options.append("track_activity_query_size=16384")
        settings = [part for option in options for part in ("-c", option)]
        # A child of ours, so that a killed one is gone: PostgreSQL starts only once its predecessor's number is free.
        self._launch([*self._command("postgres", "-p", str(self.port)), *settings], **self._options)

    def kill(self) -> None:
        """Kill it and all its sessions without a warning; nothing when it does not run."""
        if self._process is None or self._process.poll() is not None:
            return
        sessions = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()
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


class Redis(Server):
    """A Redis server on a port of its own, which keeps nothing on disk."""

    def __init__(self) -> None:
        super().__init__("Redis", 27_000)
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self.client = redis.Redis.from_url(self.url)

    def start(self) -> None:
        """Start, empty, and wait until it answers."""
        command = [path_of("redis-server"), "--port", str(self.port), "--bind", "127.0.0.1"]
        self._launch([*command, "--save", "", "--appendonly", "no"])

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


# A RabbitMQ node of a test's own, which it may freeze: nobody else's is touched.


# The one in the usual place changes to a user of its own, who may not write to our folder.
_PROGRAM = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
HOW_RABBITMQ = "needs RabbitMQ's program (Debian: apt-get install rabbitmq-server)"


def require_rabbitmq() -> None:
    """Skip the calling test, with the reason, where the program is missing; under CI, fail."""
    demand(_PROGRAM.exists(), HOW_RABBITMQ)


class RabbitMQ(Server):
    """A broker on a port and in a folder of its own."""

    def __init__(self) -> None:
        super().__init__("RabbitMQ", 35_000)
        self._between_nodes = port_from(37_000)
        self.url = f"amqp://guest:guest@127.0.0.1:{self.port}//"
        self._folder = Path(tempfile.mkdtemp(prefix="prefmh-rabbitmq-"))
        self._environment = {
            **os.environ,
            "HOME": str(self._folder),
            "RABBITMQ_NODENAME": f"prefmh{self.port}@localhost",
            "RABBITMQ_CONF_ENV_FILE": "/dev/null",
            # Erlang would leave its crash dump in the folder that a command is run from.
            "ERL_CRASH_DUMP_SECONDS": "0",
        }

    def start(self) -> None:
        """Start and wait until it takes connections."""
        (self._folder / "own.conf").write_text(f"listeners.tcp.1 = 127.0.0.1:{self.port}\n")
        (self._folder / "plugins").write_text("[].\n")
        environment = {
            **self._environment,
            "RABBITMQ_DIST_PORT": str(self._between_nodes),
            "RABBITMQ_MNESIA_BASE": str(self._folder),
            "RABBITMQ_LOG_BASE": str(self._folder),
            "RABBITMQ_CONFIG_FILE": str(self._folder / "own.conf"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(self._folder / "plugins"),
            "ERL_FLAGS": "-kernel inet_dist_use_interface {127,0,0,1}",
        }
        with (self._folder / "out.log").open("w") as log:
            self._launch([str(_PROGRAM)], log, env=environment, cwd=self._folder)

    def require_free_disk(self, size: str) -> None:
        """Let it take no message while less is free."""
        self._control("set_disk_free_limit", size)

    def wait_for_acknowledgements(self, seconds: int) -> None:
        """Let it close new channels whose worker keeps it waiting for longer."""
        names = "[consumer_timeout, channel_tick_interval]"
        self._control("eval", f"[application:set_env(rabbit, Name, {1000 * seconds}) || Name <- {names}].")

    def _control(self, *command: str) -> None:
        program = str(_PROGRAM.with_name("rabbitmqctl"))
        subprocess.run([program, *command], env=self._environment, capture_output=True, check=True)

    def remove(self) -> None:
        self.kill()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _answers(self) -> bool:
        try:
            with Connection(self.url, connect_timeout=2) as connection:
                connection.ensure_connection(max_retries=1, interval_start=0.1)
        except (OperationalError, OSError):
            return False
        return True


# Run tests on PostgreSQL, Redis and a Celery worker instead of the embedded engines:
#
#     python -m tests.support.servers tests/voting tests/campaigns tests/console tests/flows
#     python -m tests.support.servers --processes -n 0 tests/flows/test_browser.py
#     python -m tests.support.servers --rabbitmq -n 0 tests/campaigns/engine
#
# starts a PostgreSQL and a Redis of this run's own, names them in the environment, and calls pytest with the rest of
# the line. Server and worker are threads of the tests, whose settings and stand-ins hold for them; with `--processes`
# they are two web processes, a worker and beat, which know no more than their environment and the record. With
# `--rabbitmq`, a RabbitMQ of this run's own is the broker; it has one queue for all, so tests cannot run side by
# side.
#
# With `DATABASE_URL`, `DATABASE_POOL_SIZE=20`, `REDIS_URL`, `SITE_URL` and `SECRET_KEY` set by hand, `pytest -n 0`
# does the same on those servers: in a new database there, and in the Redis database named, which is flushed.


_RABBITMQ = "--rabbitmq"


def environment(database_url: str, redis_url: str, site_url: str = "http://localhost") -> dict[str, str]:
    """Return what a process in server mode needs to know."""
    return {
        "DATABASE_URL": database_url,
        "REDIS_URL": redis_url,
        "SITE_URL": site_url,
        "SECRET_KEY": secrets.token_urlsafe(50),
        "LOG_LEVEL": "WARNING",
    }


def without_ours(environ: Mapping[str, str]) -> dict[str, str]:
    """Return an environment in which nothing speaks of an installation yet."""
    names = [
        "DATABASE_URL",
        "DATABASE_POOL_SIZE",
        "REDIS_URL",
        "CELERY_BROKER_URL",
        "REDIS_TIMEOUT_SECONDS",
        "BROKER_TIMEOUT_SECONDS",
        "SITE_URL",
        "SECRET_KEY",
        "STATIC_ROOT",
    ]
    # Five processes that each compile every library anew take half a minute to start; and what lets Playwright's
    # tests ask the database is no part of a deployment.
    names += ["PYTHONDONTWRITEBYTECODE", "DJANGO_ALLOW_ASYNC_UNSAFE"]
    return {name: value for name, value in environ.items() if name not in names}


def main(arguments: list[str]) -> int:
    with contextlib.ExitStack() as ends:
        postgres, redis = Postgres(), Redis()
        ends.callback(postgres.remove)
        ends.callback(redis.remove)
        postgres.start()
        redis.start()
        servers = environment(postgres.create("prefmh"), redis.url)
        # As web processes have it: the server on a thread has others for its requests, and they keep no connection.
        servers |= {"DATABASE_POOL_SIZE": "20"}
        # Server, worker and tests share one interpreter and a busy machine: whatever is alive may be slow to answer.
        servers |= {"REDIS_TIMEOUT_SECONDS": "10", "BROKER_TIMEOUT_SECONDS": "10"}
        if _RABBITMQ in arguments:
            broker = RabbitMQ()
            ends.callback(broker.remove)
            broker.start()
            servers |= {"CELERY_BROKER_URL": broker.url}
        rest = [argument for argument in arguments if argument != _RABBITMQ]
        command = [sys.executable, "-m", "pytest", "-p", "tests.support.own_redis", *rest]
        return subprocess.call(command, env={**os.environ, **servers})


# One address in front of several servers: each connection goes to the next of them.
#
# All can be cut at once, or frozen: then bytes are taken and none handed on, as where a network drops them.


class Relay:
    """Hands bytes on, on a thread of its own.

    Args:
        ports: those of the servers, on this computer.
    """

    def __init__(self, ports: list[int]) -> None:
        self.port = port_from(18_500)
        self.url = f"http://127.0.0.1:{self.port}"
        self._next_port = itertools.cycle(ports)
        self._ends: set[asyncio.StreamWriter] = set()
        self._loop = asyncio.new_event_loop()
        self._flows = _open_gate()
        self._lost: list[asyncio.Event] = []
        self._thread = threading.Thread(target=self._loop.run_forever, name="relay")

    def start(self) -> None:
        self._thread.start()
        self._server = self._in_loop(asyncio.start_server(self._relay, "127.0.0.1", self.port))

    def drop_connections(self) -> None:
        """Cut every open connection, sockets included, as a bad network does."""
        self._in_loop(self._drop())

    def freeze(self) -> None:
        """Hand nothing on any more, and tell nobody."""
        self._loop.call_soon_threadsafe(self._flows.clear)

    def thaw(self) -> None:
        """Hand on what has come meanwhile, and all that follows."""
        self._loop.call_soon_threadsafe(self._flows.set)

    def lose_connections(self) -> None:
        """Freeze the open connections for good, while new ones are served, as when one of several servers vanishes."""
        self._loop.call_soon_threadsafe(self._lose)

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._thaw_all)
        self._in_loop(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _in_loop(self, work):
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(10)

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server_reader, server_writer = await asyncio.open_connection("127.0.0.1", next(self._next_port))
        ends = {writer, server_writer}
        self._ends |= ends
        gate = self._flows
        await asyncio.gather(_hand_on(reader, server_writer, gate), _hand_on(server_reader, writer, gate))
        self._ends -= ends

    async def _drop(self) -> None:
        for end in self._ends:
            end.transport.abort()

    async def _end(self) -> None:
        self._server.close()
        await self._drop()
        while self._ends:
            await asyncio.sleep(0.01)

    def _lose(self) -> None:
        self._flows.clear()
        self._lost.append(self._flows)
        self._flows = _open_gate()

    def _thaw_all(self) -> None:
        for gate in (self._flows, *self._lost):
            gate.set()


def _open_gate() -> asyncio.Event:
    gate = asyncio.Event()
    gate.set()
    return gate


async def _hand_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, gate: asyncio.Event) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(2**16):
            await gate.wait()
            writer.write(data)
            await writer.drain()
    # Whoever has nothing more to say has gone: pages and servers close both directions.
    await gate.wait()
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
