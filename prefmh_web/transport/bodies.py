"""What is sent and answered, bounded: request bodies while they arrive, downloads piece by piece while people vote.

Django looks at an upload's size, and at who sends it, only once it is all there.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncGenerator, Callable, Generator, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from tempfile import SpooledTemporaryFile
from typing import Any
from weakref import WeakKeyDictionary

from django.conf import settings
from django.core.exceptions import RequestAborted
from django.core.handlers.asgi import ASGIHandler
from django.db import close_old_connections, connection, connections
from django.http import HttpResponse, StreamingHttpResponse, parse_cookie
from django.utils.module_loading import import_string

from prefmh_web import hooks
from prefmh_web.transport import refusals, sockets

logger = logging.getLogger(__name__)

DEFAULT_BYTES = 2**20
# Room for the largest catalog file and the form, or the setup, around it; for people who are signed in.
SETUP_BYTES = 513 * 2**20
# For the next piece of a body or of an answer, however small.
PIECE_WITHIN_S = 60
# For a whole body, and a second more for each so many bytes of it that are there: a byte now and then holds no request.
GRACE_S = 60
MIN_BYTES_PER_S = 8 * 2**10
# Downloads of a process that are drawn at once: each holds a connection of the pool for as long as its reader takes.
_DOWNLOADS_AT_ONCE = 3
_TOO_LARGE = "The request is too large.", 413
_TOO_SLOW = "The request was not received completely in time.", 408
_SETUP = re.compile(r"^/campaigns/(new|new/list|import|\d+/setup)/$")


class BoundedHandler(ASGIHandler):
    """Answers 413 to a body larger than its path may have, and 408 to one that has stopped to come or comes too slowly.
    Cuts off an answer whose reader has stopped to take it.

    Closes what has arrived however a request ends. Django itself leaves it to the garbage collector when a request is
    cancelled, as a server does that stops.
    """

    async def handle(self, scope, receive, send):
        headers = dict(scope["headers"])
        stated, limit = headers.get(b"content-length", b"0"), await _limit(scope, headers)
        # In the folder of uploads: a container's /tmp is memory.
        memory, folder = settings.FILE_UPLOAD_MAX_MEMORY_SIZE, settings.FILE_UPLOAD_TEMP_DIR
        with SpooledTemporaryFile(memory, dir=str(folder)) as file:
            try:
                if not stated.isdigit() or int(stated) > limit:
                    raise _Refused(*_TOO_LARGE)
                await super().handle(scope, _Body(receive, limit, file), send)
            except RequestAborted:
                logger.warning("an answer was cut off: its reader took nothing for %d s", PIECE_WITHIN_S)
            except _Refused as refused:
                await self.send_response(_closing(refusals.refusal(scope["path"], *refused.args)), send)
            except OSError as error:
                if not refusals.is_no_room(error):
                    raise
                logger.exception("no room for a request")
                await self.send_response(_closing(refusals.no_room(scope["path"])), send)

    async def read_body(self, receive):
        return await receive.read()

    async def send_response(self, response, send):
        async def in_time(message: Mapping[str, Any]) -> None:
            try:
                async with asyncio.timeout(PIECE_WITHIN_S):
                    await send(message)
            except TimeoutError as error:
                raise RequestAborted from error

        try:
            await super().send_response(response, in_time)
        finally:
            if isinstance(response, _Download):
                await response.pieces.aclose()

    def create_request(self, scope, body_file):
        try:
            return super().create_request(scope, body_file)
        except refusals.UNREADABLE:
            logger.warning("a request cannot be read", exc_info=True)
            return None, refusals.refusal(scope["path"], "The headers of this request cannot be read.", 400)


class _Refused(Exception):  # noqa: N818 - reads as the sentence it starts
    """A body is not read to its end. Its arguments are the reason and the status of the answer."""


class _Body:
    """Where the messages of one request come from, and the file that keeps its body."""

    def __init__(self, receive, limit: int, file: SpooledTemporaryFile) -> None:
        self._receive, self._limit, self._file = receive, limit, file

    async def __call__(self) -> dict:
        return await self._receive()

    async def read(self) -> SpooledTemporaryFile:
        """Return the whole body, at its beginning.

        Raises:
            RequestAborted: the client has gone.
            _Refused: it is beyond the limit, and what comes after that is not read; or its next piece does not come
                in time.
        """
        more, size, begun = True, 0, asyncio.get_running_loop().time()
        while more:
            message = await self._next(begun + GRACE_S + size / MIN_BYTES_PER_S)
            if message["type"] == "http.disconnect":
                raise RequestAborted
            size += len(message.get("body", b""))
            if size > self._limit:
                raise _Refused(*_TOO_LARGE)
            self._file.write(message.get("body", b""))
            more = message.get("more_body", False)
        self._file.seek(0)
        return self._file

    async def _next(self, deadline: float) -> dict:
        try:
            async with asyncio.timeout_at(deadline), asyncio.timeout(PIECE_WITHIN_S):
                return await self._receive()
        except TimeoutError as error:
            raise _Refused(*_TOO_SLOW) from error


async def _limit(scope, headers: dict[bytes, bytes]) -> int:
    if scope["method"] not in ("POST", "PUT"):
        return DEFAULT_BYTES
    for pattern, may_send in hooks.LARGE_BODIES.items():
        if re.match(pattern, scope["path"]):
            return SETUP_BYTES if await import_string(may_send)(headers) else DEFAULT_BYTES
    if not _SETUP.match(scope["path"]):
        return DEFAULT_BYTES
    cookies = parse_cookie(headers.get(b"cookie", b"").decode("latin1"))
    user = await sockets.user_now(cookies.get(settings.SESSION_COOKIE_NAME))
    return SETUP_BYTES if user.is_authenticated else DEFAULT_BYTES


def _closing(answer: HttpResponse) -> HttpResponse:
    answer["Connection"] = "close"
    return answer


class _Download(StreamingHttpResponse):
    """A download with its pieces, which are closed when no more of them is sent: Django leaves that to the garbage
    collector.
    """

    def __init__(self, pieces: AsyncGenerator[str | bytes], content_type: str) -> None:
        super().__init__(pieces, content_type=content_type)
        self.pieces = pieces


def stream(make: Callable[[], Iterator[str | bytes]], content_type: str) -> StreamingHttpResponse:
    """Return a download of what `make()` yields, drawn out of the way of people who vote."""
    # The request lasts as long as its download does, and its own connection would be held as long.
    if not connection.in_atomic_block:
        close_old_connections()
    return _Download(_in_own_thread(make), content_type)


_turns: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()


async def _in_own_thread(make: Callable[[], Iterator[str | bytes]]) -> AsyncGenerator[str | bytes]:
    """Yield what `make()` yields, drawn on a thread and a database connection of its own.

    On the connection that all votes of this process share, a cursor left open between two chunks would hold an
    old snapshot, and the next vote could not write over it.
    """
    loop, chunks = asyncio.get_running_loop(), _drawn(make)
    async with _turns.setdefault(loop, asyncio.Semaphore(_DOWNLOADS_AT_ONCE)):
        with ThreadPoolExecutor(max_workers=1, thread_name_prefix="export") as thread:
            try:
                while (chunk := await loop.run_in_executor(thread, next, chunks, None)) is not None:
                    yield chunk
            finally:
                await loop.run_in_executor(thread, chunks.close)


def _drawn(make: Callable[[], Iterator[str | bytes]]) -> Generator[str | bytes, None, None]:
    """Yield what `make()` yields. Its cursors are closed before the connection goes to somebody else."""
    try:
        yield from make()
    finally:
        connections.close_all()
