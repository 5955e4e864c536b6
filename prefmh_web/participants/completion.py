"""The end of somebody's part: how it ended, the code for it, and the way back to the platform.

Outcome and code are settled once, by one guarded update, and shown again to whoever comes back.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import quote

from django.db.models import Exists, OuterRef, Q, QuerySet, Subquery
from django.utils import timezone

from prefmh_web.campaigns.models import Annotator, Campaign, Lease
from prefmh_web.participants.models import Outcome, Participation, Recruitment
from prefmh_web.participants.recruiting import recruitment_of, terms_of

FIELDS = ("code", "external_id", "session_id")
"""What a way back may name, beside the parameters of the link."""
_FIELD = re.compile(r"\{([^{}]*)\}")


@dataclass(frozen=True)
class End:
    """What somebody reads at the end of their part.

    Args:
        outcome: how it ended.
        code: to copy; empty where there is none.
        address: to go back to; empty where there is none.
        platform: what it is called, if people come from one.
    """

    outcome: Outcome
    code: str
    address: str
    platform: str


def outcome_due(annotator: Annotator, campaign: Campaign) -> Outcome | None:
    """Return how the part of somebody with no pair on the screen has ended; None while it goes on."""
    terms = terms_of(campaign)
    if terms.votes_each is not None and (annotator.votes_cast or 0) >= terms.votes_each:
        return Outcome.COMPLETED
    if not (terms.is_set_up and campaign.status == Campaign.Status.FINISHED):
        return None
    # Without a number of votes, whoever stays to the end has done what was asked.
    return Outcome.COMPLETED if terms.votes_each is None else Outcome.NOTHING_LEFT


def end_of(annotator: Annotator, campaign: Campaign, outcome: Outcome) -> End:
    """Settle how somebody's part ended, unless it is settled, and return what to show them."""
    recruitment = recruitment_of(campaign)
    platform = recruitment.platform
    title = platform.title if platform.knows_people else ""
    _settle(Participation.objects.filter(annotator=annotator), recruitment, outcome)
    participation = Participation.objects.filter(annotator=annotator).select_related("participant").first()
    if participation is None:
        code = recruitment.codes.get(outcome, "")
        return End(outcome, code, way_back(recruitment.way_back, {"code": code}), title)
    known = fields_of(participation)
    return End(Outcome(participation.outcome), participation.code, way_back(recruitment.way_back, known), title)


def settle_overdue(campaign: Campaign | None = None) -> None:
    """Settle the parts of people whose page is gone: their last vote was the last one asked for, or the campaign ended.

    Args:
        campaign: only this one; None for all.
    """
    asked = Lease.objects.filter(annotator=OuterRef("annotator"), ended_at__isnull=True)
    votes_each = Recruitment.objects.filter(campaign=OuterRef("campaign")).values("votes_each")
    is_over = Q(campaign__status=Campaign.Status.FINISHED) | Q(annotator__votes_cast__gte=Subquery(votes_each))
    found = Participation.objects.filter(~Exists(asked), is_over, outcome="", annotator__removed_at__isnull=True)
    if campaign is not None:
        found = found.filter(campaign=campaign)
    for participation in found.select_related("annotator", "campaign"):
        if outcome := outcome_due(participation.annotator, participation.campaign):
            end_of(participation.annotator, participation.campaign, outcome)


def fields_of(participation: Participation) -> dict[str, str]:
    """Return what a way back may name, by its name."""
    visit = participation.last_visit
    parameters: dict[str, str] = visit.get("parameters", {})
    own = {
        "code": participation.code,
        "external_id": participation.participant.external_id,
        "session_id": visit.get("session_id", ""),
    }
    return parameters | own


def way_back(template: str, known: Mapping[str, str]) -> str:
    """Return the address to go back to; empty if there is none, or if it needs a field that is empty.

    Args:
        template: an address with names in braces.
        known: the values by name.
    """
    names = _FIELD.findall(template)
    if not all(known.get(name) for name in names):
        return ""
    return _FIELD.sub(lambda field: quote(known[field[1]], safe=""), template)


def unknown_fields(template: str, parameters: Iterable[str]) -> list[str]:
    """Return names in braces that no arrival will have."""
    return [name for name in _FIELD.findall(template) if name not in {*FIELDS, *parameters}]


def _settle(parts: QuerySet[Participation], recruitment: Recruitment, outcome: Outcome) -> None:
    code = recruitment.codes.get(outcome, "")
    parts.filter(outcome="").update(outcome=outcome, code=code, finished_at=timezone.now())
