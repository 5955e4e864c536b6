"""Which voter a session is, in each campaign it has joined; joining, and being shown out.

Where a platform sends people, who they are is told by their id, and a session only remembers it: the same id is the
same voter in every browser, and another id in the same browser is somebody else. The same goes for the links of a
panel: who opens that of a panelist is this panelist.
"""

import re
from collections.abc import Collection, Mapping
from typing import Any

from django.contrib.sessions.backends.base import SessionBase
from django.db import transaction
from django.utils.translation import gettext as _

from prefmh_web.campaigns.frozen import limits_of
from prefmh_web.campaigns.models import Campaign, Invitation, Voter
from prefmh_web.participants import completion, consent, joining, limits, stages
from prefmh_web.participants.completion import End
from prefmh_web.participants.consent import Answer
from prefmh_web.participants.joining import Arrival, NotAdmitted
from prefmh_web.transport import sockets

_KEY = "voter_in_{}"
_TOKEN = re.compile(r"[\w-]{1,43}", re.ASCII)


class NothingLeft(NotAdmitted):
    """The study is finished or full. Who took part in it may still come back to how their part ended."""


class PartEnded(Exception):  # noqa: N818 - not an error
    """The person's part is closed: they refused, withdrew, or the researcher ended it.

    Args:
        end: what they read.
    """

    def __init__(self, end: End) -> None:
        super().__init__("this part is closed")
        self.end = end


def invitation_by(token: str) -> Invitation | None:
    """Return the invitation of a link, revoked or not; None for an unknown token."""
    if not _TOKEN.fullmatch(token):
        return None
    return Invitation.objects.select_related("campaign").filter(token=token).first()


def voter_in(session: SessionBase, campaign_id: int) -> Voter | None:
    """Return who this session is in a campaign; None before joining, and once their part is closed."""
    voter = who_joined(session, campaign_id)
    if voter is None or voter.removed_at:
        return None
    was_sent = limits_of(voter.campaign).recruiter.knows_people
    return None if was_sent and completion.is_closed(voter) else voter


def voter_by(session: SessionBase, invitation: Invitation) -> Voter | None:
    """Return who this session is in the campaign of an invitation; None as `voter_in`."""
    voter = voter_in(session, invitation.campaign_id)
    return voter if voter and _may_be(voter, invitation) else None


def leaver_by(session: SessionBase, invitation: Invitation) -> Voter | None:
    """Return who this session is by an invitation, as `voter_by`; or was, if they have withdrawn."""
    voter = who_joined(session, invitation.campaign_id)
    return voter if voter and completion.has_withdrawn(voter) else voter_by(session, invitation)


def voter_at_votes(session: SessionBase, token: str) -> Voter | None:
    """Return who this session is by the link of a token, as `voter_by`, if they have come to the votes; None in the
    stages before, and for an unknown token, too.
    """
    invitation = invitation_by(token)
    voter = voter_by(session, invitation) if invitation else None
    if voter is None or not limits_of(voter.campaign).recruiter.knows_people:
        return voter
    stages.arrive(voter)
    return voter if stages.has_come_to_votes(voter) else None


def require_admission(session: SessionBase, invitation: Invitation, arrival: Arrival | None = None) -> Voter | None:
    """Return who this session is already in the invitation's campaign, None if somebody new may be there.

    Whether the person of an arrival is known is found out by `join` only: nobody learns by looking who takes part.

    Args:
        arrival: who the platform's link says they are.

    Raises:
        NotAdmitted: their access was withdrawn, the link is revoked or used up, or a platform sends the people of this
            campaign and has not sent this one.
        NothingLeft: a platform has sent them, and the campaign is finished or full.
        PartEnded: they were sent by a platform, and their part is closed.
    """
    voter = who_joined(session, invitation.campaign_id)
    if voter and not _may_be(voter, invitation):
        voter = None
    if voter:
        _require_part(voter, invitation.campaign)
    elif arrival is None or limits_of(invitation.campaign).recruiter.is_open:
        _require_open(invitation, arrival)
    else:
        _require_left(invitation.campaign)
    return voter


def _require_part(voter: Voter, campaign: Campaign) -> None:
    was_sent = limits_of(campaign).recruiter.knows_people
    if was_sent and (end := completion.closed_end(voter)):
        raise PartEnded(end)
    if voter.removed_at and was_sent:
        raise NotAdmitted(_("Your part in this study has ended, and nothing says any more who you are."))
    if voter.removed_at:
        raise NotAdmitted(_("The researcher has removed you from this campaign. Your votes are kept."))


