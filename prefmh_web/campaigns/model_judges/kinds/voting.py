"""A model's turn where votes are cast: what is asked of its endpoint, and under which presentations.

A judge whose votes are drawn from log-probabilities samples its votes on a pair, in one order, when the server does not
tell p there. Once it has sampled one it samples all of that pair and order: nothing about the answers decides it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

import sampler
from prefmh_web.campaigns import recipes, started
from prefmh_web.campaigns.exhibits import exhibit
from prefmh_web.campaigns.model_judges import frozen_judges
from prefmh_web.campaigns.models import Comparison, Judge, ReplyIdentity, Side, Vote
from prefmh_web.endpoints import judge_calls as asking
from prefmh_web.endpoints.dialects import Dialect
from prefmh_web.endpoints.errors import NotTold
from prefmh_web.endpoints.identity import Admitted
from prefmh_web.endpoints.mixed_votes import votes_by_either
from prefmh_web.endpoints.models import Endpoint


@dataclass(frozen=True)
class Asked:
    """What came of asking for votes, and the earlier votes that tell p for an order, by whether x' stood first."""

    votes: asking.Votes
    before: dict[bool, Vote]

    def known_identity(self, proposal_first: bool) -> ReplyIdentity | None:
        """Return what the reply said it was from that p was known by."""
        vote = self.before.get(proposal_first)
        return vote.identity if vote else None


def ask(comparison: Comparison, judge: Judge, slots: Sequence[int], admitted: Admitted) -> Asked:
    """Ask a frozen judge for its votes in these slots; nothing is stored yet."""
    campaign, chain = comparison.chain.campaign, comparison.chain.place
    endpoint = frozen_judges.asked_endpoint(judge)
    source = recipes.recipe_of(campaign).judges[judge.place].source
    step = (campaign.recipe["seed"], chain, comparison.step, started.budgets_of(campaign), judge.place)
    presentations = sampler.presentations_of(*step, judge.order)
    pair = asking.Pair(
        kind=campaign.objects_kind,
        criterion=judge.question,
        current=exhibit(comparison.current, endpoint),
        proposal=exhibit(comparison.proposal, endpoint),
        temperature=source.temperature,
        prompt=frozen_judges.prompt_of(judge),
    )
    proposal_first = [presentations[slot] for slot in slots]
    # Nobody can ask a server for the same reply again: these seeds only keep replies apart.
    rng = np.random.default_rng()
    if source.votes != "log-probabilities":
        return Asked(asking.votes_by_sampling(endpoint, pair, proposal_first, rng, admitted), {})
    numbers = sampler.draws_of(*step)
    uniforms = [numbers[slot] for slot in slots]
    told, sampled = _before(comparison, judge)
    known = {first: vote.preference for first, vote in told.items()}
    if _may_sample(endpoint):
        votes = votes_by_either(
            endpoint, pair, proposal_first, uniforms, rng, known=known, sampled=sampled, admitted=admitted
        )
    else:
        votes = asking.votes_by_log_probabilities(endpoint, pair, proposal_first, uniforms, known, admitted=admitted)
        votes = _explained(votes, endpoint)
    return Asked(votes, told)


def _before(comparison: Comparison, judge: Judge) -> tuple[dict[bool, Vote], set[bool]]:
    """Return, by whether the proposal stood first: a vote that tells p, and which orders have been sampled."""
    mine = comparison.votes.filter(judge=judge).select_related("identity")
    told = {vote.proposal_side == Side.LEFT: vote for vote in mine if vote.preference is not None}
    return told, {vote.proposal_side == Side.LEFT for vote in mine if vote.preference is None}


def _may_sample(endpoint: Endpoint) -> bool:
    """Say whether the law of a sampled vote is known to be that of p."""
    if endpoint.samples_plainly is None:
        # Started by a version that did not examine endpoints.
        return Dialect(endpoint.dialect) is not Dialect.OPENAI
    return endpoint.samples_plainly


def _explained(votes: asking.Votes, endpoint: Endpoint) -> asking.Votes:
    if not isinstance(votes.failure, NotTold):
        return votes
    reason = (
        f"{votes.failure.reason}; and a vote cannot be sampled instead: {endpoint.sampling_words or 'not examined'}"
    )
    return replace(votes, failure=NotTold(reason))
