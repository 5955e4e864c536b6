"""A campaign's life: drafts, starting, pausing and resuming, and who has access.

changes        a campaign's configuration: the one door through which it is created, changed and lengthened; the choice
               of how far it walks, at the end of its warm-up
model_start    what Start makes sure of where models judge, write or score
status         start, pause, resume, finish, discard, delete, archive: the one door through which a campaign's status
               changes; asking scorers again, accepting models that a judge's server has turned to
access         members, links, voters, panelists' names
judge_trials   a draft's judge tried on sample pairs
"""

from prefmh_web.campaigns.lifecycle.status import discard, finish_now, pause, request_start, resume, start
from prefmh_web.campaigns.models import Deleted, NotPossible
