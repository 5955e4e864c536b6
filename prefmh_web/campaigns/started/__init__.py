"""What is fixed once a campaign has started, as values in memory, and the way between rows and the sampler's values.

campaign    judges, budgets, rule: immutable, kept as long as the process lives
plans       the sampler's plan: seed, space, kernel, budgets
cheap       the next comparison of a chain whose kernel is cheap, from memory
context     what is shown with an object of the further columns of its list
objects     an object as a row, as the sampler's state, and as what presenters show
"""

from __future__ import annotations

from prefmh_web.campaigns.started.campaign import StartedCampaign, StartedJudge, started_campaign
from prefmh_web.campaigns.started.objects import context_of, contexts_by_content
from prefmh_web.campaigns.started.plans import plan_of, position_of

__all__ = [
    "StartedCampaign",
    "StartedJudge",
    "context_of",
    "contexts_by_content",
    "plan_of",
    "position_of",
    "started_campaign",
]
