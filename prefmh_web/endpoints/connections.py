"""Connections that are bounded in time and size, whatever the server sends, and what went wrong on them, in words.

httpx bounds each single wait and the bytes of no reply: a server that sends one byte now and then is waited for
without end. Here every wait ends with the request it is made for, and every byte is counted before it is decoded.
"""

import contextlib
import ssl
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar

import httpcore
import httpx

from prefmh_web.endpoints import waits
from prefmh_web.endpoints.errors import BadReply, EndpointError, TimedOut, Unreachable

# A connection that takes longer is not worth waiting for.
CONNECT_TIMEOUT_S = 10.0
# Connections that are idle. Many servers close theirs after five seconds; one that is used in that moment is cut.
MOST_KEPT = 256
KEPT_FOR_S = 3.0
MOST_HEADERS = 200
LONGEST_HEADERS = 64 * 2**10
# All that is read of a reply's header. The rest could only do harm: cookies are not kept, redirects not followed.
_HEADERS_READ = (b"content-encoding", *(name.encode() for name in waits.HEADERS))
# How much is handed to the socket at a time, so that a server that reads slowly is noticed in between.
_PIECE = 16 * 2**10
_HTTP = b"HTTP/"
# What begins whatever a TLS server sends: an alert, or a part of the handshake.
_TLS_BYTES = (b"\x15\x03", b"\x16\x03")


class Allowance:
    """The time and the bytes that one request may take, from now on.

    Args:
        seconds: from the look-up of the name to the last byte of the reply.
        most_bytes: of the reply as it comes over the wire, its header included.
        is_tls: whether the request goes over TLS, for the words of its errors.
    """

    def __init__(self, seconds: float, most_bytes: int, *, is_tls: bool) -> None:
        self._seconds, self._most_bytes, self._is_tls = seconds, most_bytes, is_tls
        self._deadline = time.monotonic() + seconds
        self._received = 0
        self._beginning = b""
        self._has_ended = False

    def left(self) -> float:
        """Return the seconds that are left.

        Raises:
            TimedOut: none is.
        """
        if (left := self._deadline - time.monotonic()) <= 0:
            raise self.timed_out()
        return left

    def count(self, data: bytes) -> None:
        """Count what was read; nothing means that the server hung up.

        Raises:
            BadReply: it is too much.
        """
        self._has_ended = not data
        self._beginning = (self._beginning + data[: len(_HTTP)])[: len(_HTTP)]
        self._received += len(data)
        if self._received > self._most_bytes:
            raise BadReply(f"the reply takes more than {self._most_bytes // 2**20} MiB on its way")

    def timed_out(self) -> TimedOut:
        """Return the error for the time being over."""
        if self._received:
            return TimedOut(f"the reply did not end in time, within {self._seconds:g} s")
        return TimedOut(f"no reply within {self._seconds:g} s")

    def cut(self) -> Unreachable:
        """Return the error for a connection that broke off."""
        if self._received or self._is_tls:
            return Unreachable("the connection was cut")
        # What many servers do when they are spoken to in plain HTTP on the port of https://.
        return Unreachable("the connection was cut before any reply; should the address begin with https://?")

    def not_http(self) -> EndpointError:
        """Return the error for a reply that breaks the rules of HTTP."""
        if self._beginning.startswith(_TLS_BYTES):
            return BadReply("the server speaks TLS on that port: begin the address with https://")
        if not _HTTP.startswith(self._beginning):
            return BadReply("the server does not speak HTTP on that port")
        if self._has_ended:
            return self.cut()
        return BadReply("the reply breaks the rules of HTTP, or its header is too long")


class NotConnected(Exception):  # noqa: N818 - another address may still do
    """No connection to one address; `error` is for the case that there is no other."""

    def __init__(self, error: EndpointError) -> None:
        super().__init__(error.reason)
        self.error = error


# Of the request that is under way on this thread.
_allowance: ContextVar[Allowance] = ContextVar("allowance")


