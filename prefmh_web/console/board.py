"""What a campaign's page shows now: a draft's file, or a started campaign's progress."""

from dataclasses import dataclass

from django.template.loader import render_to_string

from prefmh_web.campaigns.models import Campaign, State
from prefmh_web.campaigns.progress import Progress, progress_of

_PREVIEW = 6


@dataclass(frozen=True)
class Board:
    """One campaign as its owner sees it."""

    campaign: Campaign
    progress: Progress | None
    preview: list[State]
    objects: int

    def html(self) -> str:
        """Return the fragment that the page swaps in by its id."""
        return render_to_string("console/_board.html", {"board": self})


def board_for(campaign: Campaign) -> Board:
    """Return what to show of a campaign."""
    return Board(
        campaign=campaign,
        progress=None if campaign.is_draft else progress_of(campaign),
        preview=list(campaign.states.all()[:_PREVIEW]) if campaign.is_draft else [],
        objects=campaign.states.count(),
    )
