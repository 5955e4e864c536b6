"""What the application's sockets share: background work that never dies unseen, their sessions, and notifications.

A socket may be opened only by a page of this very site: same host, same port. An open socket holds the session that it
was opened with, which may have ended since; so who is signed in is asked again.

A notification says "look again", never what there is to see: losing one loses nothing. Pages join their group first and
then read the database, so nothing falls between the two. A busy campaign stores a hundred votes a second and each of
them notifies. From one process a group hears the first at once, and those of the next moment together: what pages do in
answer grows with time then, and not with votes.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import math
import threading
import time
from collections.abc import Callable, Collection, Coroutine
from concurrent.futures import Future, wait
from contextlib import suppress
from functools import cache
from importlib import import_module
from typing import Any

from asgiref.typing import ASGI3Application
from channels.auth import get_user
from channels.consumer import get_handler_name
from channels.generic.websocket import AsyncWebsocketConsumer
from channels.layers import BaseChannelLayer, get_channel_layer
from channels.security.websocket import OriginValidator, WebsocketDenier
from django.conf import settings
from django.contrib.auth.models import AnonymousUser, User
from django.contrib.sessions.backends.base import SessionBase
from django.core.exceptions import ImproperlyConfigured
from django.db import transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import F, Lookup
from django.db.models.sql.compiler import SQLCompiler
from django.http.request import split_domain_port, validate_host
from django.utils import timezone

logger = logging.getLogger(__name__)

NOT_ALLOWED = 4401
BAD_MESSAGE = 4400
TRY_AGAIN = 1011


async def set_within(event: asyncio.Event, seconds: float | None) -> None:
    """Wait until an event is set, at most so long; without a number, as long as it takes."""
    # Not `wait_for`: in Python 3.11 a task that is cancelled in the moment of the event goes on.
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()


class LiveConsumer(AsyncWebsocketConsumer):
    """A socket with groups and background tasks, all of which end with it.

    When a background task fails, the failure is logged and the socket closed with a code on which pages reconnect:
    a page that has silently stopped following is worse than one that starts again.
    """

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._joined: set[str] = set()
        self._background: set[asyncio.Task] = set()

    async def join(self, *groups: str) -> None:
        """Receive the notifications of these groups."""
        for group in groups:
            await self.channel_layer.group_add(group, self.channel_name)
            self._joined.add(group)

    async def part(self, group: str) -> None:
        """Receive the notifications of a group no more."""
        self._joined.discard(group)
        await self.channel_layer.group_discard(group, self.channel_name)

    async def __call__(self, scope, receive, send):
        async def send_while_there(message):
            # An OSError is what ASGI servers raise on sending to a page that has gone. Its goodbye comes next.
            with suppress(OSError):
                await send(message)

        try:
            return await super().__call__(scope, receive, send_while_there)
        finally:
            # Channels says goodbye to a page that goes, and not to one whose message could not be handled.
            await self.leave()

    async def dispatch(self, message):
        # Channels' own visits the database thread for every message, notifications included, to close old connections;
        # `database_sync_to_async` does that wherever the database is asked.
        await getattr(self, get_handler_name(message))(message)

    def in_background(self, work: Coroutine) -> asyncio.Task:
        """Run `work` until it ends, is cancelled, or the socket ends."""
        task = asyncio.create_task(work)
        task.add_done_callback(self._on_end)
        self._background.add(task)
        return task

    async def leave(self) -> None:
        """Leave all groups and stop all background work."""
        background = list(self._background)
        for task in background:
            task.cancel()
        await asyncio.gather(*background, return_exceptions=True)
        for group in set(self._joined):
            await self.part(group)

    def _on_end(self, task: asyncio.Task) -> None:
        # A page may wait, and be served, a thousand times.
        self._background.discard(task)
        error = None if task.cancelled() else task.exception()
        if error:
            logger.error("background work of an open page failed; the page will reconnect", exc_info=error)
            self._closing = asyncio.ensure_future(self.close(TRY_AGAIN))


class SameOriginValidator(OriginValidator):
    """Refuses a socket whose Origin is not the Host it was opened to, or whose Host is not ours.

    Django's CSRF check does not see sockets, and channels' own AllowedHostsOriginValidator takes any port of an
    allowed host for the same site.
    """

    application: ASGI3Application

    async def __call__(self, scope, receive, send):
        headers = dict(scope["headers"])
        host = headers.get(b"host", b"").decode("latin1").lower()
        origin = headers.get(b"origin", b"").decode("latin1").lower()
        domain, _ = split_domain_port(host)
        is_ours = validate_host(domain, settings.ALLOWED_HOSTS)
        if is_ours and origin in (f"http://{host}", f"https://{host}"):
            return await self.application(scope, receive, send)
        return await WebsocketDenier()(scope, receive, send)


# A condition of queries that are made all the time: that a field has one of some values.


def among(field: str, values: Collection[int] | Collection[str]) -> Among:
    """Return the condition that a field of the model has one of these values."""
    return Among(F(field), list(values))


class Among(Lookup):
    """`in`, with all values as one parameter.

    `IN` with its values is another statement for each number of them, and for each mixture of their sizes. What asks so
    all the time fills what a connection keeps prepared, and the memory of PostgreSQL's process, with statements that
    hardly ever come again.
    """

    lookup_name = "among"
    prepare_rhs = False

    def as_sql(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper) -> tuple[str, tuple[Any, ...]]:
        """Return the condition as PostgreSQL or SQLite has it, with its parameters."""
        sql, parameters = self.process_lhs(compiler, connection)
        if connection.vendor == "postgresql":
            return f"{sql} = ANY(%s)", (*parameters, self.rhs)
        return f"{sql} IN (SELECT value FROM json_each(%s))", (*parameters, json.dumps(self.rhs))  # noqa: S608 - its column


_AT_ONCE = 500


def stored(key: str | None) -> SessionBase:
    """Return a session as stored; an empty one where it has ended or never was."""
    store: SessionBase = import_module(settings.SESSION_ENGINE).SessionStore(key)
    return store


def contents(keys: Collection[str | None]) -> dict[str | None, dict[str, Any]]:
    """Return what stands in these sessions now, read together; nothing of one that has ended or never was."""
    model = import_module(settings.SESSION_ENGINE).SessionStore.get_model_class()
    wanted = among("session_key", [key for key in keys if key])
    alive = model.objects.filter(wanted, expire_date__gt=timezone.now())
    return {session.session_key: session.get_decoded() for session in alive}


def take_out(entry: str, values: Collection[object]) -> int:
    """Take an entry out of every stored session in which it has one of these values; return how many these were. A
    session in which nothing else stands has ended.
    """
    store = import_module(settings.SESSION_ENGINE).SessionStore
    found = {}
    # All are looked through: what a session holds is signed, and no index knows it.
    for session in store.get_model_class().objects.iterator(chunk_size=_AT_ONCE):
        holds = session.get_decoded()
        if entry in holds and holds[entry] in values:
            found[session.session_key] = {name: value for name, value in holds.items() if name != entry}
    for key, rest in found.items():
        row = store.get_model_class().objects.filter(session_key=key)
        row.update(session_data=store().encode(rest)) if rest else row.delete()
    return len(found)


async def user_now(key: str | None) -> User | AnonymousUser:
    """Return who is signed in by a session now; nobody after signing out, deactivation or a changed password."""
    user = await get_user({"session": stored(key)})  # type: ignore[typeddict-item]  # all of a scope that it reads
    return user if isinstance(user, User) else AnonymousUser()


_TOGETHER_S = 0.05
# Boards are drawn once a second at most.
_WATCHERS_TOGETHER_S = 0.5
# Groups notified a moment ago, and whether they are to be notified again at its end.
_quiet: dict[str, bool] = {}
_of_quiet = threading.Lock()
_under_way: set[Future[None]] = set()


def voters(campaign_id: int) -> str:
    """The group of pages that may be waiting for a pair."""
    return f"voters.{campaign_id}"


def voter(voter_id: int) -> str:
    """The group of one voter's open pages."""
    return f"voter.{voter_id}"


