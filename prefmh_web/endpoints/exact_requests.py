"""A request as it would go over the wire, for people to look at; nothing is sent, and no key is read."""

from __future__ import annotations

from dataclasses import dataclass

from prefmh_web.endpoints import wire
from prefmh_web.endpoints.models import Endpoint
from prefmh_web.endpoints.servers import Dialect, Question


@dataclass(frozen=True)
class ExactRequest:
    """What is posted: below or beside the base URL, and the bytes of the body."""

    path: str
    body: bytes

    @property
    def text(self) -> str:
        """The body as text; JSON in UTF-8."""
        return self.body.decode("utf-8")


def exact_request(endpoint: Endpoint, question: Question) -> ExactRequest:
    """Return a question as the endpoint's dialect puts it.

    Raises:
        Unable: a server of this kind cannot be asked so.
    """
    server = Dialect(endpoint.dialect).server.taking(question.messages)
    return ExactRequest(server.path(endpoint.model).text, wire.written(server.body(question)))
