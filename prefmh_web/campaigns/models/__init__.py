"""The record: what was asked, who answered what, and what was decided.

State changes have one door each: `engine/transitions.py` for comparisons, votes, ratings and the chains' steps,
`engine/leases.py` for leases, `engine/openings.py` for chains that open later, `engine/parking.py` for steps that are
parked, `engine/rounds.py` for chains that become longer, `proposals/scoring.py` for scores, `lifecycle/unparking.py`
for what becomes of them, `lifecycle/drafts.py` for drafts, `lifecycle/panels.py` for seats, `lifecycle/status.py` for
starting (which makes judges, chains, and the objects that these start at), pausing and resuming, `engine/spending.py`
for what models take, `lifecycle/caps.py` for caps on that,
`lifecycle/events.py` for what researchers did, `lifecycle/tryouts.py` for tries of judges,
`model_judges/reasons.py` for reasons of votes, `model_judges/repeated.py` for what models say of people's repeats,
`catalogs/importing.py` for files and their objects, `setup/apply.py` for keys of created campaigns;
annotators are written by the voters' pages. What must never happen stands as a constraint here.
"""

from prefmh_web.campaigns.models.campaign import Campaign, Judge, ReplyIdentity, backend_of_space
from prefmh_web.campaigns.models.events import CampaignEvent
from prefmh_web.campaigns.models.extensions import Extension
from prefmh_web.campaigns.models.keys import CreationKey
from prefmh_web.campaigns.models.languages import Translation
from prefmh_web.campaigns.models.leases import Lease, Problem
from prefmh_web.campaigns.models.objects import Catalog, State
from prefmh_web.campaigns.models.openings import OF_THE_START, ChainOpening
from prefmh_web.campaigns.models.parking import Parking
from prefmh_web.campaigns.models.pending import PrefetchedProposal, Turn
from prefmh_web.campaigns.models.people import Annotator, Invitation, Membership, new_invitation_token
from prefmh_web.campaigns.models.reasons import VoteReason
from prefmh_web.campaigns.models.repeats import RepeatQuestion
from prefmh_web.campaigns.models.rounds import FurtherRound
from prefmh_web.campaigns.models.scores import CampaignScorer, Score
from prefmh_web.campaigns.models.seats import Seat
from prefmh_web.campaigns.models.spending import CapChange, ModelUsage
from prefmh_web.campaigns.models.steps import Chain, Comparison, Rating, Side, Vote
from prefmh_web.campaigns.models.tryouts import Tryout, TryoutPair

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
    "Extension",
    "FurtherRound",
    "Invitation",
    "Judge",
    "Lease",
    "Membership",
    "ModelUsage",
    "Parking",
    "PrefetchedProposal",
    "Problem",
    "Rating",
    "RepeatQuestion",
    "ReplyIdentity",
    "Score",
    "Seat",
    "Side",
    "State",
    "Translation",
    "Tryout",
    "TryoutPair",
    "Turn",
    "Vote",
    "VoteReason",
    "backend_of_space",
    "new_invitation_token",
]
