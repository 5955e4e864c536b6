"""The record: what was asked, who answered what, and what was decided.

State changes have one door each: `engine/transitions.py` for comparisons, votes, ratings and the chains' steps,
`engine/leases.py` for leases, `engine/programs.py` for those of programs, `lifecycle/programs.py` for their tokens,
`engine/openings.py` for chains that open later, `engine/parking.py` for steps that are parked, `lifecycle/unparking.py`
for what becomes of them, `proposals/scoring.py` for scores, `lifecycle/drafts.py` for drafts, `lifecycle/panels.py` for
seats, `lifecycle/status.py` for starting (which makes judges, chains, and the objects that these start at), pausing and
resuming, `engine/spending.py` for what models take, `lifecycle/caps.py` for caps on that, `lifecycle/events.py` for
what researchers did, `lifecycle/tryouts.py` for tries of judges, `model_judges/reasons.py` for reasons of votes,
`model_judges/repeated.py` for what models say of people's repeats, `proposals/measuring.py` for what is measured of
objects, `catalogs/importing.py` for files and their objects, `setup/apply.py` for keys of created campaigns,
`lifecycle/webhooks.py` for webhooks, `dispatch.py` for what they are told, `api/delivery.py` for what came of that;
annotators are written by the voters' pages. What must never happen stands as a constraint here.
"""

from prefmh_web.campaigns.models.campaign import Campaign, Judge, ReplyIdentity, backend_of_space
from prefmh_web.campaigns.models.events import CampaignEvent
from prefmh_web.campaigns.models.extensions import Extension
from prefmh_web.campaigns.models.keys import CreationKey
from prefmh_web.campaigns.models.leases import Lease, Problem
from prefmh_web.campaigns.models.measured import Measured
from prefmh_web.campaigns.models.objects import Catalog, State
from prefmh_web.campaigns.models.openings import OF_THE_START, ChainOpening
from prefmh_web.campaigns.models.parking import Parking
from prefmh_web.campaigns.models.pending import PrefetchedProposal, Turn
from prefmh_web.campaigns.models.people import Annotator, Invitation, Membership, new_invitation_token
from prefmh_web.campaigns.models.programs import JudgeToken, ProgramLease
from prefmh_web.campaigns.models.reasons import VoteReason
from prefmh_web.campaigns.models.repeats import RepeatQuestion
from prefmh_web.campaigns.models.scores import CampaignScorer, Score
from prefmh_web.campaigns.models.seats import Seat
from prefmh_web.campaigns.models.spending import CapChange, ModelUsage
from prefmh_web.campaigns.models.steps import Chain, Comparison, Rating, Side, Vote
from prefmh_web.campaigns.models.tryouts import Tryout, TryoutPair
from prefmh_web.campaigns.models.webhooks import Delivery, DeliveryAttempt, Webhook

__all__ = [
    "OF_THE_START",
    "Annotator",
    "Campaign",
    "CampaignEvent",
    "CampaignScorer",
    "CapChange",
    "Catalog",
    "Chain",
    "ChainOpening",
    "Comparison",
    "CreationKey",
    "Delivery",
    "DeliveryAttempt",
    "Extension",
    "Invitation",
    "Judge",
    "JudgeToken",
    "Lease",
    "Measured",
    "Membership",
    "ModelUsage",
    "Parking",
    "PrefetchedProposal",
    "Problem",
    "ProgramLease",
    "Rating",
    "RepeatQuestion",
    "ReplyIdentity",
    "Score",
    "Seat",
    "Side",
    "State",
    "Tryout",
    "TryoutPair",
    "Turn",
    "Vote",
    "VoteReason",
    "Webhook",
    "backend_of_space",
    "new_invitation_token",
]
