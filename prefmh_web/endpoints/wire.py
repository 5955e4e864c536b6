"""One exchange with a server over HTTP: bounded in time, size and memory, its faults in words."""

from __future__ import annotations

import asyncio
import atexit
import json
import ssl
import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import aiohttp
from yarl import URL

from prefmh_web.endpoints import unpacking
from prefmh_web.endpoints.addresses import CheckedConnector
from prefmh_web.endpoints.errors import BadReply, EndpointError, TimedOut, Unreachable

LONGEST_REPLY = 8 * 2**20
# Of a header line, and of what is handed on at a time.
_LONGEST_LINE, _PIECE = 16 * 2**10, 64 * 2**10
# OpenSSL's numbers of what is wrong with a certificate (X509_verify_cert_error_string).
_OF_CERTIFICATES = {
    9: "its certificate is not valid yet; look at the clocks of both machines",
    10: "its certificate has expired; renew it on the server",
    18: "its certificate is signed by itself, so anybody could have made it; give the server one of a known authority",
    19: "its certificate comes from an authority that is not known here; give the server one of a known authority",
    20: "its certificate comes from an authority that is not known here; give the server one of a known authority",
    21: "its certificate comes without those that vouch for it; let the server send the whole chain",
    23: "its certificate was revoked; renew it on the server",
}
_OF_ANOTHER_NAME = (62, 64)
# OpenSSL's words for an answer that is no TLS.
_PLAIN = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "UNKNOWN_PROTOCOL", "RECORD_LAYER_FAILURE")
# What begins whatever a TLS server sends, an alert or a part of the handshake, as aiohttp writes it.
_TLS_BYTES = (r"\x15\x03", r"\x16\x03")
_TO_CLOSE_S = 1.0
_sessions: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, aiohttp.ClientSession] = weakref.WeakKeyDictionary()


@dataclass(frozen=True)
class Answer:
    """What came back.

    Args:
        content: unpacked.
        why_unread: why the content is not what the server said; empty if it is.
    """

    status: int
    headers: Mapping[str, str]
    content: bytes
    why_unread: str = ""


async def exchange(
    method: str, url: str, body: Mapping[str, Any] | None, headers: Mapping[str, str], timeout_s: float
) -> Answer:
    """Send a request and return what comes back, whatever its status.

    Args:
        timeout_s: from the look-up of the name to the last byte.

    Raises:
        EndpointError: no whole answer came.
    """
    content = None if body is None else written(body)
    # As it is: a few bytes can unpack to gigabytes.
    sent = {"User-Agent": "prefmh", "Accept-Encoding": "identity", **headers}
    if content is not None:
        sent["Content-Type"] = "application/json"
    has_begun = False
    try:
        async with asyncio.timeout(timeout_s):
            request = _session().request(method, url, data=content, headers=sent, allow_redirects=False)
            async with request as response:
                has_begun = True
                return _unpacked(response, await _read(response))
    except TimeoutError:
        words = "the reply did not end in time, within" if has_begun else "no reply within"
        raise TimedOut(f"{words} {timeout_s:g} s") from None
    except (aiohttp.ClientError, OSError) as error:
        raise _in_words(error, url, has_begun=has_begun) from None


def written(body: Mapping[str, Any]) -> bytes:
    """Return a body as it is sent."""
    return json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def _session() -> aiohttp.ClientSession:
    """Return the session of this event loop, which keeps connections and nothing else."""
    loop = asyncio.get_running_loop()
    if (found := _sessions.get(loop)) is None:
        found = _sessions[loop] = aiohttp.ClientSession(
            connector=CheckedConnector(),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            trust_env=False,
            timeout=aiohttp.ClientTimeout(total=None),
            max_line_size=_LONGEST_LINE,
            max_field_size=_LONGEST_LINE,
        )
        atexit.register(_close, loop, found)
    return found


def _close(loop: asyncio.AbstractEventLoop, session: aiohttp.ClientSession) -> None:
    if loop.is_running():
        asyncio.run_coroutine_threadsafe(session.close(), loop).result(_TO_CLOSE_S)


async def _read(response: aiohttp.ClientResponse) -> bytes:
    """Return a body as it came over the wire.

    Raises:
        BadReply: it is too long.
    """
    content = bytearray()
    async for piece in response.content.iter_chunked(_PIECE):
        content += piece
        if len(content) > LONGEST_REPLY:
            response.close()
            raise BadReply(f"the reply is longer than {LONGEST_REPLY // 2**20} MiB")
    return bytes(content)


def _unpacked(response: aiohttp.ClientResponse, content: bytes) -> Answer:
    status, headers = response.status, {name.lower(): value for name, value in response.headers.items()}
    try:
        return Answer(status, headers, unpacking.unpacked(content, headers.get("content-encoding", ""), LONGEST_REPLY))
    except OverflowError:
        return Answer(status, headers, b"", f"the reply is longer than {LONGEST_REPLY // 2**20} MiB")
    except ValueError as error:
        return Answer(status, headers, b"", str(error))


def _in_words(error: Exception, url: str, *, has_begun: bool) -> EndpointError:
    """Return what went wrong with a connection, so that it can be mended."""
    if isinstance(error, aiohttp.ClientConnectorError | ssl.SSLError):
        cause = getattr(error, "certificate_error", None) or getattr(error, "os_error", None) or error
        why = _of_tls(cause, URL(url).host or "") if isinstance(cause, ssl.SSLError) else _of_system(cause)
        return Unreachable(f"the server cannot be reached: {why}")
    if isinstance(error, aiohttp.ClientResponseError):
        return _of_rules(error.message)
    if not has_begun and not url.startswith("https:"):
        # What many servers do when they are spoken to in plain HTTP on the port of https://.
        return Unreachable("the connection was cut before any reply; should the address begin with https://?")
    return Unreachable("the connection was cut")


def _of_system(cause: object) -> str:
    return (getattr(cause, "strerror", None) or str(cause) or "no connection").lower()


def _of_tls(cause: ssl.SSLError, host: str) -> str:
    if isinstance(cause, ssl.SSLCertVerificationError):
        if cause.verify_code in _OF_ANOTHER_NAME:
            return f"its certificate is not for {host}; use the name that the certificate is for in the address"
        return _OF_CERTIFICATES.get(cause.verify_code, f"its certificate does not pass: {cause.verify_message}")
    if cause.reason in _PLAIN:
        return "it does not speak TLS on that port; begin the address with http://, or give the port of https://"
    return f"the TLS handshake failed: {(cause.reason or 'unknown').lower().replace('_', ' ')}"


def _of_rules(message: str) -> EndpointError:
    if any(each in message for each in _TLS_BYTES):
        return BadReply("the server speaks TLS on that port: begin the address with https://")
    if "Expected HTTP/" in message or "status line" in message:
        return BadReply("the server does not speak HTTP on that port")
    return BadReply("the reply breaks the rules of HTTP, or its header is too long")
