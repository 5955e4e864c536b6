"""What `serve` and `demo` share: options, the database brought up to date, the links, and serving itself."""

import signal
import sqlite3
from argparse import ArgumentParser, ArgumentTypeError
from contextlib import suppress
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management import CommandError, call_command
from django.core.management.base import OutputWrapper

from prefmh_web.accounts.links import sign_in_path
from prefmh_web.embedded.server import CannotListen, free_port, server
from prefmh_web.embedded.working import at_work
from prefmh_web.participants import erasure
from prefmh_web.scorers import commands

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
    site = (url or f"http://{f'[{address}]' if ':' in address else address}:{port}").rstrip("/")
    parts = urlsplit(site)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.path:
        raise CommandError(f"--url must be an address such as http://lab.example:8000, not {url}")
    settings.ALLOWED_HOSTS.append(f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname)
    if parts.scheme == "https":
        # A proxy in front of this server ends TLS; browsers name the secure address in what they send.
        settings.CSRF_TRUSTED_ORIGINS.append(site)
        settings.SESSION_COOKIE_SECURE = settings.CSRF_COOKIE_SECURE = True
    return site


def choose_port(address: str, wanted: int | None) -> int:
    """Return the port to listen on.

    Raises:
        CommandError: it is taken, or the address is not this computer's.
    """
    try:
        return free_port(address, wanted)
    except CannotListen as reason:
        raise CommandError(str(reason)) from reason


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
    if not (text.isdigit() and 0 < int(text) < 65536):
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
    erasure.empty()
    signal.signal(number, signal.SIG_DFL)
    signal.raise_signal(number)
