"""Votes drawn from p where it is told and sampled where it is not have one distribution: that of a sampled vote."""

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from prefmh_web.endpoints import judge_calls
from prefmh_web.endpoints.calls import called
from prefmh_web.endpoints.models import Endpoint
from tests.endpoints.conftest import CURRENT, KNOWN, PROPOSAL, pair, z_score
from tests.support.models import Script, hiding, votes_asked

SEED, MIXED_VOTES, TEMPERATURE = 20261122, 600, 0.5
# With the proposal first, B has probability 0.32 at temperature 1, and is not listed; with it second, both labels are.
LISTED = 0.4


@pytest.fixture
def hides(scripted: Endpoint, script: Script) -> Endpoint:
    script.answer = hiding(KNOWN, LISTED)
    # As *Test* has seen it.
    scripted.samples_plainly = True
    return scripted


def z_scores(
    cast: Callable[[Sequence[bool], np.random.Generator], Sequence[judge_calls.ModelVote]],
) -> dict[bool, float]:
    """Return, by order, how many standard deviations the votes for the proposal lie off their Binomial mean."""
    draws = np.random.default_rng(SEED)
    votes = cast([place % 2 == 0 for place in range(MIXED_VOTES)], draws)
    found = {}
    for first in (True, False):
        said = [vote.for_proposal for vote in votes if vote.proposal_first == first]
        found[first] = z_score(sum(said), len(said), KNOWN.preference(PROPOSAL, CURRENT, TEMPERATURE, first))
    return found


def test_the_mixture_has_the_law_of_a_sampled_vote(hides: Endpoint, script: Script) -> None:
    def cast(first: Sequence[bool], draws: np.random.Generator) -> Sequence[judge_calls.ModelVote]:
        votes = called(judge_calls.votes_by_either(hides, pair(TEMPERATURE), first, draws.random(MIXED_VOTES), draws))
        assert votes.failure is None
        assert [vote.place for vote in votes.cast] == list(range(MIXED_VOTES))
        assert {(vote.proposal_first, vote.preference is None) for vote in votes.cast} == {(True, True), (False, False)}
        return votes.cast

    # 4 standard deviations happen once in 16,000 runs.
    assert all(abs(z) < 4 for z in z_scores(cast).values())
    assert len(votes_asked(script)) == 2 + MIXED_VOTES // 2


def test_a_vote_for_the_label_that_is_listed_would_be_noticed(hides: Endpoint) -> None:
    def cast(first: Sequence[bool], draws: np.random.Generator) -> Sequence[judge_calls.ModelVote]:
        uniforms = draws.random(MIXED_VOTES)
        told = called(judge_calls.votes_by_log_probabilities(hides, pair(TEMPERATURE), first, uniforms)).cast
        rest = [place for place in range(MIXED_VOTES) if first[place]]
        return [*told, *(judge_calls.ModelVote(place, True, True, asks=0) for place in rest)]

    assert abs(z_scores(cast)[True]) > 4


def test_what_was_sampled_once_is_not_asked_for_again(hides: Endpoint, script: Script) -> None:
    draws = np.random.default_rng(SEED)
    votes = called(
        judge_calls.votes_by_either(hides, pair(TEMPERATURE), [True] * 3, draws.random(3), draws, sampled={True})
    )
    assert [vote.preference for vote in votes.cast] == [None] * 3
    assert len(votes_asked(script)) == 3