def watchers(campaign_id: int) -> str:
    """The group of researchers' pages that watch a campaign."""
    return f"watchers.{campaign_id}"


def download(token: str) -> str:
    """The group of the page that has asked for a download, by the token that it has drawn for it."""
    # The name of a group has few characters, and an address may hold any.
    return f"download.{hashlib.sha256(token.encode()).hexdigest()}"


def session(key: str) -> str:
    """The group of the pages of one signed-in session; a notification tells them that it has signed out."""
    return f"session.{key}"


def tell_share(token: str) -> Callable[[float], None]:
    """Return what tells the page of a download which share is written, once a second at most; but 1 at once.

    Unlike a notification this says what there is to see, for nothing else knows it. Losing it loses nothing.
    """
    told_at = -math.inf

    def tell(share: float) -> None:
        nonlocal told_at
        if share < 1 and time.monotonic() < told_at + 1:
            return
        told_at = time.monotonic()
        message = {"type": "download.share", "share": share}
        _in_its_thread(_layer().group_send(download(token), message))

    return tell


def notify(*groups: str) -> None:
    """Notify the pages of these groups once the current transaction has committed, if it does."""

    # A function of its own: when a robust hook fails, Django logs its __qualname__, which a partial lacks.
    def send() -> None:
        # Most notifications of a busy campaign join one that is on its way, and wake no other thread.
        if due := [group for group in groups if not _joins_another(group)]:
            _in_its_thread(_send(due))

    # robust: a vote that is stored must not fail because a page could not be told.
    transaction.on_commit(send, robust=True)


