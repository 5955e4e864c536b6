"""Request bodies are bounded while they arrive, and closed however a request ends; downloads wait for no reader."""

import asyncio
import contextlib
import gc
import selectors
import socket
import warnings
from urllib.parse import urlsplit

import pytest
from django.core.exceptions import RequestAborted

from prefmh_web.asgi import application
from prefmh_web.transport import bodies


def post(site_url: str, headers: str, body: bytes) -> bytes:
    parts = urlsplit(site_url)
    with socket.create_connection((parts.hostname, parts.port), timeout=10) as connection:
        connection.sendall(f"POST /no-such-page/ HTTP/1.1\r\nHost: {parts.netloc}\r\n{headers}\r\n\r\n".encode())
        with contextlib.suppress(ConnectionError):
            connection.sendall(body)
        return connection.recv(1000)


def chunked(size: int, chunk: int = 2**16) -> bytes:
    return b"".join(b"%x\r\n%s\r\n" % (chunk, b"x" * chunk) for _ in range(size // chunk)) + b"0\r\n\r\n"


def test_a_stated_length_beyond_the_bound_is_refused_at_once(live_site):
    assert b"413" in post(live_site.url, "Content-Length: 3000000000", b"").splitlines()[0]


def test_a_body_that_grows_beyond_the_bound_is_refused(live_site):
    assert b"413" in post(live_site.url, "Transfer-Encoding: chunked", chunked(3 * 2**20)).splitlines()[0]


@pytest.mark.parametrize("size", [0, 2**16])
def test_an_ordinary_body_reaches_the_application(live_site, size):
    assert b"404" in post(live_site.url, f"Content-Length: {size}", b"x" * size).splitlines()[0]


def test_a_body_that_stops_to_come_is_waited_for_no_longer(live_site, monkeypatch):
    monkeypatch.setattr("prefmh_web.transport.bodies.PIECE_WITHIN_S", 0.2)
    assert b"408" in post(live_site.url, "Content-Length: 1000", b"x" * 10).splitlines()[0]


HEADERS = [(b"host", b"localhost"), (b"content-type", b"multipart/form-data; boundary=x")]
SCOPE = {
    "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "POST", "path": "/no-such-page/",
    "raw_path": b"/no-such-page/", "query_string": b"", "root_path": "", "scheme": "http", "headers": HEADERS,
    "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 80),
}  # fmt: skip
PIECE = {"type": "http.request", "body": b"x" * 2**18, "more_body": True}
GONE = {"type": "http.disconnect"}


async def call(messages: list[dict], cancel: bool = False, gap_s: float = 0) -> list[int]:
    """Return the statuses sent for a request whose messages these are, each `gap_s` seconds after the one before.

    With `cancel`, end it as a stopping server.
    """
    waiting, sent, read = list(messages), [], asyncio.Event()

    async def receive() -> dict:
        if waiting:
            await asyncio.sleep(gap_s)
            return waiting.pop(0)
        read.set()
        return await asyncio.Event().wait()

    async def send(message: dict) -> None:
        sent.append(message)

    task = asyncio.create_task(application(SCOPE, receive, send))
    if cancel:
        await read.wait()
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
    else:
        await task
    return [message["status"] for message in sent if "status" in message]


class _Leap(selectors.DefaultSelector):
    """Polls; where it would wait for a timer, that time counts as gone."""

    gone = 0.0

    def select(self, timeout: float | None = None):
        ready = super().select(timeout and 0)
        if timeout and not ready:
            self.gone += timeout
        return ready


class _LeapingLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock leaps to the next timer: minutes pass at once."""

    def __init__(self) -> None:
        self._leap = _Leap()
        super().__init__(self._leap)

    def time(self) -> float:
        return super().time() + self._leap.gone


def body_of(pieces: list[int]) -> list[dict]:
    last = len(pieces) - 1
    return [{"type": "http.request", "body": b"x" * size, "more_body": n < last} for n, size in enumerate(pieces)]


@pytest.mark.parametrize(
    ("gap_s", "pieces", "status"),
    [
        (59, [1] * 100, 408),
        (1, [4 * 2**10] * 200, 408),
        (61, [2**19] * 2, 408),
        # 512 KiB buy 64 s beyond the first minute.
        (50, [2**19, 0, 0, 0], 408),
        (1, [10 * 2**10] * 100, 404),
        (1, [1] * 50, 404),
        (55, [2**19, 2**10], 404),
    ],
    ids=[
        "a byte every 59 s", "half the lowest rate", "a gap of 61 s", "a credit that runs out", "above the lowest rate",
        "a small body within the minute", "a long pause",
    ],
)  # fmt: skip
def test_a_body_that_comes_too_slowly_on_average_is_waited_for_no_longer(db, gap_s, pieces, status):
    with asyncio.Runner(loop_factory=_LeapingLoop) as runner:
        assert runner.run(call(body_of(pieces), gap_s=gap_s)) == [status]


@pytest.mark.parametrize(
    ("messages", "cancel", "statuses"),
    [
        ([PIECE] * 5, False, [413]),
        ([PIECE, GONE], False, []),
        ([PIECE], True, []),
        ([PIECE, PIECE | {"more_body": False}], True, []),
    ],
    ids=["too large", "the client goes midway", "the server stops midway", "the server stops before it answers"],
)
def test_what_has_arrived_is_closed(db, messages, cancel, statuses):
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        assert asyncio.run(call(messages, cancel)) == statuses
        gc.collect()
    assert [str(warning.message) for warning in told if "Unclosed file" in str(warning.message)] == []


def test_whoever_stops_to_read_downloads_is_cut_off_and_others_get_their_turn(db, monkeypatch):
    monkeypatch.setattr(bodies, "PIECE_WITHIN_S", 0.2)

    async def read(is_reading: bool) -> bytes:
        got = b""

        async def send(message: dict) -> None:
            nonlocal got
            got += message.get("body", b"")
            if got and not is_reading:
                await asyncio.Event().wait()

        await bodies.BoundedHandler().send_response(bodies.stream(lambda: iter([b"a", b"b"]), "text/plain"), send)
        return got

    async def read_all() -> list:
        async with asyncio.timeout(20):
            return await asyncio.gather(*map(read, [False] * 10 + [True]), return_exceptions=True)

    *stuck, whole = asyncio.run(read_all())
    assert all(isinstance(each, RequestAborted) for each in stuck)
    assert whole == b"ab"
