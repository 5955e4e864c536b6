"""A campaign's life: drafts, starting, pausing and resuming, and who has access.

drafts         saving a setup
model_start    testing and freezing the models that a campaign asks
status         start, pause, resume, finish, discard: the one door through which a campaign's status changes
extension      further steps by a researcher's decision
warm_up        the choice of how far a campaign walks, at the end of its warm-up
access         members, links and annotators
acceptance     models that a judge's server has turned to count as that judge
changes        a campaign's configuration: the one door through which it changes
fixed          what is fixed after the start, and why
deletion       deleting a campaign with all its data, and archiving one
caps           caps on what models may take: the one door through which those of a started campaign change
scorers        the scorers that a campaign starts with, and asking one again
"""

from prefmh_web.campaigns.errors import Deleted, NotPossible
from prefmh_web.campaigns.lifecycle.status import (
    discard,
    finish_now,
    note_trouble,
    pause,
    pause_at_cap,
    request_start,
    resume,
    start,
)

__all__ = [
    "Deleted",
    "NotPossible",
    "discard",
    "finish_now",
    "note_trouble",
    "pause",
    "pause_at_cap",
    "request_start",
    "resume",
    "start",
]
