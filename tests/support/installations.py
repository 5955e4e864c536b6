"""The program as processes of its own, in browsers, and killed in the middle of its work."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
import urllib.parse
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from http.client import HTTPException
from http.cookiejar import CookieJar
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

import httpx
import numpy as np
import psycopg
from django.db import connection
from websockets.exceptions import ConnectionClosed, InvalidHandshake
from websockets.sync.client import ClientConnection, connect

from prefmh_web.demo.voters import RECONNECT_S, SimulatedVoter
from tests.support.models import port_from
from tests.support.sampling import rows_in_file
from tests.support.servers import WITHOUT_FSYNC, Postgres, Redis, Relay, demand, environment, without_ours

# Bare WebSocket clients: what a browser sends, and what no browser of ours would.


def cookies_after_joining(link: str) -> str:
    """Open an invitation and join; return the session's Cookie header."""
    jar = CookieJar()
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(jar))
    browser.open(link).close()
    [token] = [cookie.value for cookie in jar if cookie.name == "prefmh_csrf"]
    form = urllib.parse.urlencode({"csrfmiddlewaretoken": token}).encode()
    browser.open(urllib.request.Request(link, form, {"Referer": link})).close()
    return "; ".join(f"{cookie.name}={cookie.value}" for cookie in jar)


def open_socket(site_url: str, path: str, cookies: str = "", origin: str | None = None) -> ClientConnection:
    """Open a socket as a page of this site would, or with another origin."""
    address = site_url.replace("http", "ws", 1) + path
    headers = {"Cookie": cookies} if cookies else {}
    return connect(address, origin=origin or site_url, additional_headers=headers, open_timeout=10)


def closing_code(socket: ClientConnection) -> int:
    """Read until the server closes the socket and return its code."""
    try:
        while True:
            socket.recv(timeout=10)
    except ConnectionClosed as closed:
        return closed.rcvd.code


def send(socket: ClientConnection, **fields) -> None:
    socket.send(json.dumps(fields))


# The browser of the tests: where it is, how it is started (it asks nobody but the site), and how it answers a pair.


# Not where nobody opens a browser, as on a machine with a GPU.
if TYPE_CHECKING:
    from playwright.sync_api import Page

    from prefmh_web.campaigns.models import Campaign

CHROMIUM = Path("/usr/bin/chromium")
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)

# Sooner than people can judge a pair, the page takes no answer (`TOO_SOON_MS` in static/js/voting/vote.js).
MS_TO_JUDGE = 300
TIMES_TO_PRESS = 10
IS_ANOTHER = "key => document.querySelector('input[name=lease]')?.value !== key"


def lease_on(page: Page) -> str:
    return page.locator("input[name=lease]").input_value()


def join(open_page: Callable[..., Page], campaign: Campaign, **options) -> Page:
    """Open a campaign's link as somebody new, and press the button; return the page of their first pair."""
    page = open_page(campaign.invitations.get().get_absolute_url(), **options)
    page.get_by_role("button", name="Start").click()
    # Until the page has loaded nobody hears a key.
    page.wait_for_url("**/vote/")
    return page


def wait_for_another_pair(page: Page, lease: str) -> None:
    page.wait_for_function(IS_ANOTHER, arg=lease)


# Rules of WCAG 2.2 A and AA; in the dark, all that differs from light.
RULES = {
    "dark": {"runOnly": ["color-contrast"]},
    "light": {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]},
}
NARROW, WIDE = {"width": 360, "height": 800}, {"width": 1280, "height": 800}


def violations(page: Page) -> list[tuple[str, str, str]]:
    """Return what axe-core finds wrong with a page: the scheme of colours, the rule, and where."""
    from axe_playwright_python.sync_playwright import Axe

    found = []
    for scheme, rules in RULES.items():
        page.emulate_media(color_scheme=scheme)
        wrong = Axe().run(page, options=rules).response["violations"]
        found += [(scheme, each["id"], each["nodes"][0]["html"][:200]) for each in wrong]
    return found


