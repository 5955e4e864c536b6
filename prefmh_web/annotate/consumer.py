"""The socket behind the voting page. It carries ballots in and panels out; it decides and remembers nothing."""

import asyncio
import json
import logging
from datetime import timedelta

from channels.db import database_sync_to_async

from prefmh_web.annotate import admission
from prefmh_web.annotate.panel import Panel, panel_for
from prefmh_web.annotate.screens.pair import Ballot, BallotError
from prefmh_web.campaigns.engine import leases, open_comparisons
from prefmh_web.campaigns.models import Annotator, Comparison
from prefmh_web.transport import nudges, rate_limits
from prefmh_web.transport.sockets import BAD_MESSAGE, NOT_ALLOWED, TRY_AGAIN, LiveConsumer

logger = logging.getLogger(__name__)

# "Try again later": the page keeps its vote, waits longer each time, connects and sends it again.
TOO_OFTEN = 1013
# With these a page says that it goes: closed, left, or loaded again. A lost connection has another code, 1005 or 1006.
FAREWELLS = frozenset({1000, 1001})
_LONGEST_MESSAGE = 10_000
HEARTBEAT_S = 30
_A_MOMENT_S = 0.1
_LOOK_AT_MOST_EVERY_S = 0.1
# A skipped question returns to its person after a while, and no nudge tells when.
_LOOK_AT_LEAST_EVERY_S = 10


