"""The demo's simulated people: hidden Bradley-Terry scores s(x), and voters who go by them.

They do what people do: open the link, join, and vote through a real WebSocket. The scores of usual objects lie about 6
nats apart, so that a chain visibly goes somewhere within a few dozen votes.
"""

from __future__ import annotations

import asyncio
import html
import json
import logging
import math
import re
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http.cookiejar import CookieJar

import numpy as np
import numpy.typing as npt
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.typing import Origin

import sampler

logger = logging.getLogger(__name__)

Score = Callable[[str], float]
RECONNECT_S = 1.0
_LOOK_AGAIN_S = 5.0


def human_pace(rng: np.random.Generator) -> float:
    """Draw the seconds one choice takes: log-normal, mean 4, one in ten above 7."""
    return float(rng.lognormal(mean=1.2, sigma=0.6))


@dataclass
class SimulatedVoter:
    """One simulated person in one campaign.

    Args:
        link: the invitation's full address.
        scores: for each question, the hidden score of each object, by what the page reads out for it.
        rng: this voter's own generator.
        pace: draws the seconds a choice takes.
        may_vote: asked before each choice. While it says no, the voter closes the page, so that no pair is held.
    """

    link: str
    scores: Mapping[str, Score]
    rng: np.random.Generator
    pace: Callable[[np.random.Generator], float] = human_pace
    may_vote: Callable[[], bool] = lambda: True
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
                while not await asyncio.to_thread(self.may_vote):
                    await asyncio.sleep(_LOOK_AGAIN_S)
                cookies = cookies or await asyncio.to_thread(self._join)
                async with connect(socket, origin=origin, additional_headers={"Cookie": cookies}) as connection:
                    if await self._vote(connection):
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

    async def _vote(self, connection) -> bool:
        """Vote until the campaign is finished; return whether it is, or others are to vote first."""
        screen = _Fields.of(await connection.recv())
        if self._unanswered and self._unanswered.get("lease") == screen.values.get("lease"):
            # Sent into a connection that was dying, it was lost. Had it arrived, its key would tell the server.
            await connection.send(json.dumps(self._unanswered))
        while screen.status not in ("finished", "done"):
            message = await self._decide(screen)
            if message is not None:
                self._unanswered = message
                await connection.send(json.dumps(message))
            screen = _Fields.of(await connection.recv())
            if not await asyncio.to_thread(self.may_vote):
                return False
        return True

    async def _decide(self, screen: _Fields) -> dict[str, str] | None:
        if screen.status == "resting":
            return {"choice": "continue"}
        lease = screen.values.get("lease", "")
        # A notification may show the pair again that has just been answered; its vote is on the way.
        if screen.status != "pair" or lease in self.sent[-1:]:
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


_HIDDEN = re.compile(r'<input type="hidden" name="([^"]+)" value="([^"]*)"')
# Such as “Object 1: ...”.
_OPTION = re.compile(r'class="option"[^>]* aria-label="[^":]*: ([^"]*)"')
_QUESTION = re.compile(r'id="question"[^>]*>([^<]*)<')
_STATUS = re.compile(r'id="panel" class="[^"]*?(\S+)"')


@dataclass(frozen=True)
class _Fields:
    """What a voter reads on the page: the hidden fields, the two objects, the question; empty where it has none."""

    values: Mapping[str, str]
    objects: Sequence[str]
    question: str
    status: str

    @classmethod
    def of(cls, page: str) -> _Fields:
        question, status = ("".join(each.findall(page)[:1]) for each in (_QUESTION, _STATUS))
        objects = [html.unescape(each) for each in _OPTION.findall(page)]
        return cls(dict(_HIDDEN.findall(page)), objects, html.unescape(question), status)


# Stems of words; 2 for the furniture of a gothic tale, 1 for what often stands beside it.
_GOTHIC_STEMS = {
    2: (
        "abbey bloodless burial buried castle chains coffin corpse countess crypt dead death died dying drowned "
        "ghastly ghost grave haunt hollow moan mourn ruin shriek shroud skeleton skull tomb vault"
    ),
    1: (
        "abbot bats bell bleed blood bone candle cobweb cold convent crimson curse damp dark dusk dust fear fog "
        "footprint funeral gloom guttering hanged hood iron ivy knives lantern lightning marquis midnight mist monk "
        "moon moor night pale pray rott shadow silen sob storm thirteen thorn toll tower trembl veil weep whisper "
        "widow wolves yew"
    ),
}
_STEM_WEIGHTS = {stem: weight for weight, stems in _GOTHIC_STEMS.items() for stem in stems.split()}
_GOTHIC_WORD = re.compile(rf"\b({'|'.join(sorted(_STEM_WEIGHTS, key=len, reverse=True))})")


def gothic_mood(text: str) -> float:
    """Return how gothic the mood is: -3 with no word of the kind, rising towards 3 as they gather."""
    found = sum(_STEM_WEIGHTS[stem] for stem in _GOTHIC_WORD.findall(text.lower()))
    # Each further word tells less: after a crypt, a coffin is hardly news.
    return 3 - 6 * math.exp(-found / 5)


def drug_likeness(smiles: str) -> float:
    """Return the quantitative estimate of drug-likeness (QED, 0 to 1), stretched to about -4..3.

    Raises:
        ValueError: not a molecule.
    """
    qed = sampler.describe_molecule(smiles).qed
    # What it cannot be computed for is unlike any drug.
    return 8 * ((0.0 if qed is None else qed) - 0.6)


def colourfulness(pixels: npt.NDArray[np.uint8]) -> float:
    """Return how colourful a picture is, after Hasler and Süsstrunk (2003), stretched to about -3..3."""
    # The square root, because a grey picture gains more from a little colour than a gaudy one from a little more.
    return (math.sqrt(sampler.describe_image(pixels).colourfulness) - 6.7) / 1.5
