"""What a study asks of people: who comes, how much each gives, what they are asked beside votes, and what they get.

All of it is set up before the start, and what a field calls fixed is frozen by it: thresholds, questions and
instructions that could still change would let what is asked depend on what was answered (rule E5 of
`docs/exactness.md`).
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated

from django.db.models import TextChoices
from pydantic import AfterValidator, Field, PlainSerializer, StringConstraints, WithJsonSchema

from prefmh_web.config.protocol import USUAL_WAIT_MINUTES, VOTERS, Protocol
from prefmh_web.recruiters import ANYBODY, LINK, RECRUITERS, Recruiter, recruiter_by
from sampler.declared import ONE_LINE, Declared, ui

_LIMITS = "Limits, budget and pay"
_ENDS = "Completion codes, pay, and the address to return to"

LONGEST_NAME = 120
"""Of a campaign, in characters."""


# Written as a number: what is in the database has two places.
Money = Annotated[Decimal, Field(ge=0, decimal_places=2), PlainSerializer(float, return_type=float)]
_Code = Annotated[str, StringConstraints(strip_whitespace=True, max_length=100), ONE_LINE]


def _known(recruiter: str) -> str:
    if recruiter not in RECRUITERS:
        raise ValueError(f"must be one of {', '.join(RECRUITERS)}")
    return recruiter


_Recruiter = Annotated[str, AfterValidator(_known), WithJsonSchema({"type": "string", "enum": list(RECRUITERS)})]
_Consent = Annotated[str, StringConstraints(strip_whitespace=True, max_length=20_000)]


def _given(codes: Mapping[Outcome, str]) -> Mapping[Outcome, str]:
    return {outcome: code for outcome, code in codes.items() if code}


_Minutes = Annotated[int, Field(ge=5, le=10_000)]
_Count = Annotated[int, Field(ge=1, le=1_000_000)]


_CENT = Decimal("0.01")
MINUTES_TO_RETURN = 2
"""A part ends so long before the platform's own time is over."""


class Outcome(TextChoices):
    """How somebody's part ended. Each has its own code and its own pay."""

    COMPLETED = "completed", "completed"
    NOTHING_LEFT = "nothing-left", "nothing left to vote on"
    NO_CONSENT = "no-consent", "did not consent"
    NOT_ELIGIBLE = "not-eligible", "not eligible"
    FULL = "full", "no place free"
    NOT_UNDERSTOOD = "not-understood", "comprehension failed"
    CHECKS_FAILED = "checks-failed", "checks failed"
    TIME_OVER = "time-over", "time over"
    WITHDRAWN = "withdrawn", "withdrew"
    ENDED = "ended", "ended by the researcher"


class Pay(TextChoices):
    """What an outcome is paid."""

    FULL = "full", "in full"
    PART = "part", "in part"
    NOTHING = "nothing", "not"


_ENDED: dict[Outcome, tuple[Pay, str]] = {
    Outcome.COMPLETED: (Pay.FULL, "with all votes given"),
    Outcome.NOTHING_LEFT: (Pay.FULL, "because nothing is left to vote on"),
    Outcome.NO_CONSENT: (Pay.NOTHING, "without consent"),
    Outcome.NOT_ELIGIBLE: (Pay.NOTHING, "because the person is not eligible"),
    Outcome.FULL: (Pay.NOTHING, "because no place is free"),
    Outcome.NOT_UNDERSTOOD: (Pay.NOTHING, "with too many wrong answers about the instructions"),
    Outcome.CHECKS_FAILED: (Pay.NOTHING, "with too many failed attention checks"),
    Outcome.TIME_OVER: (Pay.PART, "because the time is over"),
    Outcome.WITHDRAWN: (Pay.PART, "because the person withdraws"),
    Outcome.ENDED: (Pay.NOTHING, "because you end it"),
}
"""What each outcome is paid as usual, and how the form says it."""
USUAL_PAY = {outcome: pay for outcome, (pay, _) in _ENDED.items()}
_HOW: dict[str, str] = {outcome: how for outcome, (_, how) in _ENDED.items()}


