"""What every screen of the voting page offers, and what comes back from it."""

from collections.abc import Mapping
from typing import Any, Protocol

from prefmh_web.campaigns.models import Annotator
from prefmh_web.voting.visit import Visit


class ResponseError(ValueError):
    """A message that no page of ours sends; the text names the field."""


class Response(Protocol):
    """What a person did on a screen."""

    def respond(self, annotator: Annotator) -> None:
        """Do what the person asked for. Safe to repeat.

        Raises:
            Comparison.DoesNotExist: the annotator was never shown this pair.
        """


class Screen(Protocol):
    """One screen. Its template, `templates/voting/screens/<name>.html`, gets its `context` as `shown`."""

    name: str
    choices: tuple[str, ...]
    """What its buttons send as `choice`; no other screen's send the same."""

    def is_due(self, visit: Visit) -> bool:
        """Say whether this is what the person should see; the first screen that is due is shown."""

    def standing(self, visit: Visit) -> str:
        """Return in one word what it says: a CSS class, and how pages tell one screen from another."""

    def context(self, visit: Visit) -> Mapping[str, Any]:
        """Return what its template shows."""

    def parse(self, fields: Mapping[str, object]) -> Response:
        """Read a message with one of its choices.

        Raises:
            ResponseError: a field is not what the page would send.
        """
