"""How often somebody may do something: in memory embedded, in Redis where several processes share the counting. A few
rates are counted by each process for itself (`settings.environment.PER_PROCESS`).

    limits.spend("votes", voter.pk)     raises TooMany beyond the rate
    limits.spend_each(("votes", 1), ("forms", 2))     several at once
    limits.check_each(("votes", 1), ("forms", 2))     the same, without counting
    @limits.posts("join", limits.by_address)     answers a form post beyond the rate with 429

A rate bounds every window of its length (`limits.strategies.MovingWindowRateLimiter`). `settings/environment.py` holds
them, and `settings.RATE_LIMITS` replaces single ones by name. `settings.TRUSTED_PROXIES` holds the networks of our own
proxies; nobody else's X-Forwarded-For is believed.
"""

from __future__ import annotations

import hashlib
import ipaddress
import logging
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from functools import cache, wraps

from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import render
from limits import RateLimitItem, WindowStats, parse
from limits.errors import StorageError
from limits.storage import RedisStorage
from limits.strategies import MovingWindowRateLimiter

from prefmh_web.settings.environment import PER_PROCESS, RATES
from prefmh_web.transport import shared_redis

logger = logging.getLogger(__name__)

# Providers hand each customer this much of the newer addresses.
_IPV6_PREFIX = 64

Key = str | int | None
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
# The name of a rate, and whom it counts against.
Use = tuple[str, *tuple[Key, ...]]


class TooMany(Exception):  # noqa: N818 - reads as the sentence it starts
    """The rate is exceeded for now.

    Args:
        retry_after: whole seconds after which it is worth trying again.
    """

    def __init__(self, retry_after: int) -> None:
        super().__init__(f"too often; again in {retry_after} s")
        self.retry_after = retry_after


def spend(name: str, *key: Key) -> None:
    """Count one use of a rate by whoever `key` names.

    Raises:
        TooMany: this one is beyond the rate, and is not counted.
    """
    _use("hit", name, key)


def spend_each(*uses: Use) -> None:
    """Count one use of each rate, whatever the others say.

    Raises:
        TooMany: it is beyond one of them, where it is not counted; of several, with the longest wait.
    """
    _use_each("hit", uses)


def check_each(*uses: Use) -> None:
    """Count nothing, but refuse if the next use would be beyond one of the rates.

    Raises:
        TooMany: it would be; of several, with the longest wait.
    """
    _use_each("test", uses)


def posts(name: str, who: Callable[[HttpRequest], Key]) -> Callable:
    """Decorate a view so that its form posts beyond the rate are answered with 429."""

    def decorate(view: Callable[..., HttpResponseBase]) -> Callable[..., HttpResponseBase]:
        @polite
        @wraps(view)
        def counted(request: HttpRequest, *arguments, **keywords) -> HttpResponseBase:
            if request.method == "POST":
                spend(name, who(request))
            return view(request, *arguments, **keywords)

        return counted

    return decorate


def polite(view: Callable[..., HttpResponseBase]) -> Callable[..., HttpResponseBase]:
    """Decorate a view so that a `TooMany` becomes a page with status 429 and Retry-After."""

    @wraps(view)
    def answered(request: HttpRequest, *arguments, **keywords) -> HttpResponseBase:
        try:
            return view(request, *arguments, **keywords)
        except TooMany as reason:
            logger.info(
                "rate limit exceeded: %s %s",
                request.method,
                request.resolver_match and request.resolver_match.view_name,
            )
            answer = render(request, "slow_down.html", {"seconds": reason.retry_after}, status=429)
            answer["Retry-After"] = str(reason.retry_after)
            return answer

    return answered


def by_user(request: HttpRequest) -> Key:
    """Return who is signed in. Those who are not share a rate: the page sends them away anyway."""
    return request.user.pk


def by_address(request: HttpRequest) -> Key:
    """Return the address a request came from; of an IPv6 address, the network one customer has."""
    address = client_address(request)
    number = _number_of(address)
    if number is None or number.version == 4:
        return address
    return str(ipaddress.ip_network((number, _IPV6_PREFIX), strict=False))


def client_address(request: HttpRequest) -> str:
    """Return the last address in the request's path that is not one of our own proxies.

    Each proxy appends to X-Forwarded-For the address it was called from; what stands before the first of ours
    is whatever the visitor wrote.
    """
    address = request.META.get("REMOTE_ADDR") or ""
    forwarded = [part.strip() for part in request.headers.get("X-Forwarded-For", "").split(",") if part.strip()]
    while forwarded and is_in(address, settings.TRUSTED_PROXIES):
        address = forwarded.pop()
    return address


def forget() -> None:
    """Forget every count of this installation: for whoever locked themselves out, and for tests."""
    _own().reset()
    shared = _shared()
    if isinstance(shared, MovingWindowRateLimiter):
        shared.storage.reset()


