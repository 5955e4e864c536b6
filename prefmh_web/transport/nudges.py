"""Nudges to open pages. A message says "look again", never what there is to see: losing one loses nothing.

Pages join their group first and then read the database, so nothing falls between the two.

A busy campaign stores a hundred votes a second and each of them nudges. From one process a group hears the first at
once, and those of the next moment together: what pages do in answer grows with time then, and not with votes.
"""

import asyncio
import logging
import threading
from collections.abc import Collection
from concurrent.futures import Future
from functools import cache

from channels.layers import BaseChannelLayer, get_channel_layer
from django.core.exceptions import ImproperlyConfigured
from django.db import transaction

logger = logging.getLogger(__name__)

_TOGETHER_S = 0.05
# Boards are drawn once a second at most.
_WATCHERS_TOGETHER_S = 0.5
# Groups nudged a moment ago, and whether they are to be nudged again at its end.
_quiet: dict[str, bool] = {}
_of_quiet = threading.Lock()


def voters(campaign_id: int) -> str:
    """The group of pages that may be waiting for a pair."""
    return f"voters.{campaign_id}"


def voter(annotator_id: int) -> str:
    """The group of one annotator's open pages."""
    return f"voter.{annotator_id}"


def watchers(campaign_id: int) -> str:
    """The group of researchers' pages that watch a campaign."""
    return f"watchers.{campaign_id}"


def session(key: str) -> str:
    """The group of the pages of one signed-in session; a nudge tells them that it has signed out."""
    return f"session.{key}"


def nudge(*groups: str) -> None:
    """Nudge the pages of these groups once the current transaction has committed, if it does."""

    # A function of its own: when a robust hook fails, Django logs its __qualname__, which a partial lacks.
    def send() -> None:
        # Most nudges of a busy campaign join one that is on its way, and wake no other thread.
        if due := [group for group in groups if not _joins_another(group)]:
            sending = asyncio.run_coroutine_threadsafe(_send(due), _loop())
            sending.add_done_callback(_log_failure)

    # robust: a vote that is stored must not fail because a page could not be told.
    transaction.on_commit(send, robust=True)


def _joins_another(group: str) -> bool:
    """True if a group was nudged a moment ago: it is nudged again at the end of that moment."""
    with _of_quiet:
        is_quiet = group in _quiet
        _quiet[group] = is_quiet
        return is_quiet


async def _send(groups: Collection[str]) -> None:
    # First of all, so that none stays quiet when one cannot be told.
    for group in groups:
        together_s = _WATCHERS_TOGETHER_S if group.startswith("watchers.") else _TOGETHER_S
        asyncio.get_running_loop().call_later(together_s, _end_quiet, group)
    for group in groups:
        await _layer().group_send(group, {"type": "look.again", "group": group})


def _layer() -> BaseChannelLayer:
    layer = get_channel_layer()
    if layer is None:
        raise ImproperlyConfigured("CHANNEL_LAYERS must name a layer as default.")
    return layer


def _end_quiet(group: str) -> None:
    with _of_quiet:
        is_due = _quiet[group]
        if is_due:
            _quiet[group] = False
        else:
            del _quiet[group]
    if is_due:
        sending = asyncio.run_coroutine_threadsafe(_send((group,)), _loop())
        sending.add_done_callback(_log_failure)


def _log_failure(sending: Future[None]) -> None:
    if error := sending.exception():
        logger.error("could not notify open pages; they update with the next notification", exc_info=error)


@cache
def _loop() -> asyncio.AbstractEventLoop:
    """Return the loop that sends nudges, on a thread of its own: no voter waits for a page to be told."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="nudges", daemon=True).start()
    return loop
