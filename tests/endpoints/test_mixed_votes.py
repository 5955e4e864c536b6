"""Votes drawn from p where it is told and sampled where it is not have one law: that of a sampled vote."""

import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from prefmh_web.endpoints import judge_calls
from prefmh_web.endpoints.mixed_votes import votes_by_either
from prefmh_web.endpoints.models import Endpoint
from sampler.judges import Exhibit
from tests.endpoints.conftest import KNOWN
from tests.support.models import Script, votes_asked

CURRENT, PROPOSAL = "the red moon", "the dark house"
SEED, VOTES, TEMPERATURE = 20261122, 600, 0.5
# With the proposal first, B has probability 0.32 at temperature 1, and is not listed; with it second, both labels are.
LISTED = 0.4


def pair() -> judge_calls.Pair:
    return judge_calls.Pair("texts", "Which is darker?", Exhibit(CURRENT), Exhibit(PROPOSAL), TEMPERATURE)


def hiding(body: dict) -> dict:
    """Answer as a server that lists tokens of a probability above LISTED only."""
    found = KNOWN(body)
    if told := found["choices"][0].get("logprobs"):
        entry = told["content"][0]
        entry["top_logprobs"] = [one for one in entry["top_logprobs"] if one["logprob"] > math.log(LISTED)]
    return found


@pytest.fixture
def hides(scripted: Endpoint, script: Script) -> Endpoint:
    script.answer = hiding
    return scripted


def z_scores(
    cast: Callable[[Sequence[bool], np.random.Generator], Sequence[judge_calls.ModelVote]],
) -> dict[bool, float]:
    """Return, by order, how many standard deviations the votes for the proposal lie off their Binomial mean."""
    draws = np.random.default_rng(SEED)
    votes = cast([place % 2 == 0 for place in range(VOTES)], draws)
    found = {}
    for first in (True, False):
        chance = KNOWN.preference(PROPOSAL, CURRENT, TEMPERATURE, first)
        said = [vote.for_proposal for vote in votes if vote.proposal_first == first]
        found[first] = (sum(said) - len(said) * chance) / math.sqrt(len(said) * chance * (1 - chance))
    return found


def test_the_mixture_has_the_law_of_a_sampled_vote(hides: Endpoint, script: Script) -> None:
    def cast(first: Sequence[bool], draws: np.random.Generator) -> Sequence[judge_calls.ModelVote]:
        votes = votes_by_either(hides, pair(), first, draws.random(VOTES), draws)
        assert votes.failure is None
        assert [vote.place for vote in votes.cast] == list(range(VOTES))
        assert {(vote.proposal_first, vote.preference is None) for vote in votes.cast} == {(True, True), (False, False)}
        return votes.cast

    # 4 standard deviations happen once in 16,000 runs.
    assert all(abs(z) < 4 for z in z_scores(cast).values())
    assert len(votes_asked(script)) == 2 + VOTES // 2


def test_a_vote_for_the_label_that_is_listed_would_be_noticed(hides: Endpoint) -> None:
    def cast(first: Sequence[bool], draws: np.random.Generator) -> Sequence[judge_calls.ModelVote]:
        told = judge_calls.votes_by_log_probabilities(hides, pair(), first, draws.random(VOTES)).cast
        rest = [place for place in range(VOTES) if first[place]]
        return [*told, *(judge_calls.ModelVote(place, True, True, asks=0) for place in rest)]

    assert abs(z_scores(cast)[True]) > 4


def test_what_was_sampled_once_is_not_asked_for_again(hides: Endpoint, script: Script) -> None:
    draws = np.random.default_rng(SEED)
    votes = votes_by_either(hides, pair(), [True] * 3, draws.random(3), draws, sampled={True})
    assert [vote.preference for vote in votes.cast] == [None] * 3
    assert len(votes_asked(script)) == 3
