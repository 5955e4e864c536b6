"""Which annotator a session is, in each campaign it has joined."""

from datetime import timedelta

from django.contrib.sessions.backends.base import SessionBase
from django.utils import timezone

from prefmh_web.campaigns import live
from prefmh_web.campaigns.models import Annotator, Campaign, Invitation

# A page renews its presence a little more than twice in this time.
PRESENCE = timedelta(seconds=75)
_KEY = "annotator_in_{}"


def annotator_in(session: SessionBase, campaign_id: int) -> Annotator | None:
    """Return who this session is in a campaign; None before joining."""
    found = Annotator.objects.select_related("campaign")
    return found.filter(pk=session.get(_KEY.format(campaign_id)), campaign=campaign_id).first()


def annotator_by(session: SessionBase, token: str) -> Annotator | None:
    """Return who this session is in the campaign of an invitation; None before joining or for an unknown token."""
    invitation = Invitation.objects.filter(token=token).first()
    return annotator_in(session, invitation.campaign_id) if invitation else None


def join(session: SessionBase, campaign: Campaign) -> Annotator:
    """Make the session an annotator of the campaign, once."""
    annotator = annotator_in(session, campaign.pk)
    if annotator is None:
        annotator = Annotator.objects.create(campaign=campaign)
        session[_KEY.format(campaign.pk)] = annotator.pk
    return annotator


def set_present(annotator: Annotator, is_present: bool) -> None:
    """Note that a page of this person is open, for a while; or that it has closed."""
    until = timezone.now() + PRESENCE if is_present else None
    Annotator.objects.filter(pk=annotator.pk).update(online_until=until)
    live.nudge(live.watchers(annotator.campaign_id))
