"""What an annotator's page shows now: a pair, or why there is none. Page load, form post and socket all ask here."""

import time
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Sum
from django.db.models.expressions import RawSQL
from django.template.loader import render_to_string

import sampler
from prefmh_web.campaigns.engine import leases
from prefmh_web.campaigns.models import Annotator, Campaign, Lease, Side, State
from prefmh_web.campaigns.proposals import drawing

# All pages of a campaign show the same progress bar. Its sum goes over every chain, so a vote does not wait for it
# when another page of this process has asked in the last second.
_PROGRESS_S = 1.0
# As SQL, since every vote asks it: a queryset's subquery costs more to put into words than to answer.
_VOTES_CAST = RawSQL("(SELECT COUNT(*) FROM campaigns_vote v WHERE v.annotator_id = campaigns_annotator.id)", ())
_HOLDS_A_LEASE = RawSQL(
    "EXISTS (SELECT 1 FROM annotate_lease l WHERE l.annotator_id = campaigns_annotator.id AND l.ended_at IS NULL)", ()
)
_progress: dict[tuple[int, datetime | None], tuple[float, int]] = {}
# The same for whether the making of pairs is held up, which only pages that wait ask.
_held_up: dict[int, tuple[float, bool]] = {}


@dataclass(frozen=True)
class Option:
    """One of the two objects to choose from.

    `pieces` are of a text: its words with what they are beside the other text's ("common", "same" or "changed").
    """

    side: Side
    state: State
    pieces: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Panel:
    """One annotator's view of their campaign."""

    campaign: Campaign
    annotator: Annotator
    lease: Lease | None
    votes: int
    steps_decided: int
    steps: int

    @property
    def standing(self) -> str:
        """pair, resting, waiting, or the campaign's status when that is why there is no pair."""
        if self.lease:
            return "pair"
        if not self.campaign.is_running:
            return self.campaign.status
        return "resting" if self.annotator.resting else "waiting"

    @property
    def is_held_up(self) -> bool:
        """True when there may be no pair because none could be made, whatever others do."""
        return self.standing == "waiting" and _is_held_up(self.campaign)

    @property
    def percent(self) -> int:
        """How much of the campaign is decided."""
        return 100 * self.steps_decided // self.steps if self.steps else 0

    @property
    def options(self) -> list[Option]:
        """The two objects of the pair, left and right."""
        left, right = self.lease.left, self.lease.right
        pieces = ((), ())
        if self.campaign.objects_kind == "texts":
            pieces = sampler.compare_texts(left.content, right.content)
        return [Option(Side.LEFT, left, pieces[0]), Option(Side.RIGHT, right, pieces[1])]

    def html(self) -> str:
        """Return the fragment that pages swap in by its id."""
        return render_to_string("annotate/_panel.html", {"panel": self})


def panel_for(annotator_id: int) -> Panel:
    """Return what to show, leasing a question to the annotator if there is one for them."""
    known = {"votes_cast": _VOTES_CAST, "holds_a_lease": _HOLDS_A_LEASE}
    annotator = Annotator.objects.select_related("campaign").annotate(**known).get(pk=annotator_id)
    campaign = annotator.campaign
    return Panel(
        campaign=campaign,
        annotator=annotator,
        lease=leases.take(annotator, may_hold_one=annotator.holds_a_lease),
        votes=annotator.votes_cast,
        steps_decided=_steps_decided(campaign),
        steps=campaign.recipe["chains"] * campaign.recipe["steps"],
    )


def _steps_decided(campaign: Campaign) -> int:
    # Started again under the same number, as tests do, it is another one.
    key, now = (campaign.pk, campaign.started_at), time.monotonic()
    asked_at, decided = _progress.get(key, (float("-inf"), 0))
    if not campaign.is_running or now - asked_at > _PROGRESS_S:
        decided = campaign.chains.aggregate(decided=Sum("step"))["decided"] or 0
        _progress[key] = now, decided
    return decided


def _is_held_up(campaign: Campaign) -> bool:
    now = time.monotonic()
    asked_at, is_held_up = _held_up.get(campaign.pk, (float("-inf"), False))
    if now - asked_at > _PROGRESS_S:
        is_held_up = drawing.is_overdue(campaign)
        _held_up[campaign.pk] = now, is_held_up
    return is_held_up
