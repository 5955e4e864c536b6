"""The socket behind the voting page: a message comes in, and the next pair, or another screen, is sent.

`screens.py` reads what a message says and decides what there is to see; nothing is decided or remembered here.
"""

import asyncio
import json
import logging
from datetime import timedelta

from channels.db import database_sync_to_async

from prefmh_web.campaigns.engine import leases
from prefmh_web.campaigns.models import Comparison, Voter
from prefmh_web.participants import stages
from prefmh_web.transport import rate_limits, sockets
from prefmh_web.transport.sockets import BAD_MESSAGE, NOT_ALLOWED, LiveConsumer
from prefmh_web.voting import admission, presence
from prefmh_web.voting.presence import room_of
from prefmh_web.voting.responses import Response, ResponseError, response_in
from prefmh_web.voting.screens import Screen, screen_after, screen_for

logger = logging.getLogger(__name__)

# "Try again later": the page keeps its vote, waits longer each time, connects and sends it again.
TOO_OFTEN = 1013
# With these a page says that it goes: closed, left, or loaded again. A lost connection has another code, 1005 or 1006.
FAREWELLS = frozenset({1000, 1001})
_LONGEST_MESSAGE = 10_000
HEARTBEAT_S = 30
_A_MOMENT_S = 0.1


class VotingConsumer(LiveConsumer):
    """One open voting page."""

    voter: Voter
    is_waiting = False
    _is_admitted = _is_closing = False
    _sent = status = ""
    says_stalled: bool | None = None

    async def connect(self):
        # Accepted first: a refused handshake would make htmx try again for ever, a close code does not.
        await self.accept()
        try:
            voter = await self._who()
        except rate_limits.TooMany:
            await self._turn_away(TOO_OFTEN)
            return
        if voter is None:
            await self._turn_away(NOT_ALLOWED)
            return
        self.voter, self._is_admitted = voter, True
        self._showing, self._woken = asyncio.Lock(), asyncio.Event()
        # First the group, then the record: what changes between the two arrives as a notification.
        await self.join(sockets.voter(self.voter.pk))
        if not await self._arrive():
            await self._turn_away(NOT_ALLOWED)
            return
        await self._send_next_screen()
        self.in_background(self._stay_present())
        self.in_background(self._look_when_woken())

    async def receive(self, text_data=None, bytes_data=None):
        if not self._is_admitted:
            return
        try:
            if text_data is None or len(text_data) > _LONGEST_MESSAGE:
                raise ResponseError("a message must be a short text")
            await self._send_next_screen(response_in(_fields(text_data)))
        except rate_limits.TooMany:
            await self._turn_away(TOO_OFTEN)
            return
        except (ResponseError, Comparison.DoesNotExist) as error:
            logger.info("voter %s sent a bad message: %s", self.voter.pk, error)
            await self._turn_away(BAD_MESSAGE)

    async def disconnect(self, code):
        await self.leave()
        if self._is_admitted:
            await self._depart(leases.FAREWELL_GRACE if code in FAREWELLS else leases.ORPHAN_GRACE)
            if code in FAREWELLS:
                _release_later(self.voter)

    async def leave(self) -> None:
        await super().leave()
        # Last: a look of this page that was under way may just have found that it waits.
        await self._wait_or_not(False)

    async def refresh(self, event):
        """Answer a notification: to the pages that wait for a pair, or to all pages of this person."""
        if event["group"] != sockets.voter(self.voter.pk):
            room_of(self.voter.campaign_id).notify()
        # Perhaps another page of this person has closed, and this one is here; or they are shown out.
        elif await self._arrive():
            await self._send_next_screen()
        else:
            await self._turn_away(NOT_ALLOWED)

    async def _turn_away(self, code: int) -> None:
        # A notification and a message may find the same reason at the same moment.
        if not self._is_closing:
            self._is_closing = True
            await self.close(code)

    def wake(self) -> None:
        """Look again: perhaps there is a pair for this person."""
        self._woken.set()

    async def _look_when_woken(self) -> None:
        while True:
            await self._woken.wait()
            self._woken.clear()
            await self._send_next_screen()

    async def _send_next_screen(self, response: Response | None = None) -> None:
        """Do what a response asks, if there is one, and send what there is to see then. Every response is answered."""
        async with self._showing:
            if self._is_closing:
                return
            try:
                screen, html = await self._respond_and_look(response)
            except Voter.DoesNotExist:
                # They went with their campaign.
                await self._turn_away(NOT_ALLOWED)
                return
            if screen.voter.removed_at:
                await self._turn_away(NOT_ALLOWED)
                return
            if response or html != self._sent:
                await self.send(html)
            self._sent, self.status = html, screen.voter.campaign.status
            self.says_stalled = bool(screen.context["is_stalled"]) if screen.status == "waiting" else None
            # Resting, people are asked again when they say so; done, never.
            await self._wait_or_not(screen.status not in ("pair", "resting", "done"))

    async def _wait_or_not(self, is_waiting: bool) -> None:
        # Pages that show a pair are in no group that each vote notifies: what a vote costs does not grow with them.
        if is_waiting and not self.is_waiting:
            self.is_waiting = True
            await room_of(self.voter.campaign_id).enter(self)
        elif self.is_waiting and not is_waiting:
            self.is_waiting = False
            await room_of(self.voter.campaign_id).leave(self)

    @database_sync_to_async
    def _respond_and_look(self, response: Response | None) -> tuple[Screen, str]:
        if response is None:
            screen = screen_for(self.voter.pk)
        else:
            rate_limits.spend("votes", self.voter.pk)
            screen = screen_after(response, self.voter)
        return screen, screen.html()

    @database_sync_to_async
    def _who(self) -> Voter | None:
        voter = admission.voter_at_votes(self.scope["session"], self.scope["url_route"]["kwargs"]["token"])
        if voter:
            rate_limits.spend("sockets", voter.pk)
        return voter

    @database_sync_to_async
    def _arrive(self) -> bool:
        leases.adopt(self.voter)
        return presence.set_present(self.voter, True)

    @database_sync_to_async
    def _depart(self, grace: timedelta) -> None:
        presence.set_present(self.voter, False)
        stages.leave(self.voter)
        leases.orphan(self.voter, grace)

    async def _stay_present(self) -> None:
        while True:
            await asyncio.sleep(HEARTBEAT_S)
            code = await presence.renewed(self.voter, self.scope["session"].session_key)
            if code is not None:
                await self._turn_away(code)


# The loop itself keeps no hold of what it runs.
_releasing: set[asyncio.Task] = set()


def _release_later(voter: Voter) -> None:
    """Give a person's pair back once the grace is over, if no page of theirs is there by then.

    Should this process end before, the sweep does it.
    """
    asyncio.get_running_loop().call_later(leases.FAREWELL_GRACE.total_seconds() + _A_MOMENT_S, _release, voter)


def _release(voter: Voter) -> None:
    task = asyncio.ensure_future(database_sync_to_async(leases.release)(voter))
    _releasing.add(task)
    task.add_done_callback(_releasing.discard)


def _fields(text: str) -> dict:
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError) as error:
        # ValueError also for a number of more digits than Python reads.
        raise ResponseError("a message must be JSON") from error
    if not isinstance(fields, dict):
        raise ResponseError("a message must be a JSON object")
    return fields
