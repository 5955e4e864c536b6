"""What the environment says. Every variable is read here; a bad one is refused by name.

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
    RATE_LIMITS     comma-separated rates in place of those in `RATES`, such as join=5000/minute, forms=20/10 second
    HSTS_SECONDS    how long browsers insist on https; default 30 days for an https SITE_URL
    DATABASE_URL    postgresql://user:password@host:5432/name
    DATABASE_POOL_SIZE   connections a process keeps in a pool: 10 for a web process, whose requests have a thread each;
                    unset for workers, which keep one connection each
    REDIS_URL       redis://host:6379/0; server: required
    REDIS_TIMEOUT_SECONDS    how long a page waits for Redis before it goes on without it; default 0.5
    CELERY_BROKER_URL    another broker than Redis: amqp://user:password@host:5672//
    BROKER_TIMEOUT_SECONDS   how long `doctor` and /readyz wait for the broker; default 0.7
    STATIC_ROOT     folder that `collectstatic` writes hashed files to; absent: files are served from the checkout
    LOG_FORMAT      "json" or "line"; default json in server mode
    LOG_LEVEL       of our own messages; default INFO in server mode, WARNING embedded
    METRICS_ALLOW   comma-separated addresses or networks that may read /metrics
    METRICS_TOKEN   a bearer token that may read /metrics from anywhere
    ENDPOINT_ALLOWED_HOSTS   comma-separated hosts of model servers that campaigns may call: "api.example.com",
                    "gpu1:8000" (that port only) or ".example.com" (and all below); default: none
    ENDPOINT_ALLOW_PRIVATE   comma-separated private networks among which such hosts may be, such as 127.0.0.1/32
    ENDPOINT_KEYS   which variable's key may go where: OPENAI_API_KEY=api.openai.com, OTHER_KEY=a.example b.example
    LOCAL_MODELS    language models the site runs itself, in the worker of the queue "gpu": name=folder,name2=folder2
    LOCAL_IMAGE_MODELS   SDXL-Turbo and models built like it, run in the same worker: name=folder,name2=folder2
    LOCAL_DEVICE    where they run: cuda, cuda:1, cpu; default: CUDA if there is any
    MODEL_CAP_COST  what all campaigns together may spend on models, in the currency of the endpoints' prices;
                    at that, those that ask models are paused. Default: no cap
    MODEL_CAP_REQUESTS   how many requests they may make together. Default: no cap
    SCORERS         programs that give objects a number: name=command,name2=command2; a comma in quotation marks is the
                    command's. No shell reads them
    SCORER_TIMEOUT_SECONDS   how long one may take for an object; default 60; ten times that for the first one
                    after its start
    HEARTBEAT_FILE  a file that workers and beat touch while they are alive
"""

import ipaddress
import math
import re
import shlex
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import SplitResult, urlsplit

import dj_database_url
from django.core.exceptions import ImproperlyConfigured
from limits import parse
from pydantic import AfterValidator, BeforeValidator, ValidationError, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

_LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
_SHORTEST_KEY = 50
_POSTGRESQL = "prefmh_web.transport.postgresql"
_MONTH_S = 30 * 24 * 60 * 60
_REDIS, _BROKERS = ("redis", "rediss"), ("redis", "rediss", "amqp", "amqps")
# Commas within quotation marks belong to a command, those between commands stand outside them.
_COMMANDS = re.compile(r"""(?:[^,"']|"(?:\\.|[^"\\])*"|'[^']*')+""")
_HOST = re.compile(r"\*|\.?[\w.-]+|\[[0-9a-fA-F:.]+\]")
_HOST_AND_PORT = re.compile(r"(\.?[\w.-]+|\[[0-9a-fA-F:.]+\])(:\d+)?")
_SCORER_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,39}")

# How often somebody may do something, by name. The variable RATE_LIMITS replaces single ones.
RATES = {
    # Passwords that were wrong: of one account from one place, of one account from anywhere, of any account from one
    # place. Whoever knows theirs is not counted. An hour of the first stays below the second: nobody can lock an
    # account everywhere from one place.
    "sign-in-name-here": "6/5 minute",
    "sign-in-name": "100/hour",
    "sign-in-address": "60/5 minute",
    # By address. A lecture hall behind one address joins at once, each person perhaps a few times.
    "join": "600/minute",
    # By voter. Ten a second is a person in a great hurry; each vote may be sent twice.
    "votes": "150/10 second",
    # By voter: pages that connect again and again.
    "sockets": "60/minute",
    # By researcher.
    "forms": "120/minute",
    # Of what a model would be sent, while one types.
    "previews": "240/minute",
    # By token of a program.
    "api": "1200/minute",
    # By address, with tokens that let nobody in. No token can be guessed; this spares the database.
    "api-refused": "120/minute",
}
# Counted in memory by each process for itself, so that a vote waits for no other server. A person whose pages are on
# several web processes may do it as often in each of them.
PER_PROCESS = frozenset({"votes"})


