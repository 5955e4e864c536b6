"""Which annotator a session is, in each campaign it has joined; joining, and being shown out."""

import re
from collections.abc import Mapping
from typing import Any

from django.contrib.sessions.backends.base import SessionBase
from django.db import transaction

from prefmh_web.campaigns.models import Annotator, Invitation

_KEY = "annotator_in_{}"
_TOKEN = re.compile(r"[\w-]{1,43}", re.ASCII)


class NotAdmitted(Exception):  # noqa: N818 - reads as the sentence it starts
    """This session may not join; the message says why, to the person who tries."""


def invitation_by(token: str) -> Invitation | None:
    """Return the invitation of a link, revoked or not; None for an unknown token."""
    if not _TOKEN.fullmatch(token):
        return None
    return Invitation.objects.select_related("campaign").filter(token=token).first()


def annotator_in(session: SessionBase, campaign_id: int) -> Annotator | None:
    """Return who this session is in a campaign; None before joining and once access is withdrawn."""
    annotator = _joined(session, campaign_id)
    return annotator if annotator and annotator.removed_at is None else None


def annotator_by(session: SessionBase, token: str) -> Annotator | None:
    """Return who this session is in the campaign of an invitation; None as `annotator_in`, or for an unknown token."""
    invitation = invitation_by(token)
    return annotator_in(session, invitation.campaign_id) if invitation else None


def demand_admission(session: SessionBase, invitation: Invitation) -> Annotator | None:
    """Return who this session is already in the invitation's campaign, None if it may join.

    Raises:
        NotAdmitted: its access was withdrawn, or the link is revoked or used up.
    """
    annotator = _joined(session, invitation.campaign_id)
    if annotator and annotator.removed_at:
        raise NotAdmitted("The researcher has removed you from this campaign. Your votes are kept.")
    if annotator is None and invitation.revoked_at:
        raise NotAdmitted("This link is closed. If you still want to vote, ask the researcher for a new one.")
    if annotator is None and invitation.is_single_use and invitation.annotators.exists():
        raise NotAdmitted(
            "This link is for one person and has been used already. Ask the researcher for your own link."
        )
    return annotator


def join(session: SessionBase, invitation: Invitation) -> Annotator:
    """Make the session an annotator of the invitation's campaign, once.

    Raises:
        NotAdmitted: as `demand_admission`.
    """
    with transaction.atomic():
        # Locked: of two who open a link for one person at the same moment, one gets in.
        locked = Invitation.objects.select_for_update(no_key=True).get(pk=invitation.pk)
        annotator = demand_admission(session, locked)
        if annotator is None:
            annotator = Annotator.objects.create(campaign_id=locked.campaign_id, invitation=locked)
    session[_KEY.format(locked.campaign_id)] = annotator.pk
    return annotator


def is_annotator(session: Mapping[str, Any], annotator: Annotator) -> bool:
    """True when a session, by its contents, is this annotator."""
    return session.get(_KEY.format(annotator.campaign_id)) == annotator.pk


def _joined(session: SessionBase, campaign_id: int) -> Annotator | None:
    annotator_id = session.get(_KEY.format(campaign_id))
    if annotator_id is None:
        return None
    return Annotator.objects.select_related("campaign").filter(pk=annotator_id, campaign=campaign_id).first()
