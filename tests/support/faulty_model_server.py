"""Model servers in a process of their own, each with a plan of what goes wrong; they count all that they are asked.

    python -m tests.support.faulty_model_server --port 9000 --plans '{"ill": {"faults": [{"kind": "hang"}]}}'

Each plan is a server of its own below its name: `http://127.0.0.1:9000/ill/v1`. It speaks like vLLM, and its votes are
those of a `KnownJudge`, drawn with the request's seed. A fault strikes votes, and spares the test of the endpoint.

`GET /figures` tells for each server how many requests for a vote arrived, met a fault (`struck`), are under way (`now`;
`most` is the most that there were), were answered, or were refused because there were too many.
"""

import argparse
import asyncio
import contextlib
import json
import math
import socket
import struct
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from tests.support.models import KnownJudge, is_vote

# As long as nobody gives up, which every client does.
_FOR_EVER_S = 3600.0
_LOOK_EVERY_S = 0.1
# Votes, before the first fault begins.
_ANSWERED_BEFORE = 20


@dataclass(frozen=True)
class Fault:
    """One thing that goes wrong.

    Args:
        kind: hang, trickle, reset, error or limit.
        lasts_s: how long it goes on; for ever where that is 0.
        retry_after: of a limit: what its header says; none is sent where it is empty.
    """

    kind: str
    lasts_s: float = 0.0
    retry_after: str = ""


