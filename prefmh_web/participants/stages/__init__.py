"""The stages between arrival and end. Each is shown where the protocol has something for it, in this order:

    stage            passed by                              or the part ends as
    arrival          joining, and agreeing where that is asked
    questions        answering what is required             not eligible
    instructions     a button
    practice         an answer to each pair, right or wrong
    comprehension    the right answers                      not understood, after the last try
    votes            the last vote asked of the person      completed, nothing left, time over
    last-questions   answering what is required
    end

Whoever would come to practice, or where there is none to the votes, takes a place first; without a free one the part
ends as not eligible. Consent stands at
the door, before anything is stored, and is asked again when its text changes: see `consent.py`. From every stage a part
can end as withdrawn, ended by the researcher, or time over.

To add a stage: a name in `models.Stage`, a file like `instructions.py`, and its place in `ORDER`.
"""

from django.utils.translation import gettext_lazy as _

from prefmh_web.config import Protocol
from prefmh_web.participants.models import Stage
from prefmh_web.participants.stages.comprehension import Comprehension
from prefmh_web.participants.stages.instructions import Instructions
from prefmh_web.participants.stages.practice import Practice
from prefmh_web.participants.stages.questions import Questions
from prefmh_web.participants.stages.stage import AStage, Result

STAGES: tuple[AStage, ...] = (
    Questions(Stage.QUESTIONS, _("About you"), is_last=False),
    Instructions(),
    Practice(),
    Comprehension(),
    Questions(Stage.LAST_QUESTIONS, _("A few last questions"), is_last=True),
)
"""The stages that are a page of their own."""
ORDER = tuple(Stage)
_PAGES = {stage.name: stage for stage in STAGES}


def page_of(stage: str) -> AStage | None:
    """Return the page of a stage; None for the votes and the end."""
    return _PAGES.get(Stage(stage))


def next_stage(stage: Stage, protocol: Protocol) -> Stage:
    """Return what comes after a stage that is not the last."""
    rest = ORDER[ORDER.index(stage) + 1 :]
    return next(each for each in rest if each not in _PAGES or _PAGES[each].is_asked(protocol))


def needs_place(stage: Stage, protocol: Protocol) -> bool:
    """True if nobody is at a stage without a place: at the votes, and from practice on where there is some, so that
    nobody practises for nothing.
    """
    first = Stage.PRACTICE if protocol.practice else Stage.VOTES
    return stage in ORDER[ORDER.index(first) : ORDER.index(Stage.VOTES) + 1]


__all__ = ["ORDER", "STAGES", "AStage", "Result", "needs_place", "next_stage", "page_of"]
