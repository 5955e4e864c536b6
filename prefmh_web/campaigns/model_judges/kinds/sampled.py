"""Votes that the model gives itself: each is the label of one reply."""

from __future__ import annotations

from functools import partial

from prefmh_web.campaigns.model_judges.kinds.kind import Asking
from prefmh_web.campaigns.model_judges.kinds.pairs import PairVotes, Voting, presentations, unseeded
from prefmh_web.endpoints import judge_calls
from prefmh_web.endpoints.models import Endpoint


class Sampled(PairVotes):
    """One reply, one vote."""

    def most_requests(self, answers: int, endpoint: Endpoint) -> int:
        """Return how many requests so many votes take at most."""
        return judge_calls.MOST_ASKS * answers

    def voting(self, asking: Asking, pair: judge_calls.Pair, endpoint: Endpoint) -> Voting:
        """Return what asks for a reply in each slot."""
        order = presentations(asking)
        return Voting(partial(judge_calls.votes_by_sampling, endpoint, pair, order, unseeded()), {})