@contextlib.contextmanager
def within(allowance: Allowance) -> Iterator[None]:
    """Make an allowance hold for the requests inside the `with`, on this thread."""
    token = _allowance.set(allowance)
    try:
        yield
    finally:
        _allowance.reset(token)


def seconds_left() -> float:
    """Return the time left of the request that is under way on this thread; outside any, that of a connection.

    Raises:
        TimedOut: none is left.
    """
    allowance = _allowance.get(None)
    return CONNECT_TIMEOUT_S if allowance is None else allowance.left()


class BoundedTransport(httpx.BaseTransport):
    """Sends requests over connections that keep to the allowance of whoever sends.

    Every fault of the connection is raised as an `EndpointError`, or as `NotConnected` if nothing was sent yet.
    """

    def __init__(self, context: ssl.SSLContext) -> None:
        self._context = context
        self._idle = _Idle()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request and return the reply with its body unread and as it comes.

        Raises:
            BadReply: its header is too long, or it is not HTTP.
        """
        url = httpcore.URL(
            scheme=request.url.raw_scheme,
            host=request.url.raw_host,
            port=request.url.port,
            target=request.url.raw_path,
        )
        # TLS was agreed on for one name: another one at the same address has connections of its own.
        place = url.scheme, url.host, url.port, str(request.extensions.get("sni_hostname", ""))
        sent = httpcore.Request(
            request.method,
            url,
            headers=request.headers.raw,
            content=request.stream,
            extensions=request.extensions,
        )
        connection = self._idle.take(place) or httpcore.HTTPConnection(
            url.origin, self._context, keepalive_expiry=KEPT_FOR_S, network_backend=_Backend()
        )
        try:
            with _faults_in_words():
                reply = connection.handle_request(sent)
            _check_headers(reply.headers)
        except BaseException:
            connection.close()
            raise
        headers = [(name, value) for name, value in reply.headers if name.lower() in _HEADERS_READ]
        body = _Body(reply, lambda: self._idle.keep(place, connection))
        return httpx.Response(reply.status, headers=headers, stream=body, extensions=reply.extensions)

    def close(self) -> None:
        self._idle.close()


_Place = tuple[bytes, bytes, int | None, str]


class _Idle:
    """Connections that nobody uses, the last used first; used by several threads.

    httpcore's own pool looks at each of its connections for each request: with 256 of them that takes longer than all
    else.
    """

    def __init__(self) -> None:
        self._kept: dict[_Place, deque[httpcore.HTTPConnection]] = defaultdict(deque)

    def take(self, place: _Place) -> httpcore.HTTPConnection | None:
        """Return one that is still there; None if there is none."""
        while True:
            try:
                connection = self._kept[place].pop()
            except IndexError:
                return None
            if connection.is_available() and not connection.has_expired():
                return connection
            connection.close()

    def keep(self, place: _Place, connection: httpcore.HTTPConnection) -> None:
        """Keep one for the next request, unless its server ends it; the oldest goes once there are too many."""
        if not connection.is_idle():
            connection.close()
            return
        kept = self._kept[place]
        kept.append(connection)
        # Others may take the last one meanwhile. Expired ones lie at the other end.
        with contextlib.suppress(IndexError):
            while len(kept) > MOST_KEPT or kept[0].has_expired():
                kept.popleft().close()

    def close(self) -> None:
        """Close all of them."""
        for kept in self._kept.values():
            while kept:
                kept.popleft().close()


class _Body(httpx.SyncByteStream):
    def __init__(self, reply: httpcore.Response, keep: Callable[[], None]) -> None:
        self._reply, self._keep = reply, keep

    def __iter__(self) -> Iterator[bytes]:
        with _faults_in_words():
            yield from self._reply.iter_stream()

    def close(self) -> None:
        """Close it; a connection whose reply was read to its end is kept."""
        self._reply.close()
        self._keep()


class _Backend(httpcore.NetworkBackend):
    """Connects as httpcore does, in the time that is left."""

    def __init__(self) -> None:
        self._plain = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.NetworkStream:
        left = min(CONNECT_TIMEOUT_S, seconds_left())
        try:
            return _Stream(self._plain.connect_tcp(host, port, left, local_address, socket_options))
        except httpcore.ConnectTimeout:
            raise NotConnected(TimedOut(f"no connection within {left:.3g} s")) from None
        except httpcore.ConnectError as error:
            why = getattr(error.__cause__, "strerror", None) or "no connection"
            raise NotConnected(Unreachable(f"the server cannot be reached: {why}")) from None


class _Stream(httpcore.NetworkStream):
    """One connection; each wait on it ends with the request that waits."""

    def __init__(self, plain: httpcore.NetworkStream) -> None:
        self._plain = plain

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        data = self._plain.read(max_bytes, seconds_left())
        _allowance.get().count(data)
        return data

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        for start in range(0, len(buffer), _PIECE):
            self._plain.write(buffer[start : start + _PIECE], seconds_left())

    def close(self) -> None:
        self._plain.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        left = min(CONNECT_TIMEOUT_S, seconds_left())
        try:
            return _Stream(self._plain.start_tls(ssl_context, server_hostname, left))
        except httpcore.ConnectTimeout:
            words = f"no TLS handshake within {left:.3g} s; does the server speak plain http:// on that port?"
            raise NotConnected(TimedOut(words)) from None
        except httpcore.ConnectError as error:
            words = _tls_fault(error.__cause__, server_hostname or "it")
            raise NotConnected(Unreachable(f"the server cannot be reached: {words}")) from None

    def get_extra_info(self, info: str) -> object:
        return self._plain.get_extra_info(info)


# OpenSSL's numbers of what is wrong with a certificate (X509_verify_cert_error_string).
_CERTIFICATE_FAULTS = {
    9: "its certificate is not valid yet; look at the clocks of both machines",
    10: "its certificate has expired; renew it on the server",
    18: "its certificate is signed by itself, so anybody could have made it; give the server one of a known authority",
    19: "its certificate comes from an authority that is not known here; give the server one of a known authority",
    20: "its certificate comes from an authority that is not known here; give the server one of a known authority",
    21: "its certificate comes without those that vouch for it; let the server send the whole chain",
    23: "its certificate was revoked; renew it on the server",
}
_WRONG_NAME = (62, 64)


def _tls_fault(cause: BaseException | None, name: str) -> str:
    """Return in words why a TLS handshake failed."""
    if isinstance(cause, ssl.SSLCertVerificationError):
        if cause.verify_code in _WRONG_NAME:
            return f"its certificate is not for {name}; use the name that the certificate is for in the address"
        known = _CERTIFICATE_FAULTS.get(cause.verify_code)
        return known or f"its certificate does not pass: {cause.verify_message}"
    reason = getattr(cause, "reason", None)
    if reason in ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "HTTP_REQUEST", "PACKET_LENGTH_TOO_LONG"):
        return "it does not speak TLS on that port; begin the address with http://, or give the port of https://"
    if isinstance(cause, ssl.SSLError) and reason:
        return f"the TLS handshake failed: {reason.lower().replace('_', ' ')}"
    return "the connection was cut in the TLS handshake"


@contextlib.contextmanager
def _faults_in_words() -> Iterator[None]:
    # Errors of httpcore are not chained: what they hold may hold the key.
    try:
        yield
    except httpcore.TimeoutException:
        raise _allowance.get().timed_out() from None
    except httpcore.NetworkError:
        raise _allowance.get().cut() from None
    except httpcore.ProtocolError:
        raise _allowance.get().not_http() from None


def _check_headers(headers: list[tuple[bytes, bytes]]) -> None:
    if len(headers) > MOST_HEADERS:
        raise BadReply(f"the reply has {len(headers)} header lines; more than {MOST_HEADERS} are not read")
    if sum(len(name) + len(value) for name, value in headers) > LONGEST_HEADERS:
        raise BadReply(f"the reply's header is longer than {LONGEST_HEADERS // 2**10} KiB")
