"""How a vote of an evaluation is asked for: sampled, or drawn from the probability that the server tells.

Either way it has the same law. A drawn vote's number follows from the run and the slot, so that the same command gives
the same vote for the same probability. One request tells the probability of a pair in one order: where the same two
objects meet again, as kept states of a chain that stays where it is do, nothing is asked.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

import numpy as np

import sampler
from prefmh_web.endpoints import judge_calls
from prefmh_web.endpoints.errors import EndpointError
from prefmh_web.endpoints.mixed_votes import votes_by_either
from prefmh_web.endpoints.models import Endpoint

DRAWN: sampler.VoteSource = "log-probabilities"
_BITS = 53
Ask = Callable[[], tuple[float, int] | EndpointError]
"""What asks for a vote: 1 if it is for the pair's proposal and the replies that it took, or why there is none."""


@dataclass(frozen=True)
class Voting:
    """Who votes and how.

    Args:
        endpoint: who.
        source: "sampled" or "log-probabilities".
        settings: the hash of settings.json.
    """

    endpoint: Endpoint
    source: sampler.VoteSource
    settings: str
    # By question, the two objects and which of them is shown first. Of two that ask at once, either may be kept.
    _known: dict[Any, float] = field(default_factory=dict, repr=False, compare=False)

    def asks(self, pair: judge_calls.Pair, first: bool, name: str) -> Ask:
        """Return what asks for one vote.

        Args:
            first: whether the pair's proposal is shown first.
            name: of the slot, which its number follows from.
        """
        if self.source == DRAWN:
            return lambda: self._drawn(pair, first, number_of(self.settings, name))
        return lambda: _came(judge_calls.votes_by_sampling(self.endpoint, pair, [first], np.random.default_rng()))

    def _drawn(self, pair: judge_calls.Pair, first: bool, number: float) -> tuple[float, int] | EndpointError:
        key = pair.criterion, pair.current, pair.proposal, first
        known = {first: self._known[key]} if key in self._known else {}
        if self.endpoint.samples_plainly:
            votes = votes_by_either(
                self.endpoint, pair, [first], [number], np.random.default_rng(), known=known, sampled=()
            )
        else:
            votes = judge_calls.votes_by_log_probabilities(self.endpoint, pair, [first], [number], known)
        if votes.cast and votes.cast[0].preference is not None:
            self._known[key] = votes.cast[0].preference
        return _came(votes)


def check(endpoint: Endpoint, source: sampler.VoteSource) -> None:
    """Check that an endpoint can vote so.

    Raises:
        OptionError: its server tells no probabilities.
    """
    if source == DRAWN and endpoint.can_log_probabilities is False:
        raise sampler.OptionError(
            "--evaluator-votes", f"must be sampled: the test of {endpoint.name!r} has found no log-probabilities"
        )


def number_of(settings: str, name: str) -> float:
    """Return the number on [0, 1) that a slot's vote is drawn with."""
    drawn = int.from_bytes(sha256(f"{settings}|{name}".encode()).digest()[:8], "big")
    return float((drawn >> (64 - _BITS)) / 2**_BITS)


def _came(votes: judge_calls.Votes) -> tuple[float, int] | EndpointError:
    return votes.failure if votes.failure is not None else (float(votes.cast[0].for_proposal), votes.cast[0].asks)
