"""Who has a page open. A page that shows a pair for an hour costs one small part of a statement every half minute.

    set_present    notes it for one person, when a page opens or closes
    renewed        notes it for an open page, together with all others of this process that do so at the same time

What is renewed runs out by itself, so a process that dies leaves nobody present for long.
"""

import asyncio
from collections.abc import Collection
from datetime import datetime, timedelta
from enum import Enum
from weakref import WeakKeyDictionary

from channels.db import database_sync_to_async
from django.db import transaction
from django.utils import timezone

from prefmh_web.campaigns.models import Annotator
from prefmh_web.transport import sockets
from prefmh_web.transport.rate_limits import among
from prefmh_web.voting import admission

# A page renews its presence a little more than twice in this time.
PRESENCE = timedelta(seconds=75)
# Of pages that came one by one, some thirty renew together; see `consumer.HEARTBEAT_S`.
_TOGETHER_S = 0.5


class Standing(Enum):
    """What an open page finds when it says that it is still there."""

    ADMITTED = "admitted"
    REMOVED = "removed"
    """Access has been withdrawn."""
    UNKNOWN = "unknown"
    """The session has ended, or is somebody else by now."""


def set_present(annotator: Annotator, is_present: bool) -> bool:
    """Note that a page of this person is open, for a while; or that it has closed.

    Returns:
        False when their access has been withdrawn; nothing is noted then.
    """
    is_admitted = _note(annotator.pk, timezone.now() + PRESENCE if is_present else None)
    sockets.nudge(sockets.watchers(annotator.campaign_id))
    return is_admitted


def _note(annotator_id: int, until: datetime | None) -> bool:
    return bool(Annotator.objects.filter(pk=annotator_id, removed_at__isnull=True).update(online_until=until))


async def renewed(annotator: Annotator, session_key: str | None) -> Standing:
    """Note that a page is still open; return what became of its person, by the session under which it was opened."""
    loop = asyncio.get_running_loop()
    together = _together.get(loop)
    if together is None:
        together = _together[loop] = _Together(loop)
    return await together.standing_of(annotator, session_key)


class _Together:
    """Pages that renew at the same time."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._pages: dict[tuple[int, str | None], Annotator] = {}
        self._found = loop.create_task(self._renew())

    async def standing_of(self, annotator: Annotator, session_key: str | None) -> Standing:
        self._pages[annotator.pk, session_key] = annotator
        # A page that closes meanwhile takes no other one along.
        found = await asyncio.shield(self._found)
        return found[annotator.pk, session_key]

    async def _renew(self) -> dict[tuple[int, str | None], Standing]:
        await asyncio.sleep(_TOGETHER_S)
        # Who comes from now on comes to the next ones.
        del _together[self._loop]
        return await database_sync_to_async(_standings)(self._pages)


_together: WeakKeyDictionary[asyncio.AbstractEventLoop, _Together] = WeakKeyDictionary()


def _standings(pages: dict[tuple[int, str | None], Annotator]) -> dict[tuple[int, str | None], Standing]:
    people = {annotator.pk: annotator for annotator in pages.values()}
    here = _renew(people)
    # Somebody who votes at this moment holds their row; nobody waits for a row while holding others.
    for pk in people.keys() - here:
        if _note(pk, timezone.now() + PRESENCE):
            here.add(pk)
    sockets.nudge(*{sockets.watchers(annotator.campaign_id) for annotator in people.values()})
    stored = sockets.contents({key for _, key in pages})
    return {(pk, key): _standing(annotator, pk in here, stored.get(key, {})) for (pk, key), annotator in pages.items()}


def _renew(annotator_ids: Collection[int]) -> set[int]:
    """Renew the presence of those who may be here and whose rows are free; return them."""
    admitted = Annotator.objects.filter(among("pk", annotator_ids), removed_at__isnull=True)
    with transaction.atomic():
        free = set(admitted.select_for_update(skip_locked=True, no_key=True).values_list("pk", flat=True))
        Annotator.objects.filter(among("pk", free)).update(online_until=timezone.now() + PRESENCE)
    return free


def _standing(annotator: Annotator, is_here: bool, session: dict) -> Standing:
    if not is_here:
        return Standing.REMOVED
    return Standing.ADMITTED if admission.is_annotator(session, annotator) else Standing.UNKNOWN