def _require_scheme(schemes: tuple[str, ...]) -> AfterValidator:
    """Return a check that an address starts with one of these schemes."""

    def check(url: str) -> str:
        parts = _split(url)
        if parts.scheme not in schemes:
            raise ValueError(f"must start with one of {', '.join(f'{each}://' for each in schemes)}")
        if parts.scheme in _REDIS and not re.fullmatch(r"(/[0-9]*)?", parts.path):
            raise ValueError("must end in the number of a database, or in none: redis://host:6379/0")
        return url

    return AfterValidator(check)


def _split(url: str) -> SplitResult:
    """Return the parts of an address whose port is a number. It may hold a password and stays out of the message."""
    try:
        parts = urlsplit(url)
        has_port = parts.port != 0
    except ValueError:
        has_port = False
    if not has_port:
        raise ValueError("must be an address such as name://host or name://host:6379, with a number as its port")
    return parts


def address_of_a_site(url: str) -> str:
    """Return the address under which people find a site, without a slash behind it.

    Raises:
        ValueError: it has a path or a name, or is none; the message follows the name of what holds it.
    """
    parts = _split(url)
    rest = parts.path.strip("/") or parts.query or parts.fragment
    if parts.scheme not in ("http", "https") or rest or not _HOST_AND_PORT.fullmatch(parts.netloc):
        raise ValueError("must be an address such as https://prefmh.example, with nothing behind the host and port")
    return f"{parts.scheme}://{parts.netloc}"


def _hosts(form: re.Pattern[str]) -> AfterValidator:
    """Return a check that each text is a host in this form."""

    def check(hosts: tuple[str, ...]) -> tuple[str, ...]:
        for host in hosts:
            if not form.fullmatch(host):
                raise ValueError(f"must hold names of hosts with commas between them, not {host!r}")
        return hosts

    return AfterValidator(check)


def _header(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9-]+", name):
        raise ValueError("must be the name of a header, such as X-Forwarded-Proto")
    return name


def _number(read: Callable[[str], float], is_possible: Callable[[float], bool], wanted: str) -> BeforeValidator:
    """Return what reads a number."""

    def check(given: str) -> float:
        try:
            number = read(given)
        except ValueError:
            number = math.nan
        if not is_possible(number):
            raise ValueError(f"must be {wanted}, not {given!r}")
        return number

    return BeforeValidator(check)


def _names(given: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in given.split(",") if part.strip())


def _networks(given: str) -> tuple[Any, ...]:
    try:
        return tuple(ipaddress.ip_network(part, strict=False) for part in _names(given))
    except ValueError as error:
        raise ValueError(f"must hold addresses or networks such as 10.0.0.0/8: {error}") from None


def _by_name(parts: Iterable[str], form: str, *, is_secret: bool = False) -> dict[str, str]:
    """Return what stands behind each name. What is secret stays out of the messages."""
    found: dict[str, str] = {}
    for part in parts:
        name, _, value = (piece.strip() for piece in part.partition("="))
        if not (name and value):
            raise ValueError(f"must look like {form}" + ("" if is_secret else f"; “{part}” does not"))
        if name in found:
            raise ValueError(f"must not name {name!r} twice")
        found[name] = value
    return found


def _keys(given: str) -> dict[str, list[str]]:
    # A key may stand where the name of its variable belongs.
    found = _by_name(_names(given), "NAME=host host, NAME=host", is_secret=True)
    if not all(_HOST_AND_PORT.fullmatch(host) for hosts in found.values() for host in hosts.split()):
        raise ValueError("must hold names of hosts behind each =, as ENDPOINT_ALLOWED_HOSTS has them")
    return {name: hosts.split() for name, hosts in found.items()}


def _rates(given: str) -> dict[str, str]:
    found = _by_name(_names(given), "join=5000/minute, forms=20/10 second")
    for rate, limit in found.items():
        if rate not in RATES:
            raise ValueError(f"has no rate “{rate}”; there are {', '.join(RATES)}")
        try:
            is_rate = not set(";|") & set(limit) and parse(limit).amount > 0
        except ValueError:
            is_rate = False
        if not is_rate:
            raise ValueError(f"must hold rates such as join=5000/minute, not “{limit}”")
    return found


def _folders(given: str) -> dict[str, Path]:
    return {name: Path(folder) for name, folder in _by_name(_names(given), "name=folder,name2=folder2").items()}