def _joins_another(group: str) -> bool:
    """True if a group was notified a moment ago: it is notified again at the end of that moment."""
    with _of_quiet:
        is_quiet = group in _quiet
        _quiet[group] = is_quiet
        return is_quiet


async def _send(groups: Collection[str]) -> None:
    # First of all, so that none stays quiet when one cannot be told.
    for group in groups:
        together_s = _WATCHERS_TOGETHER_S if group.startswith("watchers.") else _TOGETHER_S
        asyncio.get_running_loop().call_later(together_s, _end_quiet, group)
    for group in groups:
        await _layer().group_send(group, {"type": "refresh", "group": group})


def _layer() -> BaseChannelLayer:
    layer = get_channel_layer()
    if layer is None:
        raise ImproperlyConfigured("CHANNEL_LAYERS must name a layer as default.")
    return layer


def _end_quiet(group: str) -> None:
    with _of_quiet:
        is_due = _quiet[group]
        if is_due:
            _quiet[group] = False
        else:
            del _quiet[group]
    if is_due:
        _in_its_thread(_send((group,)))


def _in_its_thread(sending: Coroutine[Any, Any, None]) -> None:
    under_way = asyncio.run_coroutine_threadsafe(sending, _loop())
    _under_way.add(under_way)
    under_way.add_done_callback(_on_sent)


def wait_until_sent(timeout: float) -> None:
    """Wait for the notifications that are on their way, at most so many seconds: they go with a process that ends."""
    wait(tuple(_under_way), timeout)


def _on_sent(sending: Future[None]) -> None:
    _under_way.discard(sending)
    if error := sending.exception():
        logger.error("could not notify open pages; they update with the next notification", exc_info=error)


@cache
def _loop() -> asyncio.AbstractEventLoop:
    """Return the loop that sends notifications, on a thread of its own: no voter waits for a page to be told."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="notifications", daemon=True).start()
    return loop
