"""Request bodies are bounded while they arrive."""

import contextlib
import socket
from urllib.parse import urlsplit

import pytest


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
