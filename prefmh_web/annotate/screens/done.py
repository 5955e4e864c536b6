"""The person's part is over: thanks, the code, and the way back to where they came from."""

from collections.abc import Mapping
from typing import Any

from prefmh_web.annotate.screens.screen import Response, ResponseError
from prefmh_web.annotate.visit import Visit
from prefmh_web.participants import completion


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
        """Settle how the part ended, and return the code and the way back.

        Raises:
            ValueError: it is not due.
        """
        if visit.outcome is None:
            raise ValueError("the person's part is not over")
        return {"end": completion.end_of(visit.annotator, visit.campaign, visit.outcome), "votes": visit.votes}

    def parse(self, fields: Mapping[str, object]) -> Response:
        """Refuse: it has no buttons.

        Raises:
            ResponseError: always.
        """
        raise ResponseError("there is nothing to answer")
