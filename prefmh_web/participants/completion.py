"""The end of somebody's part: how it ended, by itself or by hand, the code for it, and the way back to the platform.

Outcome and code are settled once, by one guarded update, and shown again to whoever comes back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet
from django.utils import timezone

from prefmh_web.campaigns import events
from prefmh_web.campaigns.engine import locks
from prefmh_web.campaigns.engine.locks import retried_after_conflicts
from prefmh_web.campaigns.frozen import limits_of
from prefmh_web.campaigns.lifecycle import access
from prefmh_web.campaigns.models import Campaign, EndReason, Event, Invitation, Lease, NotPossible, Voter
from prefmh_web.config import RETURN_FIELD, Outcome, Pay, Study
from prefmh_web.objects.texts import rendered
from prefmh_web.participants import limits
from prefmh_web.participants.models import Participation, Stage
from prefmh_web.recruiters import Recruiter
from prefmh_web.transport import sockets


@dataclass(frozen=True)
class End:
    """What somebody reads at the end of their part.

    Args:
        outcome: how it ended.
        code: to copy; empty where there is none.
        address: to go back to; empty where there is none.
        platform: what it is called, if people come from one.
        is_paid: something is paid for it.
        debriefing: what the researcher tells those who took part, as HTML.
    """

    outcome: Outcome
    code: str
    address: str
    platform: str
    is_paid: bool = False
    debriefing: str = ""


# How a part has ended although pairs may be left: nobody with one of these votes any more.
TOOK_PART = (Outcome.COMPLETED, Outcome.NOTHING_LEFT, Outcome.TIME_OVER, Outcome.WITHDRAWN)
"""Whoever ends so has seen pairs, or could have."""
CLOSED = (
    *(Outcome.NO_CONSENT, Outcome.NOT_ELIGIBLE, Outcome.FULL, Outcome.NOT_UNDERSTOOD, Outcome.CHECKS_FAILED),
    *(Outcome.WITHDRAWN, Outcome.ENDED),
)


def outcome_due(voter: Voter) -> Outcome | None:
    """Return how the part of somebody with no pair on the screen has ended; None while it goes on."""
    if outcome := limits.reached(voter, limits.minutes_done(voter)):
        return outcome
    campaign = voter.campaign
    if campaign.status != Campaign.Status.FINISHED:
        return Outcome.NOTHING_LEFT if limits.has_waited_enough(voter) else None
    if campaign.config.study == Study():
        return None
    # Without a number of votes, whoever votes to the end has done what was asked.
    has_done_it = limits_of(campaign).votes_per_person is None and voter.votes_cast
    return Outcome.COMPLETED if has_done_it else Outcome.NOTHING_LEFT


def outcome_of_leaving(voter: Voter, otherwise: Outcome) -> Outcome:
    """Return how the part of somebody ends who leaves now, or is made to: as the sweep would settle it in the next
    seconds, if they gave anything and it is due; else by that they leave.
    """
    due = outcome_due(voter) if voter.votes_cast else None
    return due or otherwise


def end_participation(voter: Voter, outcome: Outcome) -> End:
    """Settle how somebody's part ended, unless it is settled, and return what to show them."""
    study = voter.campaign.config.study
    participations = Participation.objects.filter(voter=voter)
    _settle(participations, study, outcome)
    participation = participations.select_related("participant").first()
    if participation is None:
        code, known, by_hand = study.codes.get(outcome, ""), {}, ""
    else:
        outcome, code, by_hand = Outcome(participation.outcome), participation.code, participation.pay
        known = fields_of(participation, study.platform)
    address = return_address(study.address_back, known | {"code": code})
    pay = study.paid(outcome, voter.votes_cast, by_hand)
    debriefing = rendered(study.protocol.debriefing) if outcome in TOOK_PART else ""
    return End(outcome, code, address, study.platform.called, pay is not Pay.NOTHING, debriefing)


def refuse(voter: Voter) -> None:
    """Settle that somebody does not consent, unless their part has ended otherwise. Who took part until now, under an
    earlier text or none, withdraws by that: their open pair goes to somebody else.
    """
    participations = Participation.objects.filter(voter=voter)
    participation = participations.get()
    if any(each["agreed"] for each in participation.consents) or participation.placed_at or voter.votes_cast:
        withdraw(voter)
    else:
        _settle(participations, voter.campaign.config.study, Outcome.NO_CONSENT)


def take_back_refusal(voter: Voter) -> None:
    """Let somebody who had not consented take part after all."""
    refused = Participation.objects.filter(voter=voter, outcome=Outcome.NO_CONSENT)
    refused.update(outcome="", code="", finished_at=None, placed_at=None)


def withdraw(voter: Voter) -> End:
    """Let somebody leave for good: no pair is shown to them any more, and their votes stay."""
    with transaction.atomic():
        end = end_participation(voter, outcome_of_leaving(voter, Outcome.WITHDRAWN))
        access.remove(voter)
    return end


def has_withdrawn(voter: Voter) -> bool:
    """True if somebody has left for good by their own wish."""
    return Participation.objects.filter(voter=voter, outcome=Outcome.WITHDRAWN).exists()


def is_closed(voter: Voter) -> bool:
    """True if somebody's part has ended and they are asked nothing more, not even the last questions."""
    participation = Participation.objects.filter(voter=voter).first()
    return participation is not None and _is_closed(participation)


def _is_closed(participation: Participation) -> bool:
    # Who has voted to the end sees the page of the votes once more, or is at the last questions.
    is_after_votes = participation.stage in (Stage.VOTES, Stage.LAST_QUESTIONS)
    return participation.outcome in CLOSED or bool(participation.outcome and not is_after_votes)


