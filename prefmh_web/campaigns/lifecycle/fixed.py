"""What is fixed once a campaign has started, and why: a sentence for each field that somebody tries to change."""

from __future__ import annotations

from collections.abc import Iterable

from prefmh_web.campaigns.errors import NotPossible
from prefmh_web.campaigns.models import Campaign
from prefmh_web.config import CampaignConfig, Change, Fixed, fixed_at

_BUDGET = ("study", "budget")


def demand_allowed(campaign: Campaign, changed: Iterable[Change]) -> None:
    """Demand that whatever is fixed stays as it was.

    Raises:
        NotPossible: something does not; the message names it, and says why.
    """
    for change in changed:
        if reason := why_not(campaign, change):
            raise NotPossible(f"{reason} Nothing was saved.")


def why_not(campaign: Campaign, change: Change) -> str:
    """Return why a change of a started campaign is not possible; nothing where it is."""
    if change.path == _BUDGET:
        return _why_not_raised(campaign, change)
    if change.path[0] == "caps" and not campaign.is_under_way:
        return "Only the caps of a running or paused campaign can be changed."
    found = fixed_at(CampaignConfig, change.path)
    return "" if found is None else found.sentence


def _why_not_raised(campaign: Campaign, change: Change) -> str:
    """A budget is only raised, and while the campaign goes on: what is left decides whether it ends, and a replay would
    find that it could have gone on.
    """
    label = "Budget, in answers"
    if change.old is None or change.new is None or change.new < change.old:
        now = "none" if change.old is None else change.old
        why = "votes of all steps are set aside from it, so it can only be raised"
        return f"{Fixed(label, why).sentence} It is {now}."
    if campaign.status == Campaign.Status.FINISHED:
        return f"“{label}” cannot be raised: the campaign is finished."
    return ""
