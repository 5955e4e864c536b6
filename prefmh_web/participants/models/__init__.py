"""Who people are, apart from their votes. Nothing in `campaigns` refers to these rows, so they can be deleted while the
record stays whole.

    Recruitment      how people come to a campaign, and what they get at its end
    Participant      a person, as a platform names them to one owner of campaigns
    Participation    a participant in one campaign, and the annotator that they are there
    Check            a trial between their pairs that is no vote
"""

from prefmh_web.participants.models.people import Check, Participant, Participation
from prefmh_web.participants.models.recruitment import (
    LONGEST_ID,
    MINUTES_TO_RETURN,
    USUAL_PAY,
    USUAL_WAIT_MINUTES,
    Outcome,
    Pay,
    Recruitment,
    Stage,
)

__all__ = [
    "LONGEST_ID",
    "MINUTES_TO_RETURN",
    "USUAL_PAY",
    "USUAL_WAIT_MINUTES",
    "Check",
    "Outcome",
    "Participant",
    "Participation",
    "Pay",
    "Recruitment",
    "Stage",
]