class VotingConsumer(LiveConsumer):
    """One open voting page."""

    annotator: Annotator | None = None
    is_waiting = False
    _is_closing = False
    _sent = _status = ""

    async def connect(self):
        # Accepted first: a refused handshake would make htmx try again for ever, a close code does not.
        await self.accept()
        try:
            self.annotator = await self._who()
        except rate_limits.TooMany:
            await self._turn_away(TOO_OFTEN)
            return
        if self.annotator is None:
            await self._turn_away(NOT_ALLOWED)
            return
        self._showing, self._nudged = asyncio.Lock(), asyncio.Event()
        # First the group, then the record: what changes between the two arrives as a nudge.
        await self.join(nudges.voter(self.annotator.pk))
        if not await self._arrive():
            await self._turn_away(NOT_ALLOWED)
            return
        await self._show()
        self.in_background(self._stay_present())
        self.in_background(self._look_when_nudged())

    async def receive(self, text_data=None, bytes_data=None):
        if self.annotator is None:
            return
        try:
            if text_data is None or len(text_data) > _LONGEST_MESSAGE:
                raise BallotError("a message must be a short text")
            await self._show(Ballot.parse(_fields(text_data)))
        except rate_limits.TooMany:
            await self._turn_away(TOO_OFTEN)
            return
        except (BallotError, Comparison.DoesNotExist) as error:
            logger.info("annotator %s sent a bad message: %s", self.annotator.pk, error)
            await self._turn_away(BAD_MESSAGE)

    async def disconnect(self, code):
        await self.leave()
        if self.annotator is not None:
            await self._depart(leases.FAREWELL_GRACE if code in FAREWELLS else leases.ORPHAN_GRACE)
            if code in FAREWELLS:
                _release_later(self.annotator)

    async def look_again(self, event):
        """Answer a nudge: to the pages that wait for a pair, or to all pages of this person."""
        if event["group"] != nudges.voter(self.annotator.pk):
            self._nudged.set()
        # Perhaps another page of this person has closed, and this one is here; or they are shown out.
        elif await self._arrive():
            await self._show()
        else:
            await self._turn_away(NOT_ALLOWED)

    async def _turn_away(self, code: int) -> None:
        # A nudge and a message may find the same reason at the same moment.
        if not self._is_closing:
            self._is_closing = True
            await self.close(code)

    async def _look_when_nudged(self) -> None:
        # Twenty nudges at once are one reason to look, and people do not see a tenth of a second.
        while True:
            try:
                await asyncio.wait_for(self._nudged.wait(), _LOOK_AT_LEAST_EVERY_S if self.is_waiting else None)
                self._nudged.clear()
                may_be_for_us = await self._is_somebody_wanted()
            except TimeoutError:
                may_be_for_us = True
            if may_be_for_us:
                await self._show()
                await asyncio.sleep(_LOOK_AT_MOST_EVERY_S)

    async def _show(self, ballot: Ballot | None = None) -> None:
        """Do what a ballot says, if there is one, and send what there is to see then; a ballot is always answered."""
        async with self._showing:
            if self._is_closing:
                return
            panel, html = await self._act_and_look(ballot)
            if panel.annotator.removed_at:
                await self._turn_away(NOT_ALLOWED)
                return
            if ballot or html != self._sent:
                await self.send(html)
            self._sent, self._status = html, panel.campaign.status
            # Resting, people are asked again when they say so.
            await self._wait_or_not(panel.standing not in ("pair", "resting"))

    async def _wait_or_not(self, is_waiting: bool) -> None:
        # Pages that show a pair are in no group that each vote nudges: what a vote costs does not grow with them.
        if is_waiting and not self.is_waiting:
            await self.join(nudges.voters(self.annotator.campaign_id))
            # A pair that came up between the look and the joining brought no nudge.
            self._nudged.set()
        elif self.is_waiting and not is_waiting:
            await self.part(nudges.voters(self.annotator.campaign_id))
        self.is_waiting = is_waiting

    @database_sync_to_async
    def _act_and_look(self, ballot: Ballot | None) -> tuple[Panel, str]:
        if ballot:
            rate_limits.spend("votes", self.annotator.pk)
            ballot.act(self.annotator)
        panel = panel_for(self.annotator.pk)
        return panel, panel.html()

    @database_sync_to_async
    def _is_somebody_wanted(self) -> bool:
        # One short statement: of all the pages that a nudge wakes, few find a pair.
        return open_comparisons.is_somebody_wanted(self.annotator.campaign_id, self._status)

    @database_sync_to_async
    def _who(self) -> Annotator | None:
        annotator = admission.annotator_by(self.scope["session"], self.scope["url_route"]["kwargs"]["token"])
        if annotator:
            rate_limits.spend("sockets", annotator.pk)
        return annotator

    @database_sync_to_async
    def _arrive(self) -> bool:
        leases.adopt(self.annotator)
        return admission.set_present(self.annotator, True)

    @database_sync_to_async
    def _depart(self, grace: timedelta) -> None:
        admission.set_present(self.annotator, False)
        leases.orphan(self.annotator, grace)

    async def _stay_present(self) -> None:
        while True:
            await asyncio.sleep(HEARTBEAT_S)
            if not await database_sync_to_async(admission.set_present)(self.annotator, True):
                await self._turn_away(NOT_ALLOWED)
            elif not await self._is_known():
                # Signed out, or signed in under a new cookie: on connecting again the page's own cookie decides.
                await self._turn_away(TRY_AGAIN)

    @database_sync_to_async
    def _is_known(self) -> bool:
        return admission.is_known(self.scope["session"].session_key, self.annotator)


# The loop itself keeps no hold of what it runs.
_releasing: set[asyncio.Task] = set()


def _release_later(annotator: Annotator) -> None:
    """Give a person's question back once the grace is over, if no page of theirs is there by then.

    Should this process end before, the sweep does it.
    """
    asyncio.get_running_loop().call_later(leases.FAREWELL_GRACE.total_seconds() + _A_MOMENT_S, _release, annotator)


def _release(annotator: Annotator) -> None:
    task = asyncio.ensure_future(database_sync_to_async(leases.release)(annotator))
    _releasing.add(task)
    task.add_done_callback(_releasing.discard)


def _fields(text: str) -> dict:
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError) as error:
        # ValueError also for a number of more digits than Python reads.
        raise BallotError("a message must be JSON") from error
    if not isinstance(fields, dict):
        raise BallotError("a message must be a JSON object")
    return fields
