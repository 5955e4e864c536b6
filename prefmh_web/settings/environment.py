"""What the environment says. Every variable is read here; one that is missing or half of a pair is refused by name.

Two modes, told apart by `DATABASE_URL`:

    embedded    absent: one process, SQLite, tasks on its threads, a channel layer in its memory
    server      PostgreSQL as the record, Redis between the processes, Celery workers

    PREFMH_DATA     folder of uploads and pictures, and of the embedded database; default `var` in the checkout
    SECRET_KEY      server: required. Embedded: generated once and kept in PREFMH_DATA, readable by its owner only
    DEBUG           "1" shows tracebacks in the browser
    ALLOWED_HOSTS   comma-separated names this site may be called by, beside localhost and SITE_URL's
    SITE_URL        how people reach the site, such as https://prefmh.example; server: required
    TRUSTED_PROXY_TLS_HEADER   the header in which the proxy that ends TLS says so; required for an https SITE_URL
    TRUSTED_PROXIES comma-separated networks of proxies whose X-Forwarded-For is believed, for limits by address
    RATE_LIMITS     comma-separated rates in place of those in `rates.py`, such as join=5000/minute, forms=20/10 second
    HSTS_SECONDS    how long browsers insist on https; default 30 days for an https SITE_URL
    DATABASE_URL    postgresql://user:password@host:5432/name
    DATABASE_POOL_SIZE   connections a process keeps in a pool: 10 for a web process, whose requests have a thread each;
                    unset for workers, which keep one connection each
    REDIS_URL       redis://host:6379/0; server: required
    CELERY_BROKER_URL    another broker than Redis: amqp://user:password@host:5672//
    STATIC_ROOT     folder that `collectstatic` writes hashed files to; absent: files are served from the checkout
    LOG_FORMAT      "json" or "line"; default json in server mode
    LOG_LEVEL       of our own messages; default INFO in server mode, WARNING embedded
    METRICS_ALLOW   comma-separated addresses or networks that may read /metrics
    METRICS_TOKEN   a bearer token that may read /metrics from anywhere
    ENDPOINT_ALLOWED_HOSTS   comma-separated hosts of model servers that campaigns may call, each perhaps with a port;
                    default: none
    ENDPOINT_ALLOW_PRIVATE   comma-separated private networks among which such hosts may be, such as 127.0.0.1/32
    ENDPOINT_KEYS   which variable's key may go where: OPENAI_API_KEY=api.openai.com, OTHER_KEY=a.example b.example
    LOCAL_MODELS    language models the site runs itself, in the worker of the queue "gpu": name=folder,name2=folder2
    LOCAL_IMAGE_MODELS   SDXL-Turbo and models built like it, run in the same worker: name=folder,name2=folder2
    LOCAL_DEVICE    where they run: cuda, cuda:1, cpu; default: CUDA if there is any
    HEARTBEAT_FILE  a file that workers and beat touch while they are alive
"""

import ipaddress
import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import dj_database_url
from django.core.exceptions import ImproperlyConfigured
from limits import parse

_LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
_SHORTEST_KEY = 50
_MONTH_S = 30 * 24 * 60 * 60
_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")


@dataclass(frozen=True)
class Site:
    """Where people find the site, and what that asks of cookies and redirects."""

    url: str | None
    allowed_hosts: list[str]
    tls_header: str | None
    hsts_seconds: int

    @property
    def is_https(self) -> bool:
        return self.url is not None and self.url.startswith("https:")


@dataclass(frozen=True)
class Engines:
    """The servers beside ours. `database` is Django's own dictionary; None means embedded."""

    database: dict | None
    redis_url: str | None
    broker_url: str | None


def text(name: str, environ: Mapping[str, str] = os.environ) -> str | None:
    """Return a variable's value; None when it is absent or empty, as a compose file leaves what is not set."""
    return environ.get(name, "").strip() or None


def names(name: str, environ: Mapping[str, str] = os.environ) -> list[str]:
    """Return the parts of a comma-separated variable."""
    return [part.strip() for part in environ.get(name, "").split(",") if part.strip()]


