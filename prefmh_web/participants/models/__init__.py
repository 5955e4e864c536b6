"""Who people are, apart from their votes. Nothing in `campaigns` refers to these rows, so they can be deleted while the
record stays whole.

    Participant      a person, as a platform names them to one owner of campaigns
    Participation    a participant in one campaign, and the annotator that they are there
    ConsentText      a version of what they are asked to agree to
    Consent          what one of them answered
    Answer           what one of them answered to a question about the person
    PracticeAnswer   what one of them chose at a pair to practise on
    Check            a trial between their pairs that is no vote
"""

from prefmh_web.participants.models.people import (
    LONGEST_ID,
    Answer,
    Consent,
    ConsentText,
    Participant,
    Participation,
    Stage,
)
from prefmh_web.participants.models.trials import Check, PracticeAnswer

__all__ = [
    "LONGEST_ID",
    "Answer",
    "Check",
    "Consent",
    "ConsentText",
    "Participant",
    "Participation",
    "PracticeAnswer",
    "Stage",
]
