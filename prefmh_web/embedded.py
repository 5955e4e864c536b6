"""The embedded server: pages, sockets, tasks and the clock that sweeps, in this one process.

`serve` and `demo` serve people meanwhile; `experiment` waits for its campaigns.
"""

from __future__ import annotations

import asyncio
import errno
import signal
import socket
import sqlite3
import sys
import threading
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit

import uvicorn
from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management import CommandError, call_command
from django.core.management.base import OutputWrapper
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from prefmh_web.accounts.models import sign_in_path
from prefmh_web.campaigns.model_judges import asker
from prefmh_web.celery import load_everything, run_here
from prefmh_web.participants import erasure
from prefmh_web.scorers import commands
from prefmh_web.settings.environment import address_of_a_site
from prefmh_web.tasks import settle_parts, sweep, sweep_leases

SWEEP_EVERY_S = 5


def free_port(address: str, wanted: int | None, first: int = 8000, tries: int = 20) -> int:
    """Return `wanted`, or the first free port from `first` on when none is wanted.

    Raises:
        CommandError: there is none, or the address is not this computer's.
    """
    for port in [wanted] if wanted else range(first, first + tries):
        try:
            socket.create_server((address, port), family=socket.AF_INET6 if ":" in address else socket.AF_INET).close()
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise CommandError(f"Cannot listen on {address} port {port}: {error.strerror}.") from error
        else:
            return port
    taken = f"Port {wanted}" if wanted else f"Every port from {first} to {first + tries - 1}"
    raise CommandError(f"{taken} is already in use on {address}. Choose another one with --port.")


class Clock(threading.Thread):
    """Calls `tick` at once and then every few seconds, until stopped."""

    def __init__(self, tick: Callable[[], None], every_s: float = SWEEP_EVERY_S) -> None:
        super().__init__(name="clock", daemon=True)
        self._tick, self._every_s, self._stopped = tick, every_s, threading.Event()

    def run(self) -> None:
        self._tick()
        while not self._stopped.wait(self._every_s):
            self._tick()

    def stop(self) -> None:
        self._stopped.set()
        self.join()


class EmbeddedServer(uvicorn.Server):
    """Says when it listens, and stops at Ctrl-C, whatever libraries do.

    While RDKit looks for a substructure it handles the interrupt itself, and puts back what it found; of two threads
    that do so at once the second finds the first one's handler, and that is what stays.
    """

    def __init__(self, config: uvicorn.Config, on_listening: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_listening = on_listening

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._on_listening()

    async def on_tick(self, counter: int) -> bool:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, self.handle_exit)
        return await super().on_tick(counter)


def server(address: str, port: int, on_listening: Callable[[], None] = lambda: None) -> uvicorn.Server:
    """Return the configured server. `run()` serves until interrupted; `on_listening` is called once it listens."""
    config = uvicorn.Config(
        "prefmh_web.asgi:application",
        host=address,
        port=port,
        http=PatientProtocol,
        lifespan="off",
        # `LOGGING` says it all: uvicorn's own handlers would write what ours keep out of the log.
        log_config=None,
        ws_max_size=64 * 1024,
        timeout_graceful_shutdown=3,
    )
    return EmbeddedServer(config, on_listening)


HEAD_WITHIN_S = 30


class PatientProtocol(AutoHTTPProtocol):  # type: ignore[valid-type, misc]  # one of two classes: uvicorn chooses
    """Closes connections on which no new request has begun for a while, and none is being answered.

    Uvicorn waits for ever for the rest of a request's head, and who opens connections enough, each with half a head,
    leaves none to others. In front of several processes nginx sees to that; embedded, nothing else does.
    """

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        self._look_later()

    def _look_later(self) -> None:
        self.loop.call_later(HEAD_WITHIN_S, self._look, self.cycle)

    def _look(self, before) -> None:
        # A socket has a protocol of its own from its handshake on.
        if self.transport.is_closing() or self.transport.get_protocol() is not self:
            return
        is_idle = self.cycle is None or self.cycle.response_complete
        if is_idle and self.cycle is before:
            self.transport.close()
        else:
            self._look_later()


# Voters' sockets, tasks and pages share one interpreter; a shorter switch keeps a long task from holding the rest.
_SWITCH_INTERVAL_S = 0.0005


