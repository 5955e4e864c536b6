"""Deleting a campaign that has started, with all its data; and archiving one, which only takes it off the list.

    request    mark a campaign as being deleted, once its name was typed; nothing leads back
    finish     delete its rows, some thousand at a time
    waiting    campaigns whose rows are being deleted
    archive    take a campaign off the list, or put it back

A large campaign has millions of rows, so they go outside the request. Whatever dies meanwhile, the sweep goes on: each
transaction deletes rows that nothing else needs, and the campaign's own row goes last.
"""

from __future__ import annotations

import logging

from django.contrib.auth.models import User
from django.db import models, transaction
from django.db.models import ProtectedError, QuerySet
from django.utils import timezone

from prefmh_web import hooks
from prefmh_web.campaigns import dispatch, events
from prefmh_web.campaigns.lifecycle import status
from prefmh_web.campaigns.models import (
    Annotator,
    Campaign,
    Catalog,
    Chain,
    ChainOpening,
    Comparison,
    Deleted,
    Event,
    Invitation,
    Lease,
    NotPossible,
    Rating,
    State,
    Vote,
)
from prefmh_web.objects import media

logger = logging.getLogger(__name__)
_AT_ONCE = 2_000


def request(campaign: Campaign, typed_name: str) -> None:
    """Begin to delete a paused or finished campaign. From now on nobody finds it.

    Args:
        typed_name: the campaign's name, as whoever deletes it has typed it.

    Raises:
        NotPossible: the name is another one, or the campaign is running or a draft.
    """
    if typed_name.strip() != campaign.name.strip():
        raise NotPossible("Nothing was deleted: what you typed is not the campaign's name.")
    with transaction.atomic():
        if not status.begin_deletion(campaign):
            raise _not_stopped(campaign)
        now = timezone.now()
        Invitation.objects.filter(campaign=campaign, revoked_at__isnull=True).update(revoked_at=now)
        Annotator.objects.filter(campaign=campaign, removed_at__isnull=True).update(removed_at=now)
        dispatch.delete(campaign)
    dispatch.look_again(campaign)


def _not_stopped(campaign: Campaign) -> NotPossible:
    found = Campaign.objects.filter(pk=campaign.pk).values_list("status", flat=True).first()
    if found in (None, Campaign.Status.DELETING):
        return Deleted()
    if found == Campaign.Status.DRAFT:
        return NotPossible("The campaign has not started. Delete the draft.")
    return NotPossible("The campaign is running. Pause it first.")


def waiting() -> QuerySet[Campaign]:
    """Return the campaigns whose rows are being deleted."""
    return Campaign.objects.filter(status=Campaign.Status.DELETING)


def finish(campaign_id: int) -> None:
    """Delete the rows of a campaign that is being deleted, and its files. Run twice at once, both help."""
    campaign = waiting().filter(pk=campaign_id).first()
    if campaign is None:
        return
    try:
        for delete in hooks.load(hooks.DELETIONS):
            delete(campaign)
        # What trials have taken stays; the objects that they showed do not.
        campaign.judge_trials.update(pairs=[])
        for rows in _rows(campaign_id):
            # With all that hangs on them, a transaction for each so many.
            while keys := list(rows.order_by().values_list("pk", flat=True)[:_AT_ONCE]):
                with transaction.atomic():
                    rows.model._default_manager.filter(pk__in=keys).delete()
        uploads = list(Catalog.objects.filter(campaign=campaign).values_list("file", flat=True))
        media.remove_pictures(campaign_id)
        for upload in uploads:
            media.remove_upload(upload)
        campaign.delete()
    except ProtectedError:
        # What was under way when it was marked has added a row. The sweep comes again.
        logger.info("campaign %s: rows were added while it was deleted", campaign_id)
    else:
        logger.info("campaign %s is deleted", campaign_id)


def _rows(campaign_id: int) -> list[QuerySet[models.Model]]:
    """Return all rows of which there may be many, those first that others do not need."""
    return [
        Event.objects.filter(campaign=campaign_id),
        Lease.objects.filter(comparison__chain__campaign=campaign_id),
        Vote.objects.filter(judge__campaign=campaign_id),
        Rating.objects.filter(judge__campaign=campaign_id),
        Comparison.objects.filter(chain__campaign=campaign_id),
        ChainOpening.objects.filter(campaign=campaign_id),
        Chain.objects.filter(campaign=campaign_id),
        State.objects.filter(campaign=campaign_id),
        Annotator.objects.filter(campaign=campaign_id),
    ]


def archive(campaign: Campaign, is_archived: bool, by: User | None = None) -> None:
    """Take a campaign off the list, or put it back. Its page, its data and what goes on in it stay as they are.

    Raises:
        NotPossible: it is running.
    """
    found = Campaign.objects.filter(pk=campaign.pk)
    if is_archived:
        found = found.exclude(status=Campaign.Status.RUNNING)
    with transaction.atomic():
        is_change = found.filter(archived_at__isnull=is_archived).exists()
        if not found.update(archived_at=timezone.now() if is_archived else None):
            raise NotPossible("The campaign is running. Pause it before you archive it.")
        if is_change:
            kinds = events.Kind
            events.note(campaign.pk, kinds.ARCHIVED if is_archived else kinds.UNARCHIVED, by)
    campaign.refresh_from_db(fields=["archived_at"])
