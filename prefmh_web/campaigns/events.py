"""The door through which events of a started campaign are written, and what each kind has to say.

A new kind is a word of `Event.Kind` and, where it says more than that, a class here that names it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal
from uuid import UUID

from django.contrib.auth.models import User
from pydantic import BaseModel, ConfigDict, Field, JsonValue

from prefmh_web.campaigns.models import Campaign, Comparison, EndReason, Event, ReportReason, Side, Voter

Kind = Event.Kind
LONGEST_REPORT = 500
"""What somebody may write about a pair, in characters."""
_AT_ONCE = 500
_SAYS: dict[Kind, type[Nothing]] = {}
"""What each kind says; those that are not here say nothing."""


class Nothing(BaseModel):
    """What a kind says that says nothing; the others add to it. `by` is the role of who did it."""

    model_config = ConfigDict(extra="forbid")

    by: Literal["owner", "manager", "admin"] | None = None

    def __init_subclass__(cls, *, kinds: tuple[Kind, ...]) -> None:
        _SAYS.update(dict.fromkeys(kinds, cls))


class Extended(Nothing, kinds=(Kind.EXTENDED,)):
    """Each chain that was not ended walks to `steps_after` instead of `steps_before`.

    Args:
        verdict: on the chains at that moment; see `sampler.CampaignResults`.
    """

    steps_before: int
    steps_after: int
    verdict: str


class FinishedNow(Nothing, kinds=(Kind.FINISHED_NOW,)):
    """A campaign was ended before its last step.

    Args:
        verdict: on the chains at that moment; see `sampler.CampaignResults`.
    """

    verdict: str


class ConfigChanged(Nothing, kinds=(Kind.CONFIG_CHANGED,)):
    """A change of the configuration: the path of the field, and its value before and after. What is hidden has none; a
    long text has its hash.
    """

    path: str
    old: JsonValue
    new: JsonValue


class OfStep(Nothing, kinds=(Kind.STEP_TRIED_AGAIN,)):
    """A step, by the index of its chain and its number."""

    chain_index: int
    step: int


class StepSuspended(OfStep, kinds=(Kind.STEP_SUSPENDED,)):
    """Why a step was suspended, and after how many skips or reports."""

    cause: Comparison.Suspended
    count: int


class ChainEnded(OfStep, kinds=(Kind.CHAIN_ENDED,)):
    """Why a researcher ended the chain, in words that are part of the record."""

    words: str


class OfPanelist(Nothing, kinds=(Kind.REMINDED,)):
    """A panelist, by their number."""

    panelist: int


class OfRole(Nothing, kinds=(Kind.MEMBER_SET, Kind.MEMBER_REMOVED)):
    """The role of a member."""

    role: str


class ParticipationEnded(Nothing, kinds=(Kind.PARTICIPATION_ENDED,)):
    """Why a researcher ended the part of a person, and whether they are paid: None where this settled no pay."""

    reason: EndReason
    paid: bool | None
    text: str


class Reported(Nothing, kinds=(Kind.REPORTED,)):
    """What a person reported about a pair that they skipped. A pair that is no question of the campaign, such as a gold
    check, has no chain.

    Args:
        key: that of the pair: of its lease, if it has one.
    """

    key: UUID
    reason: ReportReason
    text: str = Field(max_length=LONGEST_REPORT)
    chain_index: int | None
    step: int | None
    proposal_side: Side | None


class Erased(Nothing, kinds=(Kind.ERASED,)):
    """How many people were forgotten, and of which kinds something was removed."""

    people: int
    removed: str


class Paid(Nothing, kinds=(Kind.PAID,)):
    """How many people were noted as paid."""

    people: int


class ConsentText(Nothing, kinds=(Kind.CONSENT_ASKED,)):
    """A text that people are asked to agree to from now on, and its SHA-256, which stands in their answers."""

    version: str
    wording: str


class ModelAccepted(Nothing, kinds=(Kind.MODEL_ACCEPTED,)):
    """The judges whose model was accepted, by their index."""

    judges: str


def note(
    campaign_id: int,
    kind: Kind,
    by: User | None = None,
    said: Mapping[str, object] | None = None,
    voter: Voter | None = None,
) -> None:
    """Write an event, in the transaction that does what it says. Nothing is written of a draft: its setup is all that
    counts.

    Args:
        by: the researcher who did it; the record has their role.
        said: what its kind declares.
        voter: the person it is about.

    Raises:
        pydantic.ValidationError: the kind declares something else.
    """
    note_of_each(campaign_id, kind, by, said or {}, [voter])


def note_of_each(
    campaign_id: int, kind: Kind, by: User | None, said: Mapping[str, object], voters: Collection[Voter | None]
) -> None:
    """Write the same event of each of several people."""
    campaign = Campaign.objects.filter(pk=campaign_id, started_at__isnull=False).first()
    if campaign is None:
        return
    role = {} if by is None else {"by": _role(by, campaign)}
    checked = _SAYS.get(kind, Nothing).model_validate({**said, **role})
    data = checked.model_dump(mode="json", exclude={"by"} if by is None else None)
    Event.objects.bulk_create([Event(campaign=campaign, kind=kind, by=by, voter=voter, data=data) for voter in voters])


def empty_texts(voters: Collection[int]) -> int:
    """Empty what was written about people in words; return of how many events."""
    found = [each for each in Event.objects.filter(voter__in=voters) if each.data.get("text")]
    for event in found:
        event.data["text"] = ""
    return Event.objects.bulk_update(found, ["data"], batch_size=_AT_ONCE)


def _role(user: User, campaign: Campaign) -> str:
    if user.pk == campaign.owner_id:
        return "owner"
    is_member = campaign.memberships.filter(user=user.pk).exists()
    return "manager" if is_member and not user.is_superuser else "admin"


def public(kind: str, data: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the record tells of an event, in the order of its declaration: databases keep no order of their own.

    Free text about people is not told, and neither is the key of the pair that somebody has reported. Who did it, by
    their role, stands in a column of its own.
    """
    declared = [name for name in _SAYS.get(Kind(kind), Nothing).model_fields if name in data]
    further = sorted(data.keys() - set(declared))
    return {name: data[name] for name in (*declared, *further) if name not in ("by", "text", "key")}


def of_step(comparison: Comparison) -> Sequence[Event]:
    """Return when a step was suspended and what became of it, the first event first."""
    kinds = (Kind.STEP_SUSPENDED, Kind.STEP_TRIED_AGAIN, Kind.CHAIN_ENDED)
    found = Event.objects.filter(campaign=comparison.chain.campaign_id, kind__in=kinds)
    return list(found.filter(data__chain_index=comparison.chain.index, data__step=comparison.step))
