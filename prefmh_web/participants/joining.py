"""A person with an id joins a campaign, or comes back to it from wherever they are.

What a platform's link says of the person who opens it.

It is read from the address once. The browser then keeps it, signed, until the person presses the first button; up to
then nothing is stored, so robots and previews leave nothing behind.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from django.core import signing
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from prefmh_web.campaigns import events
from prefmh_web.campaigns.models import Campaign, Invitation, Voter
from prefmh_web.config import Study
from prefmh_web.participants.limits import locked_study
from prefmh_web.participants.models import LONGEST_ID, Participant, Participation
from prefmh_web.recruiters import Recruiter

MAX_VISITS = 100
"""Of one participation, so many visits are kept: the first, and the last ones."""


class NotAdmitted(Exception):  # noqa: N818 - reads as the sentence it starts
    """Somebody may not join; the message says why, to the person who tries."""


def voter_of(campaign: Campaign, arrival: Arrival) -> Voter | None:
    """Return who a person is in a campaign, if they have joined it before, on whatever device."""
    found = _participations(campaign, campaign.config.study, arrival).filter(campaign=campaign).first()
    return found.voter if found else None


def voter_for(invitation: Invitation, arrival: Arrival) -> Voter:
    """Return who a person is in the campaign of an invitation: who they were on any device, or somebody new. Within a
    transaction.

    Raises:
        NotAdmitted: the campaign does not take people of an earlier one in which they took part.
    """
    campaign = invitation.campaign
    # Locked: of two pages that bring the same person at once, the second finds what the first has made.
    study = locked_study(campaign.pk)
    known = _participations(campaign, study, arrival)
    participation = known.filter(campaign=campaign).first()
    if participation is None:
        if known.filter(campaign__in=[each.number for each in study.refused]).exists():
            raise NotAdmitted(
                _(
                    "You have taken part in an earlier study of this researcher, and this one is for other people. "
                    "Please return your submission."
                )
            )
        # Locked: of two campaigns, one may delete its people while another takes one of them in.
        participant = Participant.objects.select_for_update(no_key=True).get_or_create(
            owner_id=campaign.owner_id, recruiter=study.recruiter, external_id=arrival.external_id
        )[0]
        participation = participant.participations.create(campaign=campaign, voter=newcomer(invitation))
    _note_visit(participation, arrival)
    return participation.voter


def newcomer(invitation: Invitation) -> Voter:
    """Return somebody new in the campaign of an invitation."""
    made = invitation.voters.create(campaign=invitation.campaign, panelist=invitation.panelist)
    if invitation.is_simulated:
        events.note(invitation.campaign_id, events.Kind.SIMULATED, voter=made)
    return made


def _participations(campaign: Campaign, study: Study, arrival: Arrival) -> QuerySet[Participation]:
    """All parts that a person has taken in campaigns of this owner."""
    found = Participation.objects.filter(
        participant__owner=campaign.owner_id,
        participant__recruiter=study.recruiter,
        participant__external_id=arrival.external_id,
    )
    return found.select_related("voter__campaign")


def _note_visit(participation: Participation, arrival: Arrival) -> None:
    visit = {"session_id": arrival.session_id, "parameters": dict(arrival.parameters)}
    last = participation.visits[-1] if participation.visits else {}
    if visit == {name: last.get(name) for name in visit}:
        return
    visits = [*participation.visits, visit | {"at": timezone.now().isoformat()}]
    participation.visits = visits[:1] + visits[1:][1 - MAX_VISITS :]
    participation.save(update_fields=["visits"])


MAX_KEPT = 1000
"""Characters of a link's other parameters, as JSON, that are kept; what comes after them is left out. With ids of the
greatest length, a cookie holds them all.
"""
_SALT = "prefmh_web.participants.joining"
# What stands in a link whose sender has not filled it in.
_PLACEHOLDER = re.compile(r"\[.*\]|\{.*\}|<.*>|%.*%")


class NotFromThere(Exception):  # noqa: N818 - reads as the sentence it starts
    """The address does not name the person; the message says what is missing, to the person who opened it."""


class Preview(Exception):  # noqa: N818 - not an error
    """Somebody only looks at the study."""


@dataclass(frozen=True)
class Arrival:
    """A person who opened a platform's link.

    Args:
        external_id: how the platform names the person.
        session_id: how it names this visit; empty where it does not.
        parameters: the other parameters of the link.
    """

    external_id: str
    session_id: str = ""
    parameters: Mapping[str, str] = field(default_factory=dict)


def read(recruiter: Recruiter, query: Mapping[str, str], *, checks_ids: bool = True) -> Arrival:
    """Read the parameters of an address.

    Args:
        checks_ids: the person's id must look like one of this recruiter.

    Raises:
        NotFromThere: the person's id is missing, blank, too long, no id of this recruiter, or not filled in.
        Preview: the platform only shows the study.
    """
    if recruiter.preview and query.get(recruiter.preview[0]) == recruiter.preview[1]:
        raise Preview
    for name in dict.fromkeys(filter(None, (recruiter.person, recruiter.session))):
        _check(name, query.get(name, ""), recruiter)
    person = recruiter.folded(query[recruiter.person])
    if checks_ids and recruiter.form and not re.fullmatch(recruiter.form, person):
        problem = _("%(value)s in the link is no %(name)s.")
        raise NotFromThere(problem % {"value": query[recruiter.person], "name": recruiter.person})
    others = {name: value for name, value in query.items() if name not in (recruiter.person, recruiter.session)}
    session = query.get(recruiter.session, "") if recruiter.session else ""
    return Arrival(person, session, _as_many_as_fit(others))


def of_nobody() -> Arrival:
    """Return somebody new who comes without an id. The one drawn here tells browsers apart, and nobody sees it."""
    return Arrival(secrets.token_urlsafe(16))


def sign(arrival: Arrival, token: str) -> str:
    """Return an arrival as text that only this server can have written, for one invitation."""
    return signing.dumps(asdict(arrival), salt=f"{_SALT}:{token}", compress=True)


def signed(text: str, token: str) -> Arrival | None:
    """Return what `sign` was given; None for anything else."""
    try:
        return Arrival(**signing.loads(text, salt=f"{_SALT}:{token}"))
    except (signing.BadSignature, TypeError):
        return None


def _check(name: str, value: str, recruiter: Recruiter) -> None:
    if not value.strip():
        raise NotFromThere(_("The link has no %(name)s.") % {"name": name})
    if value == recruiter.parameters.get(name) or _PLACEHOLDER.fullmatch(value):
        raise NotFromThere(_("The link has %(value)s in place of your %(name)s.") % {"value": value, "name": name})
    if len(value) > LONGEST_ID or not value.isprintable():
        problem = _("The %(name)s in the link is longer than %(most)s characters, or cannot be read.")
        raise NotFromThere(problem % {"name": name, "most": LONGEST_ID})


def _as_many_as_fit(parameters: Mapping[str, str]) -> dict[str, str]:
    kept: dict[str, str] = {}
    # Databases store no NUL in JSON, and nobody reads what cannot be printed.
    for name, value in parameters.items():
        if (name + value).isprintable():
            if len(json.dumps(kept | {name: value})) > MAX_KEPT:
                break
            kept[name] = value
    return kept
