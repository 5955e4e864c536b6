"""What every way to ask a model offers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import sampler
from prefmh_web.campaigns.engine.open_comparisons import Seen
from prefmh_web.campaigns.models import Comparison, Judge, ReplyIdentity, State
from prefmh_web.endpoints.errors import EndpointError
from prefmh_web.endpoints.identity import Admitted, Identity
from prefmh_web.endpoints.models import Endpoint
from sampler import judges as model_judges


@dataclass(frozen=True)
class Asking:
    """A turn that has been claimed: which of a frozen judge's answers to ask for.

    `slots` are the places of the answers among the judge's N; `state` is the object to rate, where objects are rated.
    """

    comparison: Comparison
    judge: Judge
    slots: Sequence[int]
    state: State | None = None


@dataclass(frozen=True)
class Answers:
    """What came back: answers of the kind's own type, what their replies said they were from, and why others are
    missing; of replies with log-probabilities, whether they were those of a distribution.
    """

    given: Sequence[Any]
    identities: Sequence[Identity | None]
    failure: EndpointError | None
    sound: Sequence[bool] = ()


Ask = Callable[[Admitted], Awaitable[Answers]]
"""Asks a model, on the loop on which servers are asked."""


class JudgeKind(Protocol):
    """A way to ask a model. Nothing here holds a lock while the model is asked."""

    objects: int
    """How many objects stand in one prompt."""

    def wanted(self, comparison: Comparison, judge: Judge, seen: Seen) -> Asking | None:
        """Return what a judge still has to answer on a locked comparison, without slots if that is nothing; None where
        another turn brings it.
        """
        ...

    def most_requests(self, answers: int, endpoint: Endpoint) -> int:
        """Return how many requests so many answers take at most, every unreadable reply asked again included."""
        ...

    def asks(self, asking: Asking, endpoint: Endpoint) -> Ask:
        """Return what asks the endpoint: all that the database has to say is read before. Nothing is stored yet."""
        ...

    def store(self, asking: Asking, comparison: Comparison, answers: Answers, rows: Rows, seen: Seen) -> None:
        """Store answers, on the locked comparison; those whose identity does not count are dropped."""
        ...

    def prompt(
        self, kind: str, question: str, rule: sampler.RuleConfig, *, has_context: bool = False
    ) -> model_judges.Prompt:
        """Return the words in which this version of the program asks.

        Args:
            kind: of the objects.
            has_context: whether columns of a list are shown with them.
        """
        ...

    def own_prompt(
        self, template: model_judges.PromptTemplate, question: str, rule: sampler.RuleConfig
    ) -> model_judges.OwnPrompt:
        """Return the researcher's words with the question in them."""
        ...

    def choices(self, rule: sampler.RuleConfig) -> tuple[str, ...]:
        """Return what a reply may be."""
        ...


Rows = dict[Identity, ReplyIdentity]
"""Those identities whose replies count, with their rows."""