def _commands(given: str) -> dict[str, tuple[str, ...]]:
    parts = _COMMANDS.findall(given)
    if given.count(",") != sum(part.count(",") for part in parts) + max(0, len(parts) - 1):
        raise ValueError("has a comma that separates nothing, or a quotation mark that is not closed")
    found = _by_name(parts, "name=command,name2=command2", is_secret=True)
    for name in found:
        if not _SCORER_NAME.fullmatch(name):
            raise ValueError("must name each program by a letter, and at most 39 more letters, digits, - and _")
    try:
        return {name: tuple(shlex.split(command)) for name, command in found.items()}
    except ValueError:
        raise ValueError("has a quotation mark that is not closed") from None


Count = Annotated[int, _number(int, lambda count: count >= 0, "a whole number")]
PoolSize = Annotated[int, _number(int, lambda count: 0 <= count <= 1_000, "a whole number, at most 1000")]
Seconds = Annotated[
    float, _number(float, lambda seconds: 0 < seconds <= 86_400, "a number of seconds above 0, at most a day’s 86400")
]
Amount = Annotated[
    float,
    _number(float, lambda amount: 0 <= amount < math.inf, "an amount of money such as 50 or 12.50, without a currency"),
]
Names = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_names)]
"""Texts with commas between them."""
Networks = Annotated[tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...], NoDecode, BeforeValidator(_networks)]
"""Addresses and networks with commas between them."""
Keys = Annotated[Mapping[str, list[str]], NoDecode, BeforeValidator(_keys)]
"""The hosts of each key: NAME=host host, NAME=host."""
Rates = Annotated[Mapping[str, str], NoDecode, BeforeValidator(_rates)]
"""Rates by name, such as join=5000/minute."""
Folders = Annotated[Mapping[str, Path], NoDecode, BeforeValidator(_folders)]
"""Folders by name: name=folder,name2=folder2."""
Commands = Annotated[Mapping[str, tuple[str, ...]], NoDecode, BeforeValidator(_commands)]
"""Programs by name, each with its arguments: name=command,name2=command2. No shell reads them."""


class Environment(BaseSettings):
    """The variables; one that is absent, empty or blank has its default."""

    model_config = SettingsConfigDict(
        frozen=True, extra="ignore", str_strip_whitespace=True, hide_input_in_errors=True, validate_default=False
    )

    # The servers beside ours. None of them set means embedded.
    database_url: Annotated[str, _require_scheme(("postgresql", "postgres"))] | None = None
    database_pool_size: PoolSize = 0
    redis_url: Annotated[str, _require_scheme(_REDIS)] | None = None
    redis_timeout_seconds: Seconds = 0.5
    celery_broker_url: Annotated[str, _require_scheme(_BROKERS)] | None = None
    # Together with the start of Python, `doctor` tells of a broker that is out in less than two seconds.
    broker_timeout_seconds: Seconds = 0.7
    # Where people find the site, and what that asks of cookies and redirects.
    site_url: Annotated[str, AfterValidator(address_of_a_site)] | None = None
    allowed_hosts: Annotated[Names, _hosts(_HOST)] = ()
    trusted_proxy_tls_header: Annotated[str, AfterValidator(_header)] | None = None
    trusted_proxies: Networks = ()
    hsts_seconds: Count = _MONTH_S
    secret_key: str | None = None
    rate_limits: Rates = {}
    # Where this process keeps its files and what it tells of itself.
    prefmh_data: Path | None = None
    debug: Literal["0", "1"] | None = None
    static_root: str | None = None
    log_format: Literal["json", "line"] | None = None
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] | None = None
    metrics_allow: Networks = ()
    metrics_token: str | None = None
    heartbeat_file: Path | None = None
    # Which models may be used: those of servers, and those that the site runs itself.
    endpoint_allowed_hosts: Annotated[Names, _hosts(_HOST_AND_PORT)] = ()
    endpoint_allow_private: Networks = ()
    endpoint_keys: Keys = {}
    local_models: Folders = {}
    local_image_models: Folders = {}
    local_device: str | None = None
    model_cap_cost: Amount | None = None
    model_cap_requests: Count | None = None
    # Programs that give objects a number.
    scorers: Commands = {}
    scorer_timeout_seconds: Seconds = 60

    @model_validator(mode="before")
    @classmethod
    def _without_blanks(cls, given: Any) -> Any:
        # A compose file passes what is not set as an empty text.
        return {name: value for name, value in given.items() if not (isinstance(value, str) and not value.strip())}

    @property
    def is_embedded(self) -> bool:
        return self.database_url is None

    @property
    def broker_url(self) -> str | None:
        return self.celery_broker_url or self.redis_url

    @property
    def database(self) -> dict[str, Any] | None:
        """Django's dictionary of the PostgreSQL database; None when embedded.

        Raises:
            ImproperlyConfigured: the address names no database.
        """
        return None if self.database_url is None else _postgres(self.database_url, self.database_pool_size)

    @property
    def is_https(self) -> bool:
        return self.site_url is not None and self.site_url.startswith("https:")

    @property
    def hosts(self) -> list[str]:
        """The names this site may be called by."""
        name = urlsplit(self.site_url or "").hostname
        own = [f"[{name}]" if ":" in name else name] if name else []
        return [*_LOOPBACK, *self.allowed_hosts, *own]

    @property
    def hsts(self) -> int:
        """How long browsers shall insist on https, in seconds."""
        return self.hsts_seconds if self.is_https else 0

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        for problem in self._missing():
            raise ValueError(problem)
        return self

    def _missing(self) -> Iterator[str]:
        """Yield each variable that another one asks for, or forbids, with the fix."""
        if self.is_embedded:
            for name in ("redis_url", "celery_broker_url"):
                if getattr(self, name):
                    yield (
                        f"{name.upper()} is set but DATABASE_URL is not: several processes cannot share the embedded "
                        "database. Set DATABASE_URL=postgresql://user:password@host:5432/name, or remove "
                        f"{name.upper()}"
                    )
        elif self.redis_url is None:
            yield (
                "DATABASE_URL is set but REDIS_URL is not: several processes need Redis to update open pages. "
                "Set REDIS_URL=redis://host:6379/0, or remove DATABASE_URL to run embedded"
            )
        if self.is_https and self.trusted_proxy_tls_header is None:
            yield (
                "SITE_URL is https, so a proxy must end TLS. Set TRUSTED_PROXY_TLS_HEADER to the header in which it "
                "says so, usually X-Forwarded-Proto. The proxy must set this header itself, never pass on a visitor's"
            )
        if not self.is_embedded and self.site_url is None:
            yield "SITE_URL must be the address that people use, such as https://prefmh.example"
        if not self.is_embedded and len(self.secret_key or "") < _SHORTEST_KEY:
            yield (
                f"SECRET_KEY must be set to at least {_SHORTEST_KEY} random characters, the same for every process. "
                'Make one: python -c "import secrets; print(secrets.token_urlsafe(50))"'
            )


