"""Nudges to open pages. A message says "look again", never what there is to see: losing one loses nothing.

Pages join their group first and then read the database, so nothing falls between the two.
"""

from functools import partial

from asgiref.sync import async_to_sync
from channels.layers import get_channel_layer
from django.db import transaction


def voters(campaign_id: int) -> str:
    """The group of pages that may be waiting for a pair."""
    return f"voters.{campaign_id}"


def voter(annotator_id: int) -> str:
    """The group of one annotator's open pages."""
    return f"voter.{annotator_id}"


def watchers(campaign_id: int) -> str:
    """The group of researchers' pages that watch a campaign."""
    return f"watchers.{campaign_id}"


def nudge(*groups: str) -> None:
    """Nudge the pages of these groups once the current transaction has committed, if it does."""
    # robust: a vote that is stored must not fail because a page could not be told.
    transaction.on_commit(partial(_send, groups), robust=True)


def _send(groups: tuple[str, ...]) -> None:
    async_to_sync(_send_to)(groups)


async def _send_to(groups: tuple[str, ...]) -> None:
    layer = get_channel_layer()
    for group in groups:
        await layer.group_send(group, {"type": "look.again", "group": group})