class EarlierCampaign(Declared):
    """A campaign of the same owner on the same site, whose people may not take part.

    Args:
        number: the one in its address.
        name: so that no other campaign of that number, on another site, is taken for it.
    """

    number: int = Field(ge=1, le=2**62)
    name: str = Field(max_length=120)


class Study(Declared):
    """How people come to a campaign, and what it asks of them beside votes. No person is named here.

    Args:
        recruiter: which platform sends them.
        parameter: the name of the parameter with the person's id, for links of the researcher's own.
        checks_ids: an id that does not look like the recruiter's is not let in.
        votes_per_person: after so many votes somebody's part is complete.
        quota: so many people can take part.
        budget: so many answers can be given.
        full_pay: what the platform pays a person in full; only shown.
        currency: of `full_pay`.
        max_minutes: how long the platform gives somebody.
        max_active_minutes: a part is complete after so many minutes with a pair on the screen.
        absent_minutes: who is away for so long loses their place.
        max_votes_per_minute: more votes within a minute are a flag.
        return_address: the address to return to.
        codes: by how a part ended, the completion code.
        pay: by how a part ended, what is paid where that is not the usual.
        refused: people of these campaigns may not take part.
        consent: what people agree to first, in Markdown.
        protocol: what is asked of each person beside votes.
    """

    recruiter: _Recruiter = Field(
        default=ANYBODY.name,
        title="Where do people come from?",
        json_schema_extra=ui(section="Recruitment", choices="recruiters", fixed=VOTERS),
    )
    parameter: str = Field(
        default="",
        max_length=64,
        title="Parameter with the person's id",
        description=f"Only for “{LINK.title}”: the name in the link, for example participant.",
        json_schema_extra=ui(fixed=VOTERS, when={"recruiter": (LINK.name,)}),
    )
    votes_per_person: _Count | None = Field(
        default=None,
        title="Votes per person",
        description="After so many votes a person's part is complete. A pair on the screen may still be answered. "
        "Leave empty for no limit.",
        json_schema_extra=ui(fixed=VOTERS),
    )
    checks_ids: bool = Field(
        default=True,
        title="Check the form of ids",
        description="Who comes with an id that does not look like the platform's is asked to open the study again. "
        "Untick it to try the link with ids of your own.",
        json_schema_extra=ui(fixed=VOTERS, fold=_LIMITS),
    )
    quota: _Count | None = Field(
        default=None,
        title="Number of people (quota)",
        description="So many people can take part at most. Somebody takes a place when they come to practice, or "
        "without it to the votes, and gives it back if their part ends without pay. Leave empty for no limit.",
        json_schema_extra=ui(fold=_LIMITS),
    )
    budget: int | None = Field(
        default=None,
        ge=1,
        le=1_000_000_000,
        title="Budget, in answers",
        description="So many answers can be given at most: votes, late ones, checks and repeats. Skipped pairs are "
        "free. The campaign starts only if all its steps and the declared shares of trials fit. Votes that early "
        "stopping saves stay unspent. Leave empty for no limit.",
        json_schema_extra=ui(fold=_LIMITS),
    )
    full_pay: Annotated[Money, Field(le=99_999)] | None = Field(
        default=None,
        title="Full pay of a person",
        description="What the platform pays them. It is only used to show what everybody together costs at most.",
        json_schema_extra=ui(fold=_LIMITS),
    )
    currency: Annotated[str, ONE_LINE] = Field(
        default="",
        max_length=8,
        title="Currency",
        description="For example £ or EUR.",
        json_schema_extra=ui(fold=_LIMITS),
    )
    max_minutes: _Minutes | None = Field(
        default=None,
        title="The platform's maximum time, in minutes",
        description=f"A person's part ends {MINUTES_TO_RETURN} minutes before it, so that they can enter the code. "
        "Leave empty for no limit.",
        json_schema_extra=ui(fixed=VOTERS, fold=_LIMITS),
    )
    max_active_minutes: int | None = Field(
        default=None,
        ge=1,
        le=10_000,
        title="Active minutes per person",
        description="After so many minutes with a pair on the screen a person's part is complete. The pair on the "
        "screen may still be answered; waiting and time away are not counted. Leave empty for no limit.",
        json_schema_extra=ui(fixed=VOTERS, fold=_LIMITS),
    )
    absent_minutes: _Minutes | None = Field(
        default=None,
        title="Minutes until an absent person loses their place",
        description="Where there is a quota. Leave empty for the platform's maximum time.",
        json_schema_extra=ui(fixed=VOTERS, fold=_LIMITS),
    )
    max_votes_per_minute: int | None = Field(
        default=None,
        ge=1,
        le=1000,
        title="Most votes a minute",
        description="Whoever gives more within a minute gets a flag on the page People and in the record. Nobody is "
        "refused or left out for it. Leave empty for no flag.",
        json_schema_extra=ui(fixed="the record flags everybody by the same number", fold=_LIMITS),
    )
    refused: tuple[EarlierCampaign, ...] = Field(
        default=(),
        max_length=1000,
        title="Do not take people who took part in",
        json_schema_extra=ui(fixed=VOTERS, choices="own campaigns", fold=_LIMITS),
    )
    consent: _Consent = Field(
        default="",
        title="Consent",
        description="In Markdown. People agree to it before they start, and a changed text is asked again. Leave empty "
        "for none.",
        json_schema_extra=ui(section="Consent", widget="text"),
    )
    codes: Annotated[Mapping[Outcome, _Code], AfterValidator(_given)] = Field(
        default={},
        title="Completion codes",
        description="Paste the code that the platform gives you for each end of a part. Leave it empty if the platform "
        "has none for it: then people are asked to return their place.",
        json_schema_extra=ui(section="The end", hidden="always", fold=_ENDS, labels=_HOW),
    )
    pay: Mapping[Outcome, Pay] = Field(
        default={},
        title="Paid",
        description="As usual: in full with all votes given and where nothing is left, in part where the time is over "
        "or the person withdraws, else not.",
        json_schema_extra=ui(fold=_ENDS, labels=_HOW | {"": "as usual"}),
    )
    return_address: str = Field(
        default="",
        max_length=500,
        title="Address to return to",
        description="With {code}, {external_id}, {session_id} or another parameter of the link in braces. Leave empty "
        "for the platform's own.",
        json_schema_extra=ui(hidden="always", fold=_ENDS),
    )
    protocol: Protocol = Field(default=Protocol(), json_schema_extra=ui(widget="none"))

    @property
    def platform(self) -> Recruiter:
        """Where its people come from."""
        return recruiter_by(self.recruiter, self.parameter)

    @property
    def address_back(self) -> str:
        """The address to return to: the researcher's, or the platform's own."""
        return self.return_address or self.platform.return_address

    @property
    def minutes_per_person(self) -> int | None:
        """After so many minutes somebody's part is over, in time to enter the code on the platform."""
        return None if self.max_minutes is None else self.max_minutes - MINUTES_TO_RETURN

    @property
    def longest_wait(self) -> int | None:
        """After so many minutes without a pair a part ends; None for never."""
        chosen = self.protocol.wait_minutes
        if chosen is None and self.platform.person:
            return USUAL_WAIT_MINUTES
        return chosen or None

    @property
    def cost_of_quota(self) -> Decimal | None:
        """What all places cost together; None where their number or the pay is not known."""
        return None if self.quota is None or self.full_pay is None else self.quota * self.full_pay

    def priced(self, amount: Decimal | None) -> str:
        """Return an amount of money as pages show it: £5.00 or 5.00 EUR; empty for None."""
        if amount is None:
            return ""
        written = f"{amount.quantize(_CENT):,}"
        return f"{self.currency}{written}" if len(self.currency) == 1 else f"{written} {self.currency}".strip()

    def paid(self, outcome: str, votes: int, by_hand: str = "") -> Pay:
        """Return what somebody is paid. Who gave no vote has no part that could be paid in part.

        Args:
            by_hand: what the researcher has decided of their pay; empty where nothing was.
        """
        pay = Pay(by_hand or self.pay.get(Outcome(outcome)) or USUAL_PAY[Outcome(outcome)])
        return Pay.NOTHING if pay is Pay.PART and not votes and not by_hand else pay