def number(name: str, default: int, environ: Mapping[str, str] = os.environ) -> int:
    """Return a whole number that is not negative.

    Raises:
        ImproperlyConfigured: it is something else.
    """
    given = text(name, environ)
    if given is not None and not (given.isascii() and given.isdigit()):
        raise ImproperlyConfigured(f"{name} must be a whole number, not {given!r}.")
    return default if given is None else int(given)


def choice(name: str, default: str, allowed: tuple[str, ...], environ: Mapping[str, str] = os.environ) -> str:
    """Return one of the allowed values.

    Raises:
        ImproperlyConfigured: it is something else.
    """
    given = text(name, environ) or default
    if given not in allowed:
        raise ImproperlyConfigured(f"{name} must be one of {', '.join(allowed)}; it is {given!r}.")
    return given


def log_level(default: str, environ: Mapping[str, str] = os.environ) -> str:
    return choice("LOG_LEVEL", default, _LEVELS, environ)


def engines(environ: Mapping[str, str] = os.environ) -> Engines:
    """Return the servers to use.

    Raises:
        ImproperlyConfigured: one is named without the others it needs, or is of a kind we do not speak.
    """
    database_url, redis_url = text("DATABASE_URL", environ), text("REDIS_URL", environ)
    broker_url = text("CELERY_BROKER_URL", environ)
    if database_url is None:
        for name in ("REDIS_URL", "CELERY_BROKER_URL"):
            if text(name, environ):
                raise ImproperlyConfigured(
                    f"{name} is set but DATABASE_URL is not: several processes cannot share the embedded database. "
                    f"Set DATABASE_URL=postgresql://user:password@host:5432/name, or remove {name}."
                )
        return Engines(None, None, None)
    if redis_url is None:
        raise ImproperlyConfigured(
            "DATABASE_URL is set but REDIS_URL is not: several processes cannot nudge each other's pages. "
            "Set REDIS_URL=redis://host:6379/0, or remove DATABASE_URL to run embedded."
        )
    _demand_scheme("DATABASE_URL", database_url, ("postgresql", "postgres"))
    _demand_scheme("REDIS_URL", redis_url, ("redis", "rediss"))
    _demand_scheme("CELERY_BROKER_URL", broker_url or redis_url, ("redis", "rediss", "amqp", "amqps"))
    return Engines(
        _postgres(database_url, number("DATABASE_POOL_SIZE", 0, environ)), redis_url, broker_url or redis_url
    )


def secret_key(environ: Mapping[str, str] = os.environ) -> str | None:
    """Return the key, None where an embedded installation keeps its own.

    Raises:
        ImproperlyConfigured: server mode without one, or with one that can be guessed.
    """
    key = text("SECRET_KEY", environ)
    if text("DATABASE_URL", environ) is None:
        return key
    if key is None or len(key) < _SHORTEST_KEY:
        raise ImproperlyConfigured(
            f"SECRET_KEY must be set to at least {_SHORTEST_KEY} random characters, the same for every process. "
            'Make one: python -c "import secrets; print(secrets.token_urlsafe(50))"'
        )
    return key


def site(environ: Mapping[str, str] = os.environ) -> Site:
    """Return where people find the site.

    Raises:
        ImproperlyConfigured: SITE_URL is missing in server mode or no address, or TLS ends nobody says where.
    """
    url, header = text("SITE_URL", environ), text("TRUSTED_PROXY_TLS_HEADER", environ)
    hosts = [*_LOOPBACK, *names("ALLOWED_HOSTS", environ)]
    if url is None:
        if text("DATABASE_URL", environ):
            raise ImproperlyConfigured("SITE_URL must say how people reach this site, such as https://prefmh.example.")
        return Site(None, hosts, header, 0)
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.path.strip("/") or parts.query:
        raise ImproperlyConfigured(f"SITE_URL must be an address such as https://prefmh.example, not {url!r}.")
    if parts.scheme == "https" and header is None:
        raise ImproperlyConfigured(
            "SITE_URL is https, so a proxy ends TLS; TRUSTED_PROXY_TLS_HEADER must name the header in which it says so "
            "(X-Forwarded-Proto, for most). The proxy must set it itself and never pass on a visitor's."
        )
    hosts.append(f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname)
    hsts = number("HSTS_SECONDS", _MONTH_S, environ) if parts.scheme == "https" else 0
    return Site(f"{parts.scheme}://{parts.netloc}", hosts, header, hsts)


