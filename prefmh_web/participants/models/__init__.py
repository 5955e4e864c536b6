"""Who people are, apart from their votes. Nothing in `campaigns` refers to these rows, so they can be deleted while the
record stays whole.

    Participant      a person, as a platform names them to one owner of campaigns
    Participation    a participant in one campaign, and the annotator that they are there
    Check            a trial between their pairs that is no vote
"""

from prefmh_web.participants.models.people import (
    LONGEST_ID,
    Check,
    Participant,
    Participation,
    Stage,
)

__all__ = [
    "LONGEST_ID",
    "Check",
    "Participant",
    "Participation",
    "Stage",
]
