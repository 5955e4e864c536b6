"""A campaign's life: drafts, starting, pausing and resuming, and who has access.

drafts         saving a setup
model_start    testing and freezing the models that a campaign asks
status         start, pause, resume, discard: the one door through which a campaign's status changes
access         members, links and annotators
"""

from prefmh_web.campaigns.errors import Deleted, NotPossible
from prefmh_web.campaigns.lifecycle.status import discard, note_trouble, pause, request_start, resume, start

__all__ = ["Deleted", "NotPossible", "discard", "note_trouble", "pause", "request_start", "resume", "start"]
