"""Votes drawn from log-probabilities where the server tells them, and sampled where it does not.

A server tells the log-probabilities of its twenty likeliest tokens. Where a label is not among them, p is not known,
but the model can still be asked for its vote.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np

from prefmh_web.endpoints.identity import Admitted
from prefmh_web.endpoints.judge_calls import UNTOLD, Pair, Votes, votes_by_log_probabilities, votes_by_sampling
from prefmh_web.endpoints.models import Endpoint


async def votes_by_either(
    endpoint: Endpoint,
    pair: Pair,
    proposal_first: Sequence[bool],
    uniforms: Sequence[float],
    rng: np.random.Generator,
    *,
    known: Mapping[bool, float] | None = None,
    sampled: Collection[bool] = (),
    admitted: Admitted | None = None,
) -> Votes:
    """Draw the votes from p; sample those under a presentation whose p the server does not tell.

    Either way a vote has the law of a sampled one. Which way is taken is settled before any vote under the
    presentation is drawn, by the log-probabilities alone, so it cannot depend on an answer.

    Args:
        proposal_first, uniforms, known, admitted: as in `votes_by_log_probabilities`.
        rng: as in `votes_by_sampling`.
        sampled: presentations of this pair that votes have been sampled under before: p is not asked for again.
    """
    by_p = [place for place, first in enumerate(proposal_first) if first not in sampled]
    drawn = _moved(
        by_p,
        await votes_by_log_probabilities(
            endpoint,
            pair,
            [proposal_first[place] for place in by_p],
            [uniforms[place] for place in by_p],
            known,
            admitted=admitted,
        ),
    )
    if drawn.failure is not None and not isinstance(drawn.failure, UNTOLD):
        return drawn
    untold = drawn.untold | frozenset(sampled)
    rest = [place for place, first in enumerate(proposal_first) if first in untold]
    if not rest:
        return drawn
    shown = [proposal_first[place] for place in rest]
    return _together(drawn, _moved(rest, await votes_by_sampling(endpoint, pair, shown, rng, admitted)))


def _moved(places: Sequence[int], votes: Votes) -> Votes:
    """Return votes that were asked for as a part of more, with their places among all."""
    return replace(votes, cast=tuple(replace(vote, place=places[vote.place]) for vote in votes.cast))


def _together(drawn: Votes, sampled: Votes) -> Votes:
    return Votes(
        tuple(sorted((*drawn.cast, *sampled.cast), key=lambda vote: vote.place)),
        sampled.failure,
        drawn.preferences,
        drawn.requests + sampled.requests,
        drawn.tokens_in + sampled.tokens_in,
        drawn.tokens_out + sampled.tokens_out,
        drawn.unparsable + sampled.unparsable,
        drawn.untold,
        drawn.sound,
    )
