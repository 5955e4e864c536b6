"""What settles a step: one file for each kind of evidence, registered in `DECISIONS` under the name that rules use.

votes      a tally of who preferred which object
ratings    whole numbers that models gave each object alone
scores     numbers that scorers gave each object
none       nothing: every proposal is accepted (acceptance.py)
"""

from __future__ import annotations

from typing import Protocol

import sampler
from prefmh_web.campaigns.decisions import acceptance, ratings, scores, votes
from prefmh_web.campaigns.models import Campaign, Comparison
from prefmh_web.campaigns.started import started_campaign


class Decision(Protocol):
    """How one kind of evidence settles a step."""

    def verdict_at_opening(self, comparison: Comparison) -> sampler.Verdict:
        """Return what is known of a comparison that has just been opened."""
        ...


DECISIONS: dict[str, Decision] = {"votes": votes, "ratings": ratings, "scores": scores, "none": acceptance}


def decision_of(campaign: Campaign) -> Decision:
    """Return what settles the steps of a started campaign."""
    return DECISIONS[started_campaign(campaign).config.rule.evidence]
