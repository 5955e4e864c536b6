"""A gate in front of a real model server: what it serves, after what passes has been counted, and held where it is to.

A server of its own kind has no log that says which requests are on their way. This one does.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

from tests.support.killed_runs import Gate

_NOT_HANDED_ON = ("host", "connection", "transfer-encoding", "content-length", "keep-alive")
_PATIENCE_S = 300


@contextlib.contextmanager
def forwarded(url: str, gate: Gate) -> Iterator[str]:
    """Serve on a free port what a server at this URL serves; yield the URL with another port."""
    target = urlsplit(url)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            self._hand_on(None)

        def do_POST(self) -> None:
            content = self.rfile.read(length := int(self.headers["Content-Length"]))
            if len(content) < length:
                # Whoever sent it was killed meanwhile.
                self.close_connection = True
                return
            with gate.passing(json.loads(content)):
                self._hand_on(content)

        def _hand_on(self, content: bytes | None) -> None:
            sent = {name: value for name, value in self.headers.items() if name.lower() not in _NOT_HANDED_ON}
            with contextlib.closing(http.client.HTTPConnection(target.netloc, timeout=_PATIENCE_S)) as server:
                server.request(self.command, self.path, content, sent)
                answered = server.getresponse()
                said = answered.read()
            self.send_response(answered.status)
            for name, value in answered.getheaders():
                if name.lower() not in (*_NOT_HANDED_ON, "server", "date"):
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(said)))
            self.end_headers()
            self.wfile.write(said)

        def handle(self) -> None:
            # A client that was killed takes no answer.
            with contextlib.suppress(ConnectionError):
                super().handle()

        def log_message(self, *message: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, name="forwarding")
    thread.start()
    try:
        yield target._replace(netloc=f"127.0.0.1:{server.server_port}").geturl()
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
