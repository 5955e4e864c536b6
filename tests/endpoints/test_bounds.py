"""What a request may take of this machine, whatever the server does: time, memory, and what is kept of the reply."""

import gzip
import json
import socket
import threading
import tracemalloc
import zlib
from collections.abc import Callable

import pytest

from prefmh_web.endpoints.errors import BadReply, EndpointError, ServerError, TimedOut, Unreachable
from tests.endpoints.conftest import chat
from tests.support.models import Script, chat_reply, dripping, raw, reply, send, slow, trickling, wire

# A request is given up after TIMEOUT_S; one that is still under way after PATIENCE_S has no end.
TIMEOUT_S, PATIENCE_S = 0.8, 20.0
MOST_MEMORY = 64 * 2**20


def asked(script: Script, timeout_s: float = TIMEOUT_S) -> EndpointError | str | None:
    """Return what a request comes to, its error included."""
    try:
        return chat(script.url, timeout_s=timeout_s)
    except EndpointError as error:
        return error


def in_time(request: Callable[[], object]) -> object:
    """Return what a request comes to; fail if it does not end."""
    found: list[object] = []
    thread = threading.Thread(target=lambda: found.append(request()), daemon=True)
    thread.start()
    thread.join(PATIENCE_S)
    assert not thread.is_alive(), f"a request with a limit of {TIMEOUT_S:g} s still waits after {PATIENCE_S:g} s"
    return found[0]


HEAD = b"HTTP/1.1 200 OK\r\n"


@pytest.mark.parametrize(
    "fault",
    [
        trickling(HEAD + b"X-Filler: a\r\n"),
        trickling(b"HTTP/1.1 100 Continue\r\n\r\n"),
        trickling(HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + b"1\r\na\r\n" * 100_000),
        trickling(HEAD + b"Transfer-Encoding: chunked\r\n\r\n1;" + b"x" * 100_000),
        trickling(HEAD + b"Content-Length: 100000\r\n\r\n" + b" " * 100_000),
        dripping,
        slow,
    ],
    ids=["header", "interim replies", "chunks", "a chunk's head", "body", "drip", "silence"],
)
def test_a_reply_that_never_ends_is_given_up(local_allowed, script: Script, fault) -> None:
    script.faults.append(fault)
    assert type(in_time(lambda: asked(script))) is TimedOut


def test_a_name_that_is_looked_up_for_ever_is_given_up(settings, monkeypatch) -> None:
    settings.ENDPOINT_ALLOWED_HOSTS = ["models.example.org"]
    over = threading.Event()

    def look_up(*_: object, **__: object) -> list:
        over.wait()
        return []

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    try:
        error = in_time(lambda: asked(Script("http://models.example.org/v1", dict)))
    finally:
        over.set()
    assert type(error) is TimedOut


def bomb(pack: Callable[[bytes], bytes], encoding: str, code: int = 200) -> Callable:
    """Answer with a reply that unpacks to 256 MiB."""
    packed = pack(b" " * 256 * 2**20)
    return lambda handler: send(handler, code, packed, {"Content-Encoding": encoding})


