"""Simulated Bradley-Terry voters who do what people do: open the link, join, and vote through a real WebSocket."""

import asyncio
import json
import logging
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from html.parser import HTMLParser
from http.cookiejar import CookieJar

import numpy as np
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.typing import Origin

import sampler

logger = logging.getLogger(__name__)

Score = Callable[[str], float]
RECONNECT_S = 1.0


def human_pace(rng: np.random.Generator) -> float:
    """Draw the seconds one choice takes: log-normal, median 2.5, one in ten above 6."""
    return float(rng.lognormal(mean=0.9, sigma=0.7))


@dataclass
class Voter:
    """One simulated person in one campaign.

    Args:
        link: the invitation's full address.
        scores: for each question, the hidden score of each object, by what the page reads out for it.
        rng: this voter's own generator.
        pace: draws the seconds a choice takes.
    """

    link: str
    scores: Mapping[str, Score]
    rng: np.random.Generator
    pace: Callable[[np.random.Generator], float] = human_pace
    sent: list[str] = field(default_factory=list)
    """Keys of the leases answered, in order."""
    _unanswered: dict[str, str] | None = None

    async def run(self) -> None:
        """Vote until the campaign is finished; connect again whenever the socket is lost."""
        parts = urllib.parse.urlsplit(self.link)
        socket = f"{'wss' if parts.scheme == 'https' else 'ws'}://{parts.netloc}/ws{parts.path}"
        origin = Origin(f"{parts.scheme}://{parts.netloc}")
        cookies = ""
        while True:
            try:
                cookies = cookies or await asyncio.to_thread(self._join)
                async with connect(socket, origin=origin, additional_headers={"Cookie": cookies}) as connection:
                    await self._vote(connection)
                    return
            except (ConnectionClosed, InvalidStatus, OSError) as lost:
                logger.info("a simulated voter lost its connection and reconnects: %s", lost)
                await asyncio.sleep(RECONNECT_S)

    def _join(self) -> str:
        jar = CookieJar()
        browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(jar))
        with browser.open(self.link) as welcome:
            page, address = _Fields.of(welcome.read().decode()), welcome.geturl()
        form = urllib.parse.urlencode({"csrfmiddlewaretoken": page.values["csrfmiddlewaretoken"]}).encode()
        browser.open(urllib.request.Request(address, form, {"Referer": address})).close()  # noqa: S310 - our own link
        return "; ".join(f"{cookie.name}={cookie.value}" for cookie in jar)

    async def _vote(self, connection) -> None:
        screen = _Fields.of(await connection.recv())
        if self._unanswered and self._unanswered.get("lease") == screen.values.get("lease"):
            # Sent into a connection that was dying, it was lost. Had it arrived, its key would tell the server.
            await connection.send(json.dumps(self._unanswered))
        while screen.standing not in ("finished", "done"):
            message = await self._decide(screen)
            if message is not None:
                self._unanswered = message
                await connection.send(json.dumps(message))
            screen = _Fields.of(await connection.recv())

    async def _decide(self, screen: "_Fields") -> dict[str, str] | None:
        if screen.standing == "resting":
            return {"choice": "continue"}
        lease = screen.values.get("lease", "")
        # A nudge may show the pair again that has just been answered; its vote is on the way.
        if screen.standing != "pair" or lease in self.sent[-1:]:
            return None
        seconds = self.pace(self.rng)
        await asyncio.sleep(seconds)
        first, second = screen.objects
        judge = sampler.BradleyTerry(self.scores[screen.question])
        # Looking at a picture means decoding it, which may ask the database.
        prefers_second = await asyncio.to_thread(judge.vote, self.rng, first, second)
        choice = "second" if prefers_second else "first"
        self.sent.append(lease)
        return {"lease": lease, "choice": choice, "elapsed_ms": str(round(1000 * seconds))}


class _Fields(HTMLParser):
    """What a voter reads on the page: the question, the two objects, and the form's hidden fields."""

    def __init__(self) -> None:
        super().__init__()
        self.values: dict[str, str] = {}
        self.objects: list[str] = []
        self.question = ""
        self.standing = ""
        self._in_question = False

    @classmethod
    def of(cls, html: str) -> "_Fields":
        fields = cls()
        fields.feed(html)
        return fields

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        if tag == "input" and found.get("type") == "hidden":
            self.values[found["name"] or ""] = found.get("value") or ""
        if found.get("id") == "panel":
            self.standing = (found["class"] or "").split()[-1]
        if found.get("class") == "option":
            # "Object 1: ..."
            self.objects.append((found["aria-label"] or "").partition(": ")[2])
        self._in_question = self._in_question or found.get("id") == "question"

    def handle_data(self, data):
        if self._in_question:
            self.question += data

    def handle_endtag(self, tag):
        self._in_question = False
