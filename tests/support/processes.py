"""The site as several processes, as `docker/compose.yaml` starts it: on servers of its own, or on those of a run."""

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path

import numpy as np
import psycopg
from websockets.exceptions import InvalidHandshake

from prefmh_web.demo.voters import RECONNECT_S, Voter
from tests.support.engines import WITHOUT_FSYNC, Postgres, Redis
from tests.support.ports import port_from
from tests.support.server_stack import environment, without_ours

ROOT = Path(__file__).resolve().parents[2]
_PATIENCE_S = 60
# Of the log of a process that has ended.
LAST_LINES = 30


@dataclass(frozen=True)
class Checkout:
    """Where the code of an installation lies, and a Python that has what it needs."""

    root: Path
    python: str


HERE = Checkout(ROOT, sys.executable)


def wait_for(condition: Callable[[], object], what: str, seconds: float = _PATIENCE_S) -> object:
    """Return what `condition` returns once that is true.

    Raises:
        AssertionError: it did not become true in time.
    """
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if found := condition():
            return found
        time.sleep(0.05)
    raise AssertionError(f"did not happen within {seconds} s: {what}")


class Process:
    """One process and its children, with what they printed."""

    def __init__(self, name: str, command: list[str], environment: dict[str, str], folder: Path, **options) -> None:
        self.name, self._command, self._environment = name, command, environment
        self._options = {"cwd": ROOT} | options
        self._log = folder / f"{name}.log"
        self._process: subprocess.Popen | None = None
        self._is_to_end = False
        self._exits: list[str] = []

    def start(self) -> None:
        self._note_exit()
        self._is_to_end = False
        with self._log.open("a") as log:
            # A group of its own: a kill takes the pool's children along, as a machine that goes down does. No session
            # of its own: Linux may give each of those an equal share of the processor, and heed no priorities.
            self._process = subprocess.Popen(
                self._command, env=self._environment, stdout=log, stderr=log, process_group=0, **self._options
            )  # fmt: skip

    def send(self, number: int) -> None:
        """Send a signal to it and its children."""
        os.killpg(self._process.pid, number)

    def kill(self) -> None:
        """Kill it without a warning; nothing when it has gone."""
        self._note_exit()
        if self._process.poll() is None:
            self._is_to_end = True
            self.send(signal.SIGKILL)
        self._process.wait()

    def stop(self) -> int:
        """Ask it to end and return its exit status."""
        self._note_exit()
        self._is_to_end = True
        self._process.terminate()
        return self._process.wait(_PATIENCE_S)

    def wait(self) -> int:
        """Return its exit status once it has ended by itself, as it should."""
        self._is_to_end = True
        return self._process.wait(_PATIENCE_S)

    def exits_of_its_own(self) -> list[str]:
        """Return how it has ended since this was last asked, without having been killed or stopped, and what it said
        last. A restart in between hides nothing.
        """
        self._note_exit()
        exits, self._exits = self._exits, []
        return exits

    def _note_exit(self) -> None:
        if self._process is None or self._is_to_end or self._process.poll() is None:
            return
        self._is_to_end = True
        last = "\n".join(self.log().splitlines()[-LAST_LINES:])
        self._exits.append(
            f"{self.name} ended by itself with status {self._process.returncode}; its last words:\n{last}"
        )

    def is_running(self) -> bool:
        return self._process.poll() is None

    def assert_runs(self) -> None:
        assert self.is_running(), self.log()

    def has_loaded(self, library: str) -> bool:
        """True when a shared library of this name is in the memory of the process or of one of its children."""
        return any(library in _maps_of(path, self._process.pid) for path in Path("/proc").glob("[0-9]*"))

    def niceness(self) -> set[int]:
        """Return the niceness of the process and of its children: the higher, the later is their turn."""
        own = [path for path in Path("/proc").glob("[0-9]*") if _is_of(path, self._process.pid)]
        return {os.getpriority(os.PRIO_PROCESS, int(path.name)) for path in own}

    def log(self) -> str:
        return self._log.read_text()


def _maps_of(path: Path, group: int) -> str:
    """Return what a process of a group has in its memory; nothing of one that has gone or is of another group."""
    with contextlib.suppress(OSError):
        return (path / "maps").read_text() if _is_of(path, group) else ""
    return ""