def read() -> Environment:
    """Return the variables as the environment has them now.

    Raises:
        ImproperlyConfigured: a variable is missing or wrong; the message names it and the fix, never a secret.
    """
    try:
        return Environment()
    except ValidationError as error:
        raise ImproperlyConfigured(" ".join(_sentence(each) for each in error.errors(include_input=False))) from None


def _sentence(problem: Any) -> str:
    name = "_".join(str(part) for part in problem["loc"][:1]).upper()
    if problem["type"] == "literal_error":
        reason = f"must be one of {problem['ctx']['expected']}"
    else:
        reason = problem["msg"].removeprefix("Value error, ")
    return f"{name} {reason}.".lstrip()


def keepalive() -> dict[int, int]:
    """Return the options of a socket that notices within half a minute that its other end has vanished.

    A server that is merely frozen has not: its computer goes on answering for it.
    """
    wanted = {"TCP_KEEPIDLE": 15, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3, "TCP_USER_TIMEOUT": 30_000}
    # Not every system has all of them.
    return {getattr(socket, name): value for name, value in wanted.items() if hasattr(socket, name)}


def _postgres(url: str, pool_size: int) -> dict[str, Any]:
    try:
        # In a pool, the backend looks after that itself.
        parsed = dj_database_url.parse(url, engine=_POSTGRESQL, conn_health_checks=not pool_size)
        database: dict[str, Any] = dict(parsed)
    except ValueError:
        raise ImproperlyConfigured("DATABASE_URL must look like postgresql://user:password@host:5432/name.") from None
    if not database["NAME"]:
        raise ImproperlyConfigured("DATABASE_URL must name a database: postgresql://user:password@host:5432/name.")
    # Voting repeats a few wide statements: prepared, they cost PostgreSQL less than half. Each has one good plan, by
    # indexes; left to itself, PostgreSQL plans some of them anew for each vote once the tables have grown.
    usual = {"server_side_binding": True, "prepare_threshold": 2, "options": "-c plan_cache_mode=force_generic_plan"}
    database["OPTIONS"] = usual | database.get("OPTIONS", {})
    if pool_size:
        # The pool keeps the connections; Django's own keeping would hold one back from it for each thread.
        database["CONN_MAX_AGE"] = 0
        database["OPTIONS"]["pool"] = {"min_size": 1, "max_size": pool_size, "timeout": 10}
    else:
        database["CONN_MAX_AGE"] = None
    return database