def is_too_wide(page: Page, size: dict[str, int] = NARROW) -> bool:
    """Return whether a page is wider than a screen of this size, which it then has."""
    page.set_viewport_size(size)
    return page.evaluate("document.documentElement.scrollWidth") > size["width"]


def press_and_wait(page: Page, key: str) -> None:
    """Press a key on a pair until the page shows something else: it drops hasty keys, also on a busy machine."""
    from playwright.sync_api import TimeoutError as PlaywrightTimeout

    before = lease_on(page)
    for _ in range(TIMES_TO_PRESS):
        page.wait_for_timeout(MS_TO_JUDGE)
        if page.evaluate(IS_ANOTHER, before):
            return
        page.keyboard.press(key)
        with suppress(PlaywrightTimeout):
            page.wait_for_function(IS_ANOTHER, arg=before, timeout=5_000)
            return
    raise AssertionError(f"nothing happened on {key} in {TIMES_TO_PRESS} times")


# The site as several processes, as `docker/compose.yaml` starts it: on servers of its own, or on those of a run.


ROOT = Path(__file__).resolve().parents[2]
_PATIENCE_S = 60
# Of the log of a process that has ended.
LAST_LINES = 30


def wait_for(condition: Callable[[], object], what: str, seconds: float = _PATIENCE_S, every_s: float = 0.05) -> object:
    """Return what `condition` returns once that is true.

    Raises:
        AssertionError: it did not become true in time.
    """
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if found := condition():
            return found
        time.sleep(every_s)
    raise AssertionError(f"did not happen within {seconds} s: {what}")