def _is_of(path: Path, group: int) -> bool:
    with contextlib.suppress(ProcessLookupError):
        return os.getpgid(int(path.name)) == group
    return False


class Processes:
    """Two web processes, a worker and beat, on a database and a Redis that are there.

    Args:
        folder: where their files and logs lie.
        variables: what else every process finds in its environment.
        checkout: whose code they run.
    """

    def __init__(self, folder: Path, variables: Mapping[str, str] | None = None, checkout: Checkout = HERE) -> None:
        self.checkout = checkout
        self.folder, self.data, self.variables = folder, folder / "data", dict(variables or {})
        # A process of its own may ask model servers: `judges`.
        self.worker_queues = "default,files,endpoints"
        self.ports = [port_from(first) for first in (29_000, 29_500)]
        self.urls = [f"http://127.0.0.1:{port}" for port in self.ports]
        # What has to end, however far the start got.
        self._ends = contextlib.ExitStack()

    def serve(self, servers: Mapping[str, str]) -> None:
        """Start all processes and wait until both web processes say that they are ready.

        Args:
            servers: the variables that name database and Redis; see `server_stack.environment`.
        """
        self.environment = {
            **without_ours(os.environ),
            **servers,
            "PREFMH_DATA": str(self.data),
            "DJANGO_SETTINGS_MODULE": "prefmh_web.settings",
            **self.variables,
        }
        self.run("manage.py", "migrate", "--verbosity", "0")
        self.webs = [self.web(f"web-{place}", port) for place, port in enumerate(self.ports)]
        self.worker = self.celery("worker", "--queues", self.worker_queues, "--concurrency", "2")
        self.beat = self.celery("beat")
        for process in self.all:
            self.launch(process)
        for url in self.urls:
            wait_for(lambda url=url: is_ready(url), f"{url} ready")

    @property
    def all(self) -> list[Process]:
        return [*self.webs, self.worker, self.beat]

    def look_after(self, *may_end: Process) -> None:
        """Start again those of `may_end` that have ended by themselves, as docker/compose.yaml does.

        Raises:
            AssertionError: another process has ended by itself, whether it runs again or not.
        """
        for process in self.all:
            if exits := process.exits_of_its_own():
                assert process in may_end, "\n\n".join(exits)
                if not process.is_running():
                    process.start()

    def launch(self, process: Process) -> None:
        """Start a process that ends with the others."""
        process.start()
        self._ends.callback(process.kill)

    def stop(self) -> None:
        """End whatever has started."""
        self._ends.close()

    def web(self, name: str, port: int, **options) -> Process:
        command = ["-m", "uvicorn", "prefmh_web.asgi:application", "--port", str(port), "--lifespan", "off"]
        environment = {**self.environment, "DATABASE_POOL_SIZE": "5"}
        return self._process(name, [*command, "--ws-max-size", "65536"], environment, **options)

    def judges(self, calls: int = 64) -> Process:
        """Return a process that asks model servers, not started yet."""
        environment = {**self.environment, "DATABASE_POOL_SIZE": "4"}
        return self._process("judges", ["manage.py", "judges", "--calls", str(calls)], environment)

    def celery(self, kind: str, *options: str, name: str = "") -> Process:
        return self._process(name or kind, ["-m", "celery", "-A", "prefmh_web", kind, *options], self.environment)

    def _process(self, name: str, command: list[str], environment: dict[str, str], **options) -> Process:
        options = {"cwd": self.checkout.root} | options
        return Process(name, [self.checkout.python, *command], environment, self.folder, **options)

    def run(self, *command: str, check: bool = True, script: str | None = None) -> subprocess.CompletedProcess:
        """Run a Python command to its end, as one more process of this installation; it may read a script."""
        done = subprocess.run(
            [self.checkout.python, *command], cwd=self.checkout.root, env=self.environment, input=script,
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert not check or done.returncode == 0, done.stdout + done.stderr
        return done


class Installation(Processes):
    """Such processes with a PostgreSQL and a Redis of their own."""

    def __init__(
        self,
        folder: Path,
        variables: Mapping[str, str] | None = None,
        checkout: Checkout = HERE,
        durability: tuple[str, ...] = WITHOUT_FSYNC,
    ) -> None:
        super().__init__(folder, variables, checkout)
        self.postgres, self.redis = Postgres(durability), Redis()
        self._ends.callback(self.postgres.remove)
        self._ends.callback(self.redis.remove)

    def start(self) -> None:
        """Start everything and wait until both web processes say that they are ready."""
        self.postgres.start()
        self.redis.start()
        self.serve(environment(self.postgres.create("prefmh"), self.redis.url, self.urls[0]))

    def make_campaigns(self, *recipes: dict, start: bool = True) -> list[tuple[int, str]]:
        """Make one campaign of twelve texts for each recipe's changes; return its number and its invitation's path."""
        done = self.run(
            "-m", "tests.support.in_an_installation", "make", json.dumps(recipes), *(["start"] if start else [])
        )
        return [tuple(made) for made in json.loads(done.stdout)]

    def make_study(self, recipe: dict, recruitment: dict) -> tuple[int, str]:
        """Make a campaign of twelve texts that Prolific sends people to, with consent and every stage."""
        arguments = json.dumps([recipe, recruitment])
        return tuple(json.loads(self.run("-m", "tests.support.in_an_installation", "study", arguments).stdout))

    def assert_record_is_whole_and_replays(self, *campaigns: int) -> None:
        """Look at the record, export it and replay the export, all in another process."""
        numbers = [str(campaign) for campaign in campaigns]
        self.run("-m", "tests.support.in_an_installation", "check", str(self.folder), *numbers)

    def start_campaign(self, campaign: int) -> None:
        """Start a draft whose file has been read."""
        self.run("-m", "tests.support.in_an_installation", "start", str(campaign))

    def sign_in_path(self) -> str:
        """Return the path that signs the campaigns' owner in."""
        return self.run("-m", "tests.support.in_an_installation", "sign-in").stdout.strip()

    def query(self, sql: str, *values) -> list[tuple]:
        """Read, or change, the record as another process does."""
        with psycopg.connect(self.postgres.url("prefmh"), autocommit=True) as connection:
            cursor = connection.execute(sql, values)
            return cursor.fetchall() if cursor.description else []

    @contextlib.contextmanager
    def holding(self, table: str, where: str, *values) -> Iterator[None]:
        """Hold the locks of some rows, so that whoever wants to write them has to wait."""
        with psycopg.connect(self.postgres.url("prefmh")) as connection:
            connection.execute(f"SELECT 1 FROM {table} WHERE {where} FOR UPDATE", values)
            yield

    def waiting_for_a_lock(self, like: str) -> int:
        """Return how many sessions wait for a lock with such a statement."""
        waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE %s"
        return self.query(waiting, like)[0][0]


class Crowd:
    """Simulated people who vote all the time, on a thread of their own."""

    def __init__(self, voters: list[Voter]) -> None:
        self._voters = voters
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(self._all(),), name="crowd")

    @property
    def acknowledged(self) -> list[str]:
        """The keys of the votes that the server has answered."""
        return [key for voter in self._voters for key in list(voter.acknowledged)]

    def start(self) -> None:
        self._thread.start()

    def wait(self, seconds: float) -> None:
        """Wait until everybody has seen the campaign finished."""
        self._thread.join(seconds)
        assert not self._thread.is_alive(), "the campaign did not finish"
        self._loop.close()

    def stop(self) -> None:
        for task in self._tasks:
            self._loop.call_soon_threadsafe(task.cancel)
        self._thread.join()
        self._loop.close()

    async def _all(self) -> None:
        self._tasks = [asyncio.create_task(self._one(voter)) for voter in self._voters]
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _one(self, voter: Voter) -> None:
        while True:
            try:
                return await voter.run()
            except (InvalidHandshake, HTTPException):
                # A server killed while it answers; people press reload.
                await asyncio.sleep(RECONNECT_S)


def hurried(rng: np.random.Generator) -> float:
    """Seconds per choice of somebody in a great hurry."""
    return float(rng.exponential(0.1))


def is_ready(url: str) -> bool:
    """True when the web process there says that it can serve people."""
    try:
        with urllib.request.urlopen(f"{url}/readyz", timeout=10) as answer:
            return answer.status == 200
    except OSError:
        return False