def _require_open(invitation: Invitation, arrival: Arrival | None) -> None:
    if invitation.revoked_at:
        raise NotAdmitted(_("This link is closed. If you still want to vote, ask the researcher for a new one."))
    if invitation.is_single_use and invitation.voters.exists():
        raise NotAdmitted(
            _("This link is for one person and has been used already. Ask the researcher for your own link.")
        )
    recruiter = limits_of(invitation.campaign).recruiter
    if recruiter.knows_people and arrival is None:
        raise NotAdmitted(
            _("The address has no %(name)s. Open the study again with the link that you were given.")
            % {"name": recruiter.person}
        )
    _require_left(invitation.campaign)


def _require_left(campaign: Campaign) -> None:
    """Require that somebody new can take part: the campaign goes on and has a place."""
    recruiter = limits_of(campaign).recruiter
    if campaign.status == Campaign.Status.FINISHED:
        if recruiter.person:
            raise NothingLeft(_("This study is finished: there is nothing left to do. Please return your submission."))
        raise NothingLeft(_("This study is finished: there is nothing left to do."))
    if recruiter.knows_people and limits.are_all_taken(campaign, campaign.config.study):
        if recruiter.person:
            raise NothingLeft(_("All places of this study are taken. Please return your submission."))
        raise NothingLeft(_("All places of this study are taken."))


def join(
    session: SessionBase,
    invitation: Invitation,
    arrival: Arrival | None = None,
    answer: Answer | None = None,
) -> Voter | None:
    """Make the session a voter of the invitation's campaign, once; None if they have not agreed to take part.

    Args:
        arrival: who the platform's link says they are.
        answer: to the question whether they agree, where that is asked.

    Raises:
        NotAdmitted: as `require_admission`; or the campaign does not take people of an earlier one.
        PartEnded: as `require_admission`.
    """
    with transaction.atomic():
        # Locked and read again: of two who open a link for one person at the same moment, one gets in; and nobody does
        # by a link that was closed since.
        invitation.revoked_at = Invitation.objects.select_for_update(no_key=True).get(pk=invitation.pk).revoked_at
        if limits_of(invitation.campaign).recruiter.knows_people:
            voter = _sent(session, invitation, arrival, answer)
        else:
            voter = require_admission(session, invitation) or _sitting(invitation) or joining.newcomer(invitation)
    if voter is None:
        return None
    # Of somebody who refuses, too: their page says what they have said.
    session[_KEY.format(invitation.campaign_id)] = voter.pk
    return voter if answer is None or answer.agrees else None


def _sent(session: SessionBase, invitation: Invitation, arrival: Arrival | None, answer: Answer | None) -> Voter | None:
    """Return who somebody is whom a platform has sent; None if they must be asked first whether they agree."""
    campaign, study = invitation.campaign, invitation.campaign.config.study
    known = joining.voter_of(campaign, arrival) if arrival else who_joined(session, campaign.pk)
    # The text may have changed while they read it.
    is_of_now = answer is not None and consent.is_of_now(answer.version, study)
    if known is None:
        _require_open(invitation, arrival)
    if consent.is_needed(known, study) and not is_of_now:
        return None
    if known and answer and answer.agrees:
        completion.take_back_refusal(known)
    if known:
        _require_part(known, campaign)
    voter = joining.voter_for(invitation, arrival) if arrival else known
    if voter and answer and is_of_now:
        consent.note(voter, answer)
        if not answer.agrees:
            completion.refuse(voter)
    return voter


def _sitting(invitation: Invitation) -> Voter | None:
    """Return who came by the link of a panelist before, on another device perhaps; None of a crowd."""
    if invitation.panelist is None:
        return None
    return Voter.objects.filter(campaign=invitation.campaign_id, panelist=invitation.panelist).first()


def _may_be(voter: Voter, invitation: Invitation) -> bool:
    """False for one panelist with the link of another: two of a panel may share a computer."""
    return voter.panelist == invitation.panelist


def leave_unless(session: SessionBase, campaign: Campaign, arrival: Arrival) -> None:
    """Forget who a session is in a campaign, unless that is the person who arrives now."""
    joined = who_joined(session, campaign.pk)
    if joined and joined != joining.voter_of(campaign, arrival):
        del session[_KEY.format(campaign.pk)]


def is_voter(session: Mapping[str, Any], voter: Voter) -> bool:
    """True when a session, by its contents, is this voter."""
    return session.get(_KEY.format(voter.campaign_id)) == voter.pk


def who_joined(session: SessionBase, campaign_id: int) -> Voter | None:
    """Return who this session is in a campaign, whether or not their part goes on; None before joining."""
    voter_id = session.get(_KEY.format(campaign_id))
    if voter_id is None:
        return None
    known = Voter.objects.select_related("campaign").filter(pk=voter_id, campaign=campaign_id)
    # A session may have been stored again after they were forgotten. A panelist stays who they are.
    return known.exclude(erased_at__isnull=False, panelist__isnull=True).first()


def forget(campaign: Campaign, voters: Collection[int]) -> int:
    """Let no browser be one of these voters any more; return how many sessions there were."""
    return sockets.take_out(_KEY.format(campaign.pk), voters)