class Process:
    """One process and its children, with what they printed."""

    def __init__(self, name: str, command: list[str], environment: dict[str, str], folder: Path, **options) -> None:
        self.name, self._command, self._environment = name, command, environment
        # A group of its own: a kill takes the pool's children along, as a machine that goes down does. No session of
        # its own: Linux may give each of those an equal share of the processor, and heed no priorities.
        self._options = {"cwd": ROOT, "process_group": 0} | options
        self._log = folder / f"{name}.log"
        self._process: subprocess.Popen | None = None
        self._is_to_end = False
        self._exits: list[str] = []

    @property
    def pid(self) -> int:
        return self._process.pid

    def start(self) -> None:
        self._note_exit()
        self._is_to_end = False
        self.mark()
        with self._log.open("a") as log:
            self._process = subprocess.Popen(
                self._command, env=self._environment, stdout=log, stderr=log, **self._options
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

    def stop(self, how: int = signal.SIGTERM, seconds: float = _PATIENCE_S) -> int:
        """Ask it alone to end, and return its exit status."""
        self._note_exit()
        self._is_to_end = True
        self._process.send_signal(how)
        return self._process.wait(seconds)

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

    def limit(self, resource_of: int, most: int) -> None:
        """Let it have no more of a resource of Linux's than this, until it is allowed more."""
        resource.prlimit(self._process.pid, resource_of, (most, resource.RLIM_INFINITY))

    def log(self) -> str:
        return self._log.read_text()

    def mark(self) -> None:
        """Let `log_since` begin here."""
        self._marked = len(self.log()) if self._log.exists() else 0

    def log_since(self) -> str:
        """Return what was logged since the last start, or since it was marked."""
        return self.log()[self._marked :]

    def wait_until_it_says(self, text: str) -> None:
        wait_for(lambda: self.assert_runs() or text in self.log_since(), f"{self.name} says {text}")


def _maps_of(path: Path, group: int) -> str:
    """Return what a process of a group has in its memory; nothing of one that has gone or is of another group."""
    with contextlib.suppress(OSError):
        return (path / "maps").read_text() if _is_of(path, group) else ""
    return ""


def _is_of(path: Path, group: int) -> bool:
    with contextlib.suppress(ProcessLookupError):
        return os.getpgid(int(path.name)) == group
    return False


def in_folder(data: Path, **variables: str) -> dict[str, str]:
    """Return the environment of a program that is one process, with its record in a folder."""
    return {**os.environ, "PREFMH_DATA": str(data), "DJANGO_SETTINGS_MODULE": "prefmh_web.settings", **variables}


class Program:
    """The program in an environment of its own: commands that run to their end, and processes that end with it.

    Args:
        folder: where logs lie.
        environment: all that each process finds there.
    """

    def __init__(self, folder: Path, environment: Mapping[str, str] | None = None) -> None:
        self.folder, self.environment = folder, dict(environment or {})
        # What has to end, however far the start got.
        self._ends = contextlib.ExitStack()

    def run(self, *command: str, check: bool = True, **options) -> subprocess.CompletedProcess:
        """Run a Python command to its end."""
        given = {"cwd": ROOT, "env": self.environment, "capture_output": True, "text": True} | options
        done = subprocess.run([sys.executable, *command], check=False, **given)
        assert not check or done.returncode == 0, done.stdout + done.stderr
        return done

    def call(self, function: str, *arguments: Any) -> Any:
        """Return what a function of `in_an_installation` returns, called in a process of this program."""
        said = self.run("-m", "tests.support.in_an_installation", function, json.dumps(arguments)).stdout
        return json.loads(said.splitlines()[-1])

    def process(self, name: str, *command: str, variables: Mapping[str, str] | None = None, **options) -> Process:
        """Return a process of a Python command, not started yet."""
        environment = {**self.environment, **(variables or {})}
        return Process(name, [sys.executable, *command], environment, self.folder, **options)

    def launch(self, process: Process) -> Process:
        """Start a process that ends with the others."""
        process.start()
        self._ends.callback(process.kill)
        return process

    def serve(self, command: str = "serve", *options: str) -> tuple[Process, str]:
        """Start the one process that serves everything; return it and its address once it serves."""
        port = str(port_from(23_000))
        process = self.launch(self.process(command, "manage.py", command, "--port", port, *options))
        process.wait_until_it_says("Serving")
        return process, f"http://127.0.0.1:{port}"

    def stop(self) -> None:
        """End whatever has started."""
        self._ends.close()

    def query(self, sql: str, *values) -> list[tuple]:
        """Read, or change, the record as another process does."""
        path = Path(self.environment["PREFMH_DATA"]) / "prefmh.sqlite3"
        with contextlib.closing(sqlite3.connect(path, timeout=30)) as database, database:
            return database.execute(sql, values).fetchall()


class Processes(Program):
    """Two web processes, a worker and beat, on a database and a Redis that are there.

    Args:
        folder: where their files and logs lie.
        variables: what else every process finds in its environment.
    """

    def __init__(self, folder: Path, variables: Mapping[str, str] | None = None) -> None:
        super().__init__(folder)
        self.data, self.variables = folder / "data", dict(variables or {})
        # A process of its own may ask model servers: `judges`.
        self.worker_queues = "default,files,endpoints"
        self.ports = [port_from(first) for first in (29_000, 29_500)]
        self.urls = [f"http://127.0.0.1:{port}" for port in self.ports]

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
        self.webs = [self.web(f"web-{index}", port) for index, port in enumerate(self.ports)]
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

    def web(self, name: str, port: int, **options) -> Process:
        command = ["-m", "uvicorn", "prefmh_web.asgi:application", "--port", str(port), "--lifespan", "off"]
        command += ["--ws-max-size", "65536"]
        return self.process(name, *command, variables={"DATABASE_POOL_SIZE": "5"}, **options)

    def judges(self) -> Process:
        """Return a process that asks model servers, not started yet."""
        return self.process("judges", "manage.py", "judges", variables={"DATABASE_POOL_SIZE": "4"})

    def celery(self, kind: str, *options: str, name: str = "") -> Process:
        return self.process(name or kind, "-m", "celery", "-A", "prefmh_web", kind, *options)


class Installation(Processes):
    """Such processes with a PostgreSQL and a Redis of their own."""

    def __init__(
        self, folder: Path, variables: Mapping[str, str] | None = None, durability: tuple[str, ...] = WITHOUT_FSYNC
    ) -> None:
        super().__init__(folder, variables)
        self.postgres, self.redis = Postgres(durability), Redis()
        self._ends.callback(self.postgres.remove)
        self._ends.callback(self.redis.remove)

    def start(self) -> None:
        """Start everything and wait until both web processes say that they are ready."""
        self.postgres.start()
        self.redis.start()
        self.serve(environment(self.postgres.create("prefmh"), self.redis.url, self.urls[0]))

    @contextlib.contextmanager
    def running(self) -> Iterator[Self]:
        """Start everything; at the end, look whether anything has ended by itself, and end it."""
        try:
            self.start()
            yield self
            self.look_after()
        finally:
            self.stop()

    def make_campaigns(self, *configs: dict, start: bool = True) -> list[tuple[int, str]]:
        """Make one campaign of twelve texts for each config's changes; return its number and its invitation's path."""
        return [tuple(made) for made in self.call("make", configs, start)]

    def assert_record_is_whole_and_replays(self, *campaigns: int) -> None:
        """Look at the record, export it and replay the export, all in another process."""
        self.call("check", str(self.folder), campaigns)

    def sign_in_path(self) -> str:
        """Return the path that signs the campaigns' owner in."""
        return self.call("sign_in_path")

    def open_steps(self, campaign: int) -> int:
        """Return how many of a campaign's comparisons are open."""
        counted = (
            "SELECT count(*) FROM campaigns_comparison c JOIN campaigns_chain h ON h.id = c.chain_id"
            " WHERE c.verdict IS NULL AND h.campaign_id = %s"
        )
        return self.query(counted, campaign)[0][0]

    def query(self, sql: str, *values) -> list[tuple]:
        """Read, or change, the record as another process does."""
        with psycopg.connect(self.postgres.url("prefmh"), autocommit=True) as connection:
            cursor = connection.execute(sql, values)
            return cursor.fetchall() if cursor.description else []

    def vote_keys(self, campaign: int) -> list[str]:
        """Return the keys of all stored votes of a campaign."""
        votes = "SELECT v.key FROM campaigns_vote v JOIN campaigns_judge j ON j.id = v.judge_id"
        return [str(key) for (key,) in self.query(f"{votes} WHERE j.campaign_id = %s", campaign)]

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

    def __init__(self, voters: list[SimulatedVoter]) -> None:
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

    async def _one(self, voter: SimulatedVoter) -> None:
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


# nginx as docker/nginx.conf sets it up, in front of web processes on this machine.


CONFIGURATION = Path(__file__).parents[2] / "docker/nginx.conf"


@dataclass(frozen=True)
class Proxy:
    """Where it listens, and the file with all that it says."""

    url: str
    log: Path


@contextlib.contextmanager
def nginx_before(servers: Sequence[str], folder: Path, static: Path | None = None) -> Iterator[Proxy]:
    """Serve in front of web processes until the block ends.

    Args:
        servers: host and port of each.
        folder: for its files and its log.
        static: collected static files; None to leave them to the web processes.
    """
    nginx = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    demand(nginx, "needs nginx (Debian: apt-get install nginx-light)")
    port, log = port_from(31_500), folder / "nginx.log"
    (folder / "nginx.conf").write_text(_configuration(servers, folder, static, port))
    command = [nginx, "-c", str(folder / "nginx.conf"), "-g", "daemon off; user root;"]
    with log.open("w") as said:
        server = subprocess.Popen(command, stdout=said, stderr=said)
        try:
            proxy = Proxy(f"http://127.0.0.1:{port}", log)
            wait_for(lambda: is_ready(proxy.url), "nginx in front of the web process")
            yield proxy
        finally:
            server.send_signal(signal.SIGQUIT)
            server.wait()


def _configuration(servers: Sequence[str], folder: Path, static: Path | None, port: int) -> str:
    text = CONFIGURATION.read_text()
    [server] = re.findall(r"server web:8000 resolve (.*);", text)
    changes = {
        "/tmp/": f"{folder}/",
        # Here is no name server of Docker's, and Debian's nginx is too old to ask one again and again.
        f"server web:8000 resolve {server};": "\n".join(f"server {each} {server};" for each in servers),
        "listen 8080": f"listen 127.0.0.1:{port}",
        "/srv/static": str(static),
    }
    if static is None:
        changes["location /static/ {"] = "location /nowhere/ {"
    for there, here in changes.items():
        assert there in text, there
        text = text.replace(there, here)
    return text


# The live site of the tests as separate processes, on the database and the Redis of the run itself.
#
# The same tests drive it as drive the server on a thread: they look at the record as one more process does.


@contextlib.contextmanager
def on_the_test_database(processes: Processes) -> Iterator[None]:
    """Let the processes serve from the database that pytest has made; beat waits for a live site."""
    url = urlsplit(os.environ["DATABASE_URL"])._replace(path=f"/{connection.settings_dict['NAME']}")
    servers = {name: os.environ[name] for name in environment("", "") if name in os.environ}
    try:
        processes.serve({**servers, "DATABASE_URL": url.geturl()})
        processes.beat.send(signal.SIGSTOP)
        yield
    finally:
        processes.stop()


class LiveProcesses:
    """Both web processes behind one address, a worker and beat, for one test."""

    def __init__(self, processes: Processes) -> None:
        self._processes, self._relay = processes, Relay(processes.ports)
        self.url, self.drop_connections = self._relay.url, self._relay.drop_connections

    def start(self) -> None:
        for process in self._processes.all:
            process.mark()
        self._processes.beat.send(signal.SIGCONT)
        self._relay.start()

    def stop(self) -> None:
        """Let everything come to rest, so that the database can be emptied, and look what was logged meanwhile."""
        from tests.support.process import wait_until_idle

        self._relay.stop()
        self._processes.beat.send(signal.SIGSTOP)
        wait_until_idle()
        wait_for(lambda: not _others_at_work(), "no other process in a transaction")
        for process in self._processes.all:
            process.assert_runs()
            assert "Traceback" not in process.log_since(), process.log_since()


def _others_at_work() -> int:
    with connection.cursor() as cursor:
        others = "datname = current_database() AND pid <> pg_backend_pid() AND state <> 'idle'"
        cursor.execute(f"SELECT count(*) FROM pg_stat_activity WHERE {others}")
        return cursor.fetchone()[0]


# `manage.py experiment` on a site of its own: an account that has endpoints, and commands that can be killed.


ROLES = ("writer", "judge", "evaluator")
# Servers of the tests may be called.
VARIABLES = {"ENDPOINT_ALLOWED_HOSTS": "127.0.0.1", "ENDPOINT_ALLOW_PRIVATE": "127.0.0.1/32"}


class Site(Program):
    """A data folder with the account `researcher`, who has an endpoint of each role's name.

    Args:
        folder: empty; the run's own folder is `out` in it.
        options: of each command, the experiment's name first.
        url: of the server that all endpoints share.
        roles: who has each role.
        also: further settings of the site.
    """

    def __init__(
        self,
        folder: Path,
        options: Sequence[str],
        url: str = "",
        roles: Mapping[str, str] | None = None,
        also: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(folder, in_folder(folder / "data", **VARIABLES, **(also or {})))
        self.options, self.out = options, folder / "out"
        self.roles = {role: role for role in ROLES} if roles is None else roles
        self.call("prepare", [{"name": name, "model": name, "base_url": url} for name in self.roles.values()])

    def command(self, *more: str) -> list[str]:
        roles = [f"--endpoint={role}={name}" for role, name in self.roles.items()]
        return ["manage.py", "experiment", *self.options, "--out", str(self.out), *roles, *more]

    def experiment(self, *more: str) -> subprocess.CompletedProcess[str]:
        """Run the command to its end."""
        return self.run(*self.command(*more), timeout=500, check=False)

    def rows(self, path: str | Path) -> list[dict[str, str]]:
        """Read a table of the run."""
        return rows_in_file(self.out / path)


# Campaigns judged by servers with faults (`faulty_model_server.py`), and what those servers saw of them.


QUESTION = "Which is darker?"


class FaultyModels:
    """The servers of some plans, in one process.

    Args:
        folder: where they write what they print.
        plans: by name; see `faulty_model_server.Server`.
    """

    def __init__(self, folder: Path, plans: dict[str, dict[str, Any]]) -> None:
        self.names, self._port = list(plans), port_from(24_000)
        command = [sys.executable, "-m", "tests.support.faulty_model_server", "--port", str(self._port)]
        command += ["--plans", json.dumps(plans)]
        self._process = Process("models", command, {"PATH": ""}, folder, cwd=ROOT)

    def start(self) -> None:
        self._process.start()
        wait_for(self._answers, "the model servers answer")

    def stop(self) -> None:
        """End it, which it must not have done by itself."""
        exits = self._process.exits_of_its_own()
        self._process.kill()
        assert not exits, exits

    def register(self, site: Installation, **fields: int) -> None:
        """Make an endpoint for each server, of the server's name."""
        site.call("register", [{"name": name, "base_url": self.url(name), **fields} for name in self.names])

    def url(self, name: str) -> str:
        return f"http://127.0.0.1:{self._port}/{name}/v1"

    def count(self, name: str, what: str) -> int:
        """Return a number of votes; see `faulty_model_server`."""
        return self.counts(name)[what]

    def counts(self, name: str) -> Counter[str]:
        """Return the numbers of votes of all kinds."""
        found: dict[str, dict[str, int]] = httpx.get(f"http://127.0.0.1:{self._port}/figures", timeout=60).json()
        return Counter(found[name])

    def _answers(self) -> bool:
        try:
            return httpx.get(f"http://127.0.0.1:{self._port}/figures").is_success
        except httpx.HTTPError:
            return False


def judged_by(endpoint: str) -> dict[str, Any]:
    """Return a judge of a config."""
    return {"question": QUESTION, "votes": 3, "source": {"kind": "model", "endpoint": endpoint, "votes": "sampled"}}


class Desk:
    """The researcher in a browser, who is signed in."""

    def __init__(self, site: Installation) -> None:
        self._client = httpx.Client(base_url=site.urls[0], follow_redirects=True, timeout=60)
        self.get(site.sign_in_path())
        self.get("/campaigns/new/")

    def close(self) -> None:
        self._client.close()

    def get(self, path: str) -> httpx.Response:
        return self._client.get(path).raise_for_status()

    def post(self, path: str, **fields: str) -> str:
        """Send a form, and return the page it leads to."""
        fields |= {"csrfmiddlewaretoken": self._client.cookies["prefmh_csrf"]}
        return (
            self._client.post(path, data=fields, headers={"Referer": str(self._client.base_url)})
            .raise_for_status()
            .text
        )

    def file(self, campaign: int, name: str) -> bytes:
        """Return a file, by its address below the campaign's page."""
        return self.get(f"/campaigns/{campaign}/{name}").content

    def press(self, campaign: int, button: str) -> str:
        """Press a button of a campaign's page, by its address; return the page that follows."""
        return self.post(f"/campaigns/{campaign}/{button}/")
