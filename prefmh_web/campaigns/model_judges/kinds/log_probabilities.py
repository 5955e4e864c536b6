"""Votes drawn from the probability p that the server tells for each label, with numbers that a replay draws again.

A judge samples its votes on a pair, in one order, when the server does not tell p there. Once it has sampled one it
samples all of that pair and order: nothing about the answers decides it.
"""

from __future__ import annotations

from dataclasses import replace

import sampler
from prefmh_web.campaigns.model_judges.kinds.kind import Asking
from prefmh_web.campaigns.model_judges.kinds.pairs import (
    PairVotes,
    Voting,
    presentations,
    step_of,
    told_before,
    unseeded,
)
from prefmh_web.endpoints import judge_calls
from prefmh_web.endpoints.errors import NotTold
from prefmh_web.endpoints.identity import Admitted
from prefmh_web.endpoints.mixed_votes import votes_by_either
from prefmh_web.endpoints.models import Endpoint


class LogProbabilities(PairVotes):
    """One request for each order of the pair, and all votes drawn from it."""

    def most_requests(self, answers: int, endpoint: Endpoint) -> int:
        """Return how many requests so many votes take at most: where p is not told, they may be sampled."""
        return min(answers, 2) + (judge_calls.MOST_ASKS * answers if _may_sample(endpoint) else 0)

    def voting(self, asking: Asking, pair: judge_calls.Pair, endpoint: Endpoint) -> Voting:
        """Return what asks for p in each order that is not known yet, and draws the votes."""
        numbers = sampler.draws_of(*step_of(asking))
        uniforms = [numbers[slot] for slot in asking.slots]
        told, sampled = told_before(asking)
        known = {first: vote.preference for first, vote in told.items() if vote.preference is not None}
        order, known_from = presentations(asking), {first: vote.identity for first, vote in told.items()}

        async def ask(admitted: Admitted) -> judge_calls.Votes:
            if _may_sample(endpoint):
                return await votes_by_either(
                    endpoint, pair, order, uniforms, unseeded(), known=known, sampled=sampled, admitted=admitted
                )
            votes = await judge_calls.votes_by_log_probabilities(
                endpoint, pair, order, uniforms, known, admitted=admitted
            )
            return _explained(votes, endpoint)

        return Voting(ask, known_from)


def _may_sample(endpoint: Endpoint) -> bool:
    """Say whether *Test* found sampled votes of this endpoint, model and parameters untruncated."""
    return endpoint.samples_plainly is True


def _explained(votes: judge_calls.Votes, endpoint: Endpoint) -> judge_calls.Votes:
    if not isinstance(votes.failure, judge_calls.UNTOLD):
        return votes
    why = endpoint.sampling_words or "whether it truncates is not tested"
    return replace(votes, failure=NotTold(f"{votes.failure.reason}; and a vote cannot be sampled instead: {why}"))
