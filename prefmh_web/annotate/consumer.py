"""The socket behind the voting page. It carries ballots in and panels out; it decides and remembers nothing."""

import asyncio
import json
import logging

from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncWebsocketConsumer

from prefmh_web.annotate import leases, people
from prefmh_web.annotate.ballot import Ballot, BallotError
from prefmh_web.annotate.panel import Panel, panel_for
from prefmh_web.campaigns import live
from prefmh_web.campaigns.models import Annotator, Comparison

logger = logging.getLogger(__name__)

NOT_JOINED = 4401
BAD_MESSAGE = 4400
_LONGEST_MESSAGE = 10_000
_HEARTBEAT_S = 30
_LOOK_AT_MOST_EVERY_S = 0.1


class VotingConsumer(AsyncWebsocketConsumer):
    """One open voting page."""

    annotator: Annotator | None = None
    shows_pair = False
    _background: list[asyncio.Task]

    async def connect(self):
        # Accepted first: a refused handshake would make htmx try again for ever, a close code does not.
        await self.accept()
        self._background = []
        self.annotator = await self._who()
        if self.annotator is None:
            await self.close(NOT_JOINED)
            return
        # First the groups, then the record: what changes between the two arrives as a nudge.
        for group in (live.voters(self.annotator.campaign_id), live.voter(self.annotator.pk)):
            await self.channel_layer.group_add(group, self.channel_name)
        await database_sync_to_async(self._arrive)()
        self._showing, self._nudged = asyncio.Lock(), asyncio.Event()
        await self._show()
        self._background = [asyncio.create_task(self._stay_present()), asyncio.create_task(self._look_when_nudged())]

    async def receive(self, text_data=None, bytes_data=None):
        if self.annotator is None:
            return
        try:
            if text_data is None or len(text_data) > _LONGEST_MESSAGE:
                raise BallotError("a message must be a short text")
            ballot = Ballot.parse(_fields(text_data))
            await database_sync_to_async(ballot.act)(self.annotator)
        except (BallotError, Comparison.DoesNotExist) as error:
            logger.info("annotator %s sent a bad message: %s", self.annotator.pk, error)
            await self.close(BAD_MESSAGE)
            return
        await self._show()
        if ballot.is_skip:
            # Should nobody else take the question, it is this person's again after a while.
            asyncio.get_running_loop().call_later(leases.SKIP_REST.total_seconds() + 1, self._nudged.set)

    async def disconnect(self, code):
        if self.annotator is None:
            return
        for task in self._background:
            task.cancel()
        await asyncio.gather(*self._background, return_exceptions=True)
        for group in (live.voters(self.annotator.campaign_id), live.voter(self.annotator.pk)):
            await self.channel_layer.group_discard(group, self.channel_name)
        await database_sync_to_async(self._leave)()

    async def look_again(self, event):
        """Answer a nudge: a waiting page looks for a pair; a page with one is told only what concerns its person."""
        if not self.shows_pair or event["group"] == live.voter(self.annotator.pk):
            self._nudged.set()

    async def _look_when_nudged(self) -> None:
        # Twenty nudges at once are one reason to look, and people do not see a tenth of a second.
        while True:
            await self._nudged.wait()
            self._nudged.clear()
            await self._show()
            await asyncio.sleep(_LOOK_AT_MOST_EVERY_S)

    async def _show(self) -> None:
        async with self._showing:
            panel, html = await database_sync_to_async(self._panel)()
            self.shows_pair = panel.lease is not None
            await self.send(html)

    def _panel(self) -> tuple[Panel, str]:
        panel = panel_for(self.annotator.pk)
        return panel, panel.html()

    @database_sync_to_async
    def _who(self) -> Annotator | None:
        return people.annotator_by(self.scope["session"], self.scope["url_route"]["kwargs"]["token"])

    def _arrive(self) -> None:
        leases.adopt(self.annotator)
        people.set_present(self.annotator, True)

    def _leave(self) -> None:
        leases.orphan(self.annotator)
        people.set_present(self.annotator, False)

    async def _stay_present(self) -> None:
        while True:
            await asyncio.sleep(_HEARTBEAT_S)
            await database_sync_to_async(people.set_present)(self.annotator, True)


def _fields(text: str) -> dict:
    try:
        fields = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise BallotError("a message must be JSON") from error
    if not isinstance(fields, dict):
        raise BallotError("a message must be a JSON object")
    return fields