@contextmanager
def at_work() -> Iterator[None]:
    """Do whatever there is to do on threads of this process until the block ends."""
    sys.setswitchinterval(_SWITCH_INTERVAL_S)
    # Before the clock's thread starts: two threads that load the same packages for the first time may clash.
    load_everything()
    turns = asker.begin()
    clock = Clock(sweep_everything)
    clock.start()
    try:
        yield
    finally:
        clock.stop()
        # Python waits for the threads of tasks, and one of these may wait for a program's answer.
        commands.end()
        turns.end()


def sweep_everything() -> None:
    """Find whatever waits: chains without a question, files to read, leases whose time is over."""
    # On the clock's own thread: a sweep that takes long delays the next one, instead of queueing up behind it.
    run_here(sweep)
    run_here(sweep_leases)
    run_here(settle_parts)


_held: list[sqlite3.Connection] = []


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options of every serving command."""
    parser.add_argument("--address", default="127.0.0.1", help="the address to listen on (default: this computer only)")
    parser.add_argument("--port", type=_port, help="the port to listen on (default: the first free one from 8000)")
    parser.add_argument("--url", help="the address that people use, for the printed links: http://192.168.1.5:8000")


def site_url(address: str, port: int, url: str | None) -> str:
    """Return the address in front of every printed link, and accept it as a host name.

    Raises:
        CommandError: the address cannot be used, or the server listens on every address and cannot know which
            one people use.
    """
    if url is None and address in ("0.0.0.0", "::"):  # noqa: S104 - compared, not bound
        raise CommandError("With --address 0.0.0.0, also give the address that people use: --url http://NAME:PORT")
    try:
        site = address_of_a_site(url or f"http://{f'[{address}]' if ':' in address else address}:{port}")
    except ValueError as error:
        raise CommandError(f"--url {error}.") from error
    name = urlsplit(site).hostname or ""
    settings.ALLOWED_HOSTS.append(f"[{name}]" if ":" in name else name)
    if site.startswith("https:"):
        # A proxy in front of this server ends TLS; browsers name the secure address in what they send.
        settings.CSRF_TRUSTED_ORIGINS.append(site)
        settings.SESSION_COOKIE_SECURE = settings.CSRF_COOKIE_SECURE = True
    return site


def prepare_database() -> None:
    """Bring the embedded database up to date.

    Raises:
        CommandError: the environment names a database server, which several processes share.
    """
    if not settings.EMBEDDED:
        raise CommandError(
            "DATABASE_URL is set, but this command serves the embedded database only. Remove it, or start the "
            "processes that docker/compose.yaml names: uvicorn, celery worker and celery beat."
        )
    call_command("migrate", verbosity=0, interactive=False)


def _keep_others_out() -> None:
    """Lock a file beside the database until this process ends, however it ends.

    Two servers would each run every task, and neither would tell its voters what the other decides.
    """
    lock = sqlite3.connect(settings.DATA_DIR / "served.lock", timeout=0, isolation_level=None)
    try:
        lock.execute("BEGIN EXCLUSIVE")
    except sqlite3.OperationalError as error:
        raise CommandError(
            f"Another process serves {settings.DATA_DIR}. Stop it, or choose another folder by PREFMH_DATA."
        ) from error
    _held.append(lock)


def sign_in_link(site: str, username: str) -> str | None:
    """Return a link that signs this researcher in; None when there is no such account."""
    user = get_user_model().objects.filter(username=username).first()
    return f"{site}{sign_in_path(user)}" if user else None


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 0 < int(text) < 65536):
        raise ArgumentTypeError(f"must be a number from 1 to 65535, not {text}")
    return int(text)


def serve(address: str, port: int, out: OutputWrapper, links: str) -> None:
    """Serve until interrupted, and do all work that there is meanwhile. Print the links once they can be opened.

    Raises:
        CommandError: another process serves this data folder.
    """
    _keep_others_out()

    def tell() -> None:
        out.write(f"{links}\nServing. Stop with Ctrl-C.")
        # A file or another program reads it at once, too.
        out.flush()

    # Uvicorn has shut down when it passes the interrupt on. One that comes while all is still being loaded ends that.
    with suppress(KeyboardInterrupt), at_work():
        # Uvicorn passes the signal on once it has shut down, and by default nothing of ours would run after that.
        signal.signal(signal.SIGTERM, _end)
        server(address, port, tell).run()
    erasure.empty()


def _end(number: int, frame: object) -> None:
    commands.end()
    # Uvicorn passes the signal on inside its event loop, and there Django refuses queries.
    with ThreadPoolExecutor(1) as thread:
        thread.submit(erasure.empty).result()
    signal.signal(number, signal.SIG_DFL)
    signal.raise_signal(number)
