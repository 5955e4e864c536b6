"""The person's part is over: thanks, the code, and the way back to where they came from."""

from collections.abc import Mapping
from typing import Any

from prefmh_web.participants import completion, stages
from prefmh_web.participants.recruiting import terms_of
from prefmh_web.voting.screens.screen import Response, ResponseError
from prefmh_web.voting.visit import Visit


class Done:
    """The last screen."""

    name = "done"
    choices: tuple[str, ...] = ()

    def is_due(self, visit: Visit) -> bool:
        """True once the person's part is over and no pair is theirs."""
        return visit.outcome is not None

    def standing(self, visit: Visit) -> str:
        """Return done."""
        return "done"

    def context(self, visit: Visit) -> dict[str, Any]:
        """Settle how the part ended, and return the code and the way back; or that the last questions come first.

        Raises:
            ValueError: it is not due.
        """
        if visit.outcome is None:
            raise ValueError("the person's part is not over")
        end = completion.end_of(visit.annotator, visit.campaign, visit.outcome)
        was_sent = terms_of(visit.campaign).recruiter.knows_people
        is_asked_more = was_sent and stages.ask_last_questions(visit.annotator, end.outcome)
        return {"end": end, "votes": visit.votes, "is_asked_more": is_asked_more}

    def parse(self, fields: Mapping[str, object]) -> Response:
        """Refuse: it has no buttons.

        Raises:
            ResponseError: always.
        """
        raise ResponseError("there is nothing to answer")
