"""A program that is told of events: a real server on a socket of its own, which may behave as badly as one can.

It checks signatures as Standard Webhooks describes them, written here once more and not with our code.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import socket
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.support.ports import port_from

TOLERATED_S = 300


def is_signed(secret: str, headers: dict[str, str], body: bytes) -> bool:
    """Return whether one of the signatures is of this secret, and the timestamp is of now."""
    key = base64.b64decode(secret.removeprefix("whsec_"))
    stamp = headers["webhook-timestamp"]
    message = headers["webhook-id"].encode() + b"." + stamp.encode() + b"." + body
    wanted = base64.b64encode(hmac.digest(key, message, hashlib.sha256)).decode()
    given = [each.split(",", 1) for each in headers["webhook-signature"].split(" ")]
    is_recent = abs(time.time() - int(stamp)) < TOLERATED_S
    return is_recent and any(version == "v1" and hmac.compare_digest(found, wanted) for version, found in given)


class Receiver:
    """Keeps the requests that it gets, as pairs of headers and body.

    `behave` answers each of them; it gets the handler. Without it they are answered with 204.
    """

    def __init__(self, behave: Callable[[BaseHTTPRequestHandler], None] | None = None) -> None:
        self.requests: list[tuple[dict[str, str], bytes]] = []
        self.behave = behave or answers(204)
        self.stopping = threading.Event()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.requests.append(({name.lower(): value for name, value in self.headers.items()}, body))
                receiver.behave(self)

            def do_GET(self) -> None:
                receiver.requests.append(({}, b""))
                self.send_error(405)

            def log_message(self, *_: Any) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_: Any) -> None:
                """Whoever sends may hang up."""

        self._server = Server(("127.0.0.1", port_from(24_000)), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/hook?for=prefmh"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    @property
    def events(self) -> list[dict[str, Any]]:
        """What it was told, in the order in which it came."""
        return [json.loads(body) for _, body in self.requests]

    @property
    def ids(self) -> list[str]:
        return [headers["webhook-id"] for headers, _ in self.requests]

    def stop(self) -> None:
        self.stopping.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def answers(code: int, body: bytes = b"", **headers: str) -> Callable[[BaseHTTPRequestHandler], None]:
    """Answer with this."""

    def behave(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(code)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(body)

    return behave


def hangs(receiver: Receiver) -> Callable[[BaseHTTPRequestHandler], None]:
    """Take the request in and never answer."""
    return lambda _: receiver.stopping.wait() and None


def trickles(receiver: Receiver, head: bytes) -> Callable[[BaseHTTPRequestHandler], None]:
    """Answer with a head, and then a byte now and then."""

    def behave(handler: BaseHTTPRequestHandler) -> None:
        connection: socket.socket = handler.connection
        connection.sendall(head)
        while not receiver.stopping.wait(0.02):
            try:
                connection.sendall(b"x")
            except OSError:
                return

    return behave