def networks(name: str, environ: Mapping[str, str] = os.environ) -> tuple:
    """Return the addresses and networks of a variable.

    Raises:
        ImproperlyConfigured: a part is neither.
    """
    try:
        return tuple(ipaddress.ip_network(part, strict=False) for part in names(name, environ))
    except ValueError as error:
        raise ImproperlyConfigured(f"{name} must hold addresses or networks such as 10.0.0.0/8: {error}.") from error


def pairs(name: str, environ: Mapping[str, str] = os.environ) -> dict[str, list[str]]:
    """Return the parts NAME=value value of a comma-separated variable.

    Raises:
        ImproperlyConfigured: a part is no such pair.
    """
    found = {}
    for part in names(name, environ):
        key, equals, values = part.partition("=")
        if not (equals and key.strip() and values.split()):
            raise ImproperlyConfigured(f"{name} must look like NAME=value value, NAME=value; “{part}” does not.")
        found[key.strip()] = values.split()
    return found


def rates(name: str, known: Mapping[str, str], environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the rates of a variable by name, such as {"join": "5000/minute"}.

    Raises:
        ImproperlyConfigured: there is no such rate, or it is none that anybody could keep to.
    """
    found = {rate: " ".join(words) for rate, words in pairs(name, environ).items()}
    for rate, given in found.items():
        if rate not in known:
            raise ImproperlyConfigured(f"{name} knows {', '.join(known)}; “{rate}” is none of them.")
        if not _is_rate(given):
            raise ImproperlyConfigured(f"{name} must hold rates such as join=5000/minute; “{given}” is none.")
    return found


def keepalive() -> dict[int, int]:
    """Return the options of a socket that notices within half a minute that its other end has vanished.

    A server that is merely frozen has not: its computer goes on answering for it.
    """
    wanted = {"TCP_KEEPIDLE": 15, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3, "TCP_USER_TIMEOUT": 30_000}
    # Not every system has all of them.
    return {getattr(socket, name): value for name, value in wanted.items() if hasattr(socket, name)}


def folder(name: str, default: Path, environ: Mapping[str, str] = os.environ) -> Path:
    return Path(text(name, environ) or default)


def _is_rate(given: str) -> bool:
    try:
        return ";" not in given and parse(given).amount > 0
    except ValueError:
        return False


def _demand_scheme(name: str, url: str, schemes: tuple[str, ...]) -> None:
    if urlsplit(url).scheme not in schemes:
        # The address itself may hold a password and stays out of the message.
        raise ImproperlyConfigured(f"{name} must start with one of {', '.join(f'{each}://' for each in schemes)}.")


def _postgres(url: str, pool_size: int) -> dict:
    try:
        database = dj_database_url.parse(url, conn_health_checks=True)
    except ValueError as error:
        raise ImproperlyConfigured("DATABASE_URL must look like postgresql://user:password@host:5432/name.") from error
    if not database["NAME"]:
        raise ImproperlyConfigured("DATABASE_URL must name a database: postgresql://user:password@host:5432/name.")
    # Voting repeats a few wide statements: prepared, they cost PostgreSQL less than half.
    database["OPTIONS"] = {"server_side_binding": True, "prepare_threshold": 2, **database.get("OPTIONS", {})}
    if pool_size:
        # The pool keeps the connections; Django's own keeping would hold one back from it for each thread.
        database["CONN_MAX_AGE"] = 0
        pool = {"min_size": 1, "max_size": pool_size, "timeout": 10}
        database["OPTIONS"]["pool"] = pool
    else:
        database["CONN_MAX_AGE"] = None
    return database