class Connection:
    """One connection of a client, as a request sees it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    @property
    def is_left(self) -> bool:
        """Whether the client has gone."""
        return self._reader.at_eof() or self._writer.is_closing()

    async def wait(self, seconds: float) -> bool:
        """Wait so long, or until the client has gone; return whether it is still there."""
        until = time.monotonic() + seconds
        while not self.is_left and (left := until - time.monotonic()) > 0:
            await asyncio.sleep(min(left, _LOOK_EVERY_S))
        return not self.is_left

    async def send(self, status: int, body: dict[str, Any], **headers: str) -> None:
        """Answer with JSON; underscores in header names stand for hyphens."""
        content = json.dumps(body).encode()
        self._writer.write(_head(status, len(content), headers) + content)
        with contextlib.suppress(ConnectionError):
            await self._writer.drain()

    async def begin(self, content: bytes, length: int) -> None:
        """Promise a reply of some length, and send its first bytes."""
        self._writer.write((_head(200, length, {}) if length else b"") + content)
        with contextlib.suppress(ConnectionError):
            await self._writer.drain()

    def reset(self) -> None:
        """Cut it so that the client gets an error, and not the end of a reply."""
        linger = struct.pack("ii", 1, 0)
        self._writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self._writer.transport.abort()


def _head(status: int, length: int, headers: dict[str, str]) -> bytes:
    fields = {"content-type": "application/json", "content-length": str(length)}
    fields |= {name.replace("_", "-"): value for name, value in headers.items()}
    lines = [f"HTTP/1.1 {status} Said", *(f"{name}: {value}" for name, value in fields.items())]
    return "\r\n".join([*lines, "", ""]).encode()


class Server:
    """The server of one plan.

    Args:
        plan: `latency_s` of a vote, how many it answers `at_once`, `scores` of the objects, `bias`, and its
            `faults`, each after the one before.
    """

    def __init__(self, plan: dict[str, Any]) -> None:
        self._latency_s = float(plan.get("latency_s", 0.05))
        self._at_once = plan.get("at_once", math.inf)
        self._judge = KnownJudge(plan.get("scores", {}), plan.get("bias", 0.0))
        self._faults = [Fault(**fault) for fault in plan.get("faults", ())]
        self._began: float | None = None
        self.count: Counter[str] = Counter()

    async def post(self, connection: Connection, body: dict[str, Any]) -> None:
        """Answer a request, or fail to."""
        if not is_vote(body):
            await connection.send(200, self._reply(body))
            return
        if self.count["now"] >= self._at_once:
            self.count["refused"] += 1
            await connection.send(429, {"error": "too many requests at once"})
            return
        self.count["arrived"] += 1
        fault = self._fault()
        self.count["struck"] += fault is not None
        self.count["now"] += 1
        self.count["most"] = max(self.count["most"], self.count["now"])
        try:
            status = await self._faulty(connection, fault, body) if fault else await self._well(connection, body)
        finally:
            self.count["now"] -= 1
        self.count["answered"] += status == 200

    async def _well(self, connection: Connection, body: dict[str, Any]) -> int:
        """Answer a vote; return 200, or 0 if the client has left."""
        if not await connection.wait(self._latency_s):
            return 0
        await connection.send(200, self._reply(body))
        return 200

    async def _faulty(self, connection: Connection, fault: Fault, body: dict[str, Any]) -> int:
        if fault.kind == "error":
            await connection.send(500, {"error": "out of order"})
            return 500
        if fault.kind == "limit":
            headers = {"retry_after": fault.retry_after} if fault.retry_after else {}
            await connection.send(429, {"error": "too many requests"}, **headers)
            return 429
        await _BREAKS[fault.kind](connection, self._reply(body), self.count["arrived"])
        return 0

    def _fault(self) -> Fault | None:
        """Return what is wrong now; begin what is due, and leave what is over."""
        if self._began is None and self._faults and self.count["answered"] >= _ANSWERED_BEFORE:
            self._began = time.monotonic()
        if self._began is None:
            return None
        if (lasts := self._faults[0].lasts_s) and time.monotonic() - self._began >= lasts:
            self._faults, self._began = self._faults[1:], None
            return None
        return self._faults[0]

    def _reply(self, body: dict[str, Any]) -> dict[str, Any]:
        return {"model": "m", **self._judge(body)}


async def _hang(connection: Connection, reply: dict[str, Any], number: int) -> None:
    await connection.wait(_FOR_EVER_S)


async def _trickle(connection: Connection, reply: dict[str, Any], number: int) -> None:
    content = json.dumps(reply).encode()
    await connection.begin(b"", len(content))
    for byte in content:
        if not await connection.wait(0.2):
            return
        await connection.begin(bytes([byte]), 0)


async def _reset(connection: Connection, reply: dict[str, Any], number: int) -> None:
    if number % 2:
        await connection.begin(b'{"choices": [', 1000)
    connection.reset()


_BREAKS: dict[str, Callable[[Connection, dict[str, Any], int], Awaitable[None]]] = {
    "hang": _hang,
    "trickle": _trickle,
    "reset": _reset,
}


class Servers:
    """All servers of a run, behind one port.

    Args:
        plans: by name.
    """

    def __init__(self, plans: dict[str, dict[str, Any]]) -> None:
        self._servers = {name: Server(plan) for name, plan in plans.items()}

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection."""
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while not writer.is_closing():
                head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
                method, path, _ = head[0].split(" ", 2)
                fields = dict(line.lower().split(": ", 1) for line in head[1:] if line)
                body = await reader.readexactly(int(fields.get("content-length", "0")))
                await self._answer(Connection(reader, writer), method, path, body)
        writer.close()

    async def _answer(self, connection: Connection, method: str, path: str, body: bytes) -> None:
        _, name, *rest = path.split("/")
        if method == "POST":
            await self._servers[name].post(connection, json.loads(body))
        elif name == "figures":
            await connection.send(200, {name: dict(server.count) for name, server in self._servers.items()})
        elif rest == ["version"]:
            await connection.send(200, {"version": "0.0"})
        else:
            await connection.send(404, {"error": "not found"})


async def _main(port: int, plans: dict[str, dict[str, Any]]) -> None:
    server = await asyncio.start_server(Servers(plans).serve, "127.0.0.1", port, backlog=1024)
    await server.serve_forever()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--plans", type=json.loads, required=True)
    arguments = parser.parse_args()
    asyncio.run(_main(arguments.port, arguments.plans))
