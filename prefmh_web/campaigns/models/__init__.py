"""The record: what was asked, who answered what, and what was decided.

State changes have one door each, which the table's docstring names: `engine/transitions.py` for comparisons, votes,
ratings and the chains' steps, `engine/leases.py` for leases, `engine/suspension.py` for suspended steps,
`engine/on_demand.py` for chains that open later, `campaigns/events.py` for events, `lifecycle/` for what researchers
do. What must never happen stands as a constraint here.
"""

from prefmh_web.campaigns.models.campaign import (
    Campaign,
    Catalog,
    Deleted,
    Judge,
    Measured,
    NotPossible,
    ReplyIdentity,
    State,
    backend_of_space,
    columns_of,
)
from prefmh_web.campaigns.models.log import EndReason, Event, JudgeTrial, ModelUsage, ReportReason, TrialPair
from prefmh_web.campaigns.models.people import Invitation, Membership, Voter, number_of, numbers_in
from prefmh_web.campaigns.models.steps import (
    OF_THE_START,
    CampaignScorer,
    Chain,
    ChainOnDemand,
    Comparison,
    Lease,
    PrefetchedProposal,
    Rating,
    Score,
    Side,
    Turn,
    Vote,
)
