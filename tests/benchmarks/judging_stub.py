"""A model server that is always as fast: it answers a vote after a set time, and refuses what is too much at once.

    LATENCY_S=1 AT_ONCE=256 python -m uvicorn tests.benchmarks.judging_stub:application

It speaks like vLLM. Its votes are even: A or B, drawn with the request's seed. `GET /figures` tells what it was asked.
A process of its own, so that its time is not counted as the application's.
"""

from __future__ import annotations

import asyncio
import json
import os
from dataclasses import asdict, dataclass

import numpy as np

from tests.support.models import anything_else, chat_reply, is_vote

_TOO_MANY = 429


@dataclass
class Figures:
    """What it was asked. `most` is how many votes it was at work on at a time; refused ones are not among `votes`."""

    votes: int = 0
    refused: int = 0
    now: int = 0
    most: int = 0


class Stub:
    """The ASGI application.

    Args:
        latency_s: how long a vote takes.
        at_once: how many are answered at a time; the others get a 429.
    """

    def __init__(self, latency_s: float, at_once: int) -> None:
        self._latency_s, self._at_once = latency_s, at_once
        self.figures = Figures()

    async def __call__(self, scope: dict, receive, send) -> None:
        if scope["method"] == "GET":
            await _reply(send, 200, asdict(self.figures) if scope["path"] == "/figures" else {"version": "0.0"})
            return
        body = json.loads(await _body_of(receive))
        if not is_vote(body):
            await _reply(send, 200, anything_else(body))
            return
        if self.figures.now >= self._at_once:
            self.figures.refused += 1
            await _reply(send, _TOO_MANY, {"error": "too many requests at once"})
            return
        self.figures.now += 1
        self.figures.most = max(self.figures.most, self.figures.now)
        try:
            await asyncio.sleep(self._latency_s)
        finally:
            self.figures.now -= 1
        self.figures.votes += 1
        await _reply(send, 200, chat_reply("A" if np.random.default_rng(body["seed"]).random() < 0.5 else "B"))


async def _body_of(receive) -> bytes:
    body = b""
    while True:
        message = await receive()
        body += message.get("body", b"")
        if not message.get("more_body"):
            return body


async def _reply(send, status: int, found: dict) -> None:
    body = json.dumps(found).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


application = Stub(float(os.environ.get("LATENCY_S", "1")), int(os.environ.get("AT_ONCE", "256")))
