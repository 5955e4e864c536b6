"""What a campaign is: one declaration, of which the form, the file, the API and the record are made.

campaign    the configuration of a campaign
study       the part of it about people
misfits     where its parts do not fit together, though each is what it should be
changes     what differs between two, and what is fixed after the start
public      what of it others may see
"""

from prefmh_web.config.campaign import (
    LARGEST_SEED,
    LONGEST_NAME,
    Answering,
    CampaignConfig,
    Caps,
    Language,
    Name,
    UploadedFile,
    json_schema,
)
from prefmh_web.config.changes import Change, Fixed, changes_between, fixed_at
from prefmh_web.config.misfits import misfits
from prefmh_web.config.public import HIDDEN, public
from prefmh_web.config.settings_page import settings_page
from prefmh_web.config.study import (
    GREATEST_NUMBER,
    LONGEST_ANSWER,
    LONGEST_CONTENT,
    MINUTES_TO_RETURN,
    USUAL_PAY,
    USUAL_WAIT_MINUTES,
    Check,
    EarlierCampaign,
    Outcome,
    OwnPair,
    Pay,
    PracticePair,
    Protocol,
    Question,
    Study,
)
from sampler.declared import Declared

__all__ = [
    "GREATEST_NUMBER",
    "HIDDEN",
    "LARGEST_SEED",
    "LONGEST_ANSWER",
    "LONGEST_CONTENT",
    "LONGEST_NAME",
    "MINUTES_TO_RETURN",
    "USUAL_PAY",
    "USUAL_WAIT_MINUTES",
    "Answering",
    "CampaignConfig",
    "Caps",
    "Change",
    "Check",
    "Declared",
    "EarlierCampaign",
    "Fixed",
    "Language",
    "Name",
    "Outcome",
    "OwnPair",
    "Pay",
    "PracticePair",
    "Protocol",
    "Question",
    "Study",
    "UploadedFile",
    "changes_between",
    "fixed_at",
    "json_schema",
    "misfits",
    "public",
    "settings_page",
]