def closed_end(voter: Voter) -> End | None:
    """Return what somebody reads whose part is closed; None if it is not, or if there is nothing to tell them."""
    participation = Participation.objects.filter(voter=voter).first()
    if participation is None or not (voter.removed_at or _is_closed(participation)):
        return None
    return end_participation(voter, Outcome(participation.outcome or outcome_due(voter) or Outcome.ENDED))


def settle_overdue() -> None:
    """Settle the parts of people who have gone: after the last vote asked of them, or before the campaign ended."""
    asked = Lease.objects.filter(voter=OuterRef("voter"), ended_at__isnull=True)
    participations = Participation.objects.filter(~Exists(asked), outcome="").select_related("voter")
    for campaign in limits.going_on():
        for participation in participations.filter(limits.may_be_over(campaign), campaign=campaign):
            participation.voter.campaign = campaign
            if outcome := outcome_due(participation.voter):
                end_participation(participation.voter, outcome)
                # A page that waits for a pair shows the code.
                sockets.notify(sockets.voter(participation.voter_id))


def fields_of(participation: Participation, platform: Recruiter) -> dict[str, str]:
    """Return what a way back may name beside the code, by its name: ours, and the platform's own."""
    visit = participation.paid_visit
    parameters: dict[str, str] = visit.get("parameters", {})
    external_id, session_id = participation.given_id, visit.get("session_id", "")
    own = {platform.person: external_id, platform.session: session_id}
    return parameters | own | {"external_id": external_id, "session_id": session_id}


def return_address(template: str, known: Mapping[str, str]) -> str:
    """Return the address to go back to; empty if there is none, or if it needs a field that is empty.

    Args:
        template: an address with names in braces.
        known: the values by name.
    """
    names = RETURN_FIELD.findall(template)
    if not all(known.get(name) for name in names):
        return ""
    return RETURN_FIELD.sub(lambda field: quote(known[field[1]], safe=""), template)


def _settle(participations: QuerySet[Participation], study: Study, outcome: Outcome) -> None:
    participations.filter(outcome="").update(outcome=outcome, finished_at=timezone.now())
    # A code that the researcher has not entered yet is none that anybody was shown.
    for settled, code in study.codes.items():
        if code:
            # Nor is there one for somebody whose part was ended by hand without pay.
            participations.filter(outcome=settled, code="").exclude(pay=Pay.NOTHING).update(code=code)


@retried_after_conflicts
def exclude(voter: Voter, by: User, reason: EndReason, text: str, *, is_paid: bool) -> bool | None:
    """End somebody's part by hand. They see no pair any more.

    It is an event of the record. The open pair ends without a vote in that moment and goes back to its judge; an answer
    to it that comes later is refused, and votes that were counted stay. A part that had ended already keeps its
    outcome.

    Args:
        reason: in a word of ours, for the record.
        text: in the researcher's words, for payments.csv and colleagues.
        is_paid: in full, by the code for parts that the researcher ends; otherwise not at all. It says nothing where
            the part had ended before, or where no platform has sent the person.

    Returns:
        Whether they are paid; None where the pay was not settled by it.

    Raises:
        NotPossible: the part was ended by hand before, or the person has left.
    """
    with transaction.atomic():
        # In the order in which a withdrawal takes them. Of two who press the button at once, one waits here.
        participation = Participation.objects.select_for_update(no_key=True).filter(voter=voter).first()
        Voter.objects.select_for_update(no_key=True).get(pk=voter.pk)
        person = locks.person(voter.pk)
        _require_going_on(person)
        paid = is_paid if participation is not None and _settle_exclusion(participation, person, is_paid) else None
        said = {"reason": reason, "paid": paid, "text": text}
        events.note(person.campaign_id, Event.Kind.PARTICIPATION_ENDED, by, said, person)
        access.remove(person)
    return paid


@retried_after_conflicts
def exclude_all(invitation: Invitation, by: User) -> None:
    """Close a link, and end the parts of all who joined with it. The sweep settles how they are paid."""
    with transaction.atomic():
        # Locked, as joining locks it: nobody joins who is not looked at.
        Invitation.objects.select_for_update(no_key=True).get(pk=invitation.pk)
        people = invitation.voters.select_for_update(no_key=True).filter(removed_at=None).order_by("pk")
        said = {"reason": EndReason.LINK, "paid": None, "text": "Everyone who joined with the same link was removed."}
        events.note_of_each(invitation.campaign_id, Event.Kind.PARTICIPATION_ENDED, by, said, people)
        access.revoke(invitation, withdraw=True)


def exclusion_of(voter: Voter) -> Event | None:
    """Return the event that a researcher has ended somebody's part, if there is one."""
    return Event.objects.select_related("by").filter(voter=voter, kind=Event.Kind.PARTICIPATION_ENDED).first()


def _require_going_on(person: Voter) -> None:
    earlier = exclusion_of(person)
    if earlier is not None:
        name = f" by {earlier.by}" if earlier.by else ""
        raise NotPossible(f"The part of person {person.pk} has been ended already{name}.")
    if person.removed_at:
        raise NotPossible(f"The part of person {person.pk} has ended already.")


def _settle_exclusion(participation: Participation, person: Voter, is_paid: bool) -> bool:
    """Settle the outcome; False if it is another than that the researcher ends the part."""
    if participation.outcome:
        return False
    outcome = outcome_of_leaving(person, Outcome.ENDED)
    if outcome is Outcome.ENDED:
        Participation.objects.filter(pk=participation.pk).update(pay=Pay.FULL if is_paid else Pay.NOTHING)
    end_participation(person, outcome)
    return outcome is Outcome.ENDED