def is_in(address: str, networks: Iterable[Network]) -> bool:
    """Say whether an address lies in one of some networks."""
    number = _number_of(address)
    return number is not None and any(number in network for network in networks)


def _number_of(address: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(address)
    except ValueError:
        # A server listening on a file socket has no address to tell.
        return None


def _use_each(how: str, uses: tuple[Use, ...]) -> None:
    refusals = []
    for name, *key in uses:
        try:
            _use(how, name, tuple(key))
        except TooMany as refusal:
            refusals.append(refusal)
    if refusals:
        raise max(refusals, key=lambda refusal: refusal.retry_after)


def _use(how: str, name: str, key: tuple[Key, ...]) -> None:
    rate, hashed = _rate(settings.RATE_LIMITS.get(name, RATES[name])), _hashed(key)
    if name not in PER_PROCESS and not shared_redis.is_out():
        try:
            _allow(_shared(), how, rate, name, hashed)
            return
        except StorageError as error:
            shared_redis.note_failure(error.storage_error)
    # Without Redis each process counts for itself: looser, but nobody is kept from voting, nor waits for it.
    _allow(_own(), how, rate, name, hashed)


def _allow(limiter: MovingWindowRateLimiter | OwnWindows, how: str, rate: RateLimitItem, *key: str) -> None:
    if not getattr(limiter, how)(rate, *key):
        wait = limiter.get_window_stats(rate, *key).reset_time - time.time()
        raise TooMany(max(1, math.ceil(wait)))


@cache
def _rate(text: str) -> RateLimitItem:
    return parse(text)


def _hashed(key: tuple[Key, ...]) -> str:
    # Of one length whatever somebody sends, and no address or name lies about in Redis.
    return hashlib.sha256(repr(key).encode(errors="backslashreplace")).hexdigest()[:32]


@cache
def _shared() -> MovingWindowRateLimiter | OwnWindows:
    url = getattr(settings, "REDIS_URL", None)
    if url is None:
        return _own()
    prefix = f"prefmh.{settings.DATABASES['default']['NAME']}.rates"
    storage = RedisStorage(url, wrap_exceptions=True, key_prefix=prefix, **shared_redis.patience())
    return MovingWindowRateLimiter(storage)


@cache
def _own() -> OwnWindows:
    return OwnWindows()


_MIN_TO_SWEEP = 1024


def _still_counting(uses: deque[float], rate: RateLimitItem, now: float) -> deque[float]:
    """Return when a key was used, oldest first, as far as that counts still."""
    while uses and uses[0] <= now - rate.get_expiry():
        uses.popleft()
    return uses


class OwnWindows:
    """Moving windows in memory, with what `rate_limits` asks of `limits.strategies.MovingWindowRateLimiter`.

    A rate bounds the uses of each key in every window of its length.

    `limits.storage.MemoryStorage` does the same, and starts a thread for nearly every use that looks at all keys for
    what has run out: with five hundred people a vote paid for all of them. Here a key's old uses go when it is used
    again, and keys that nobody uses any more go when the number of keys has doubled. So what a use costs depends on no
    other key.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._windows: dict[tuple[RateLimitItem, tuple[str, ...]], deque[float]] = {}
        self._sweep_at = _MIN_TO_SWEEP

    def hit(self, rate: RateLimitItem, *key: str) -> bool:
        """Count one use; False, and not counted, when it is beyond the rate."""
        with self._lock:
            now = time.monotonic()
            uses = self._uses(rate, key, now)
            if len(uses) >= rate.amount:
                return False
            uses.append(now)
            return True

    def test(self, rate: RateLimitItem, *key: str) -> bool:
        """Say whether one more use would be within the rate."""
        with self._lock:
            return len(self._uses(rate, key, time.monotonic())) < rate.amount

    def get_window_stats(self, rate: RateLimitItem, *key: str) -> WindowStats:
        """Return when the oldest use stops counting, in seconds of `time.time`, and how many uses are left."""
        with self._lock:
            now = time.monotonic()
            uses = self._uses(rate, key, now)
            wait = uses[0] + rate.get_expiry() - now if uses else 0.0
            return WindowStats(time.time() + wait, rate.amount - len(uses))

    def reset(self) -> None:
        """Forget every use."""
        with self._lock:
            self._windows.clear()

    def _uses(self, rate: RateLimitItem, key: tuple[str, ...], now: float) -> deque[float]:
        if (rate, key) not in self._windows:
            self._sweep(now)
            self._windows[rate, key] = deque()
        return _still_counting(self._windows[rate, key], rate, now)

    def _sweep(self, now: float) -> None:
        if len(self._windows) >= self._sweep_at:
            windows = self._windows.items()
            self._windows = {key: uses for key, uses in windows if _still_counting(uses, key[0], now)}
            self._sweep_at = max(_MIN_TO_SWEEP, 2 * len(self._windows))
