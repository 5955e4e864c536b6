"""The tabs of one campaign: each has an address and takes a right. A new one is one line here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from prefmh_web.accounts.roles import SignedInRequest
from prefmh_web.campaigns.lifecycle import access
from prefmh_web.campaigns.lifecycle.access import Right


@dataclass(frozen=True)
class Tab:
    """One page of a started campaign: its label, and the name of its address."""

    label: str
    address: str
    right: Right = Right.WATCH


TABS = (
    Tab("Overview", "console:campaign"),
    Tab("Steps", "console:steps"),
    Tab("People", "console:people", Right.RUN),
    Tab("Convergence", "console:convergence"),
    Tab("Results", "console:results"),
    Tab("Setup", "console:edit"),
    Tab("Record", "console:record"),
)


def frame(request: SignedInRequest, campaign: access.SeenCampaign) -> dict[str, Any]:
    """Return what `console/campaign_base.html` needs: the campaign, the reader's rights and the tabs that they may see.

    A draft has no tabs.
    """
    right = access.right_in(campaign, request.user)
    return {
        "campaign": campaign,
        "may_run": right >= Right.RUN,
        "may_own": right >= Right.OWN,
        "tabs": [] if campaign.is_draft else [tab for tab in TABS if tab.right <= right],
    }