BOMBS = {
    "gzip": (lambda: bomb(gzip.compress, "gzip"), BadReply),
    "deflate": (lambda: bomb(zlib.compress, "deflate"), BadReply),
    "gzip twice": (lambda: bomb(lambda data: gzip.compress(gzip.compress(data)), "gzip, gzip"), BadReply),
    "with an error": (lambda: bomb(gzip.compress, "gzip", 500), ServerError),
    "deflate within gzip": (lambda: bomb(lambda data: gzip.compress(zlib.compress(data)), "deflate, gzip"), BadReply),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_few_bytes_do_not_unpack_to_gigabytes(local_allowed, script: Script, name: str) -> None:
    make, kind = BOMBS[name]
    script.faults.append(make())
    tracemalloc.start()
    try:
        error = asked(script, timeout_s=60)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < MOST_MEMORY, f"the reply took {peak / 2**20:.0f} MiB of memory"
    assert type(error) is kind


def bare(data: bytes) -> bytes:
    """Return deflate without any header, as some servers send it."""
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


PACKED = [("gzip", gzip.compress), ("GZip", gzip.compress), ("deflate", zlib.compress), ("deflate", bare)]
UNREADABLE = [
    ("gzip, gzip", lambda data: gzip.compress(gzip.compress(data)), "not a JSON object"),
    ("br", lambda data: data, ""),
    ("gzip", lambda data: data, "not compressed as it says"),
    ("gzip", lambda data: gzip.compress(data)[:-10], "not a JSON object"),
    ("deflate", lambda data: b"\x78\x9c" + data, "not compressed as it says"),
]


@pytest.mark.parametrize(("encoding", "pack"), PACKED)
def test_a_reply_packed_once_is_read_though_not_asked_for(local_allowed, script: Script, encoding, pack) -> None:
    content = pack(json.dumps(chat_reply("A")).encode())
    script.faults.append(lambda handler: send(handler, 200, content, {"Content-Encoding": encoding}))
    assert asked(script) == "A"
    assert script.headers[0]["Accept-Encoding"] == "identity"


@pytest.mark.parametrize(("encoding", "pack", "words"), UNREADABLE)
def test_a_reply_packed_otherwise_is_an_error(local_allowed, script: Script, encoding, pack, words) -> None:
    content = pack(json.dumps(chat_reply("A")).encode())
    script.faults.append(lambda handler: send(handler, 200, content, {"Content-Encoding": encoding}))
    error = asked(script)
    assert type(error) is BadReply
    assert words in error.reason


@pytest.mark.parametrize(
    "header",
    [b"X-A: b\r\n" * 1000, b"X-A: " + b"b" * 80_000 + b"\r\n", b"Set-Cookie: a=b; expires=" + b" 1" * 40_000 + b"\r\n"],
    ids=["many lines", "a long line", "a long cookie"],
)
def test_a_header_without_measure_is_refused(local_allowed, script: Script, header: bytes) -> None:
    body = json.dumps(chat_reply("A")).encode()
    script.faults.append(wire(HEAD + header + b"Content-Length: %d\r\n\r\n" % len(body) + body))
    error = in_time(lambda: asked(script))
    assert type(error) is BadReply
    assert "header" in error.reason


def test_no_cookie_is_kept(local_allowed, script: Script) -> None:
    def with_cookie(handler) -> None:
        send(handler, 200, json.dumps(chat_reply("A")).encode(), {"Set-Cookie": "tracked=yes"})

    script.faults.append(with_cookie)
    for _ in range(2):
        asked(script)
    assert "Cookie" not in script.headers[1]


@pytest.mark.parametrize("location", ["http://[", "http://\x80/", "//" + "a" * 10_000, "ftp://127.0.0.1", "\u0130", ""])
def test_a_redirect_to_nowhere_is_not_followed(local_allowed, script: Script, location: str) -> None:
    head = f"HTTP/1.1 302 Found\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n".encode()
    script.faults.append(wire(head))
    error = asked(script)
    assert isinstance(error, EndpointError)
    assert "redirect" in error.reason


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"", Unreachable),
        (b"HTTP/1.1 200 OK\r\nContent-Le", Unreachable),
        (b"SSH-2.0-OpenSSH_9.2\r\n", BadReply),
        (b"\x15\x03\x01\x00\x02\x02\x46", BadReply),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 3, 4\r\n\r\nabc", BadReply),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nabc", BadReply),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", BadReply),
        (b"HTTP/1.1 101 Switching Protocols\r\n\r\n", EndpointError),
        (b"\0" * 1000, EndpointError),
    ],
)
def test_what_is_not_http_is_an_error(local_allowed, script: Script, content: bytes, kind: type) -> None:
    script.faults.append(wire(content))
    error = in_time(lambda: asked(script))
    assert isinstance(error, kind), error


def test_a_reply_of_eight_mebibytes_in_tiny_chunks_is_bounded_on_its_way(local_allowed, script: Script) -> None:
    chunks = b"1\r\n \r\n" * (3 * 2**20)
    script.faults.append(wire(HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + chunks))
    assert isinstance(in_time(lambda: asked(script)), BadReply | TimedOut)


def test_a_good_reply_is_still_read(local_allowed, script: Script) -> None:
    script.faults.extend([raw(json.dumps(chat_reply("A")).encode()), lambda handler: reply(handler, chat_reply("B"))])
    assert [asked(script), asked(script)] == ["A", "B"]
