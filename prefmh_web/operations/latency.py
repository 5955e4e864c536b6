"""How long people wait, measured where bytes enter and leave this process: requests, and votes by socket."""

import time

from prometheus_client import Counter, Gauge, Histogram

_SECONDS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10)

REQUESTS = Histogram(
    "prefmh_request_seconds", "Time from a request to the start of its answer.", ["method", "status"], buckets=_SECONDS
)
REPLIES = Histogram(
    "prefmh_socket_reply_seconds",
    "Time from a message on a WebSocket to the reply: from a vote to its acknowledgement.",
    ["page"],
    buckets=_SECONDS,
)
SOCKETS = Gauge("prefmh_sockets_open", "Open WebSockets of this process.", ["page"])
REFUSED = Counter("prefmh_sockets_refused_total", "WebSockets closed by the server, by close code.", ["page", "code"])

_METHODS = frozenset({"GET", "HEAD", "POST", "OPTIONS"})


class Latency:
    """An ASGI application that measures the one inside it."""

    def __init__(self, application) -> None:
        self._application = application

    async def __call__(self, scope, receive, send):
        watch = {"http": self._http, "websocket": self._websocket}.get(scope["type"])
        await (watch or self._application)(scope, receive, send)

    async def _http(self, scope, receive, send):
        started = time.perf_counter()
        # A method is a label: what strangers make up must not become a new series each time.
        method = scope["method"] if scope["method"] in _METHODS else "other"

        async def sent(message):
            if message["type"] == "http.response.start":
                REQUESTS.labels(method, str(message["status"])).observe(time.perf_counter() - started)
            await send(message)

        await self._application(scope, receive, sent)

    async def _websocket(self, scope, receive, send):
        page = _page(scope["path"])
        asked_at: list[float] = []

        async def received():
            message = await receive()
            if message["type"] == "websocket.receive":
                asked_at.append(time.perf_counter())
            return message

        async def sent(message):
            if message["type"] == "websocket.send" and asked_at:
                REPLIES.labels(page).observe(time.perf_counter() - asked_at.pop(0))
            elif message["type"] == "websocket.close":
                REFUSED.labels(page, str(message.get("code", 1000))).inc()
            await send(message)

        with SOCKETS.labels(page).track_inprogress():
            await self._application(scope, received, sent)


def _page(path: str) -> str:
    return {"join": "vote", "campaigns": "board"}.get(path.removeprefix("/ws/").partition("/")[0], "other")
