"""Prompts that a model goes on from, without a chat template: what is sent, and the law of votes of a real server.

Votes drawn from p where it is told and sampled where it is not have one law: that of a sampled vote.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from prefmh_web.endpoints import judge_calls
from prefmh_web.endpoints.calls import called
from prefmh_web.endpoints.client import exact_request
from prefmh_web.endpoints.errors import Unable
from prefmh_web.endpoints.models import Endpoint
from prefmh_web.endpoints.servers import Dialect, Question
from sampler.judges import Exhibit, OwnPrompt, PromptTemplate
from tests.endpoints.conftest import CURRENT, KNOWN, PROPOSAL, pair, z_score
from tests.support.models import Script, hiding, votes_asked

# The tests' own model answers A, B or a digit after this token, which its chat template would end with.
WORDS = "{{question}}\nA: {{first}}\nB: {{second}}\nAnswer (A or B):<|assistant|>"
VOTES = 400
# Of a standard normal number; beyond it with probability 6e-5.
MOST_Z = 4.0


def raw_pair(words: str = WORDS) -> judge_calls.Pair:
    prompt = OwnPrompt(PromptTemplate(user=words, completion=True), "Which is darker?")
    return judge_calls.Pair("texts", "Which is darker?", Exhibit("the red moon"), Exhibit("the dark sea"), 1.0, prompt)


@pytest.mark.parametrize("first", [True, False])
def test_votes_of_a_model_that_completes_have_the_law_of_its_log_probabilities(llama, first):
    told = called(judge_calls.votes_by_log_probabilities(llama, raw_pair(), [first], [0.5]))
    assert told.failure is None
    chance = told.cast[0].preference
    sampled = called(judge_calls.votes_by_sampling(llama, raw_pair(), [first] * VOTES, np.random.default_rng(20261124)))
    assert sampled.failure is None
    votes = sum(vote.for_proposal for vote in sampled.cast)
    assert abs(z_score(votes, VOTES, chance)) < MOST_Z
    # A law that is a fifth off is seen.
    assert abs(z_score(votes, VOTES, chance - math.copysign(0.2, chance - 0.5))) > MOST_Z


@pytest.mark.parametrize("dialect", [Dialect.VLLM, Dialect.LLAMA_CPP, Dialect.SGLANG])
def test_a_completion_is_the_prompt_as_it_is_sampled_plainly(dialect):
    endpoint = Endpoint(model="tiny", dialect=dialect, base_url="http://localhost/v1")
    question = Question("tiny", raw_pair().messages(True), 8, 0.7, 11, ("A", "B"))
    path, _ = exact_request(endpoint, question)
    server = dialect.server
    body = server.taking(question.messages).body(question)
    assert path == "/completions"
    assert "messages" not in body
    assert body["prompt"].endswith("Answer (A or B):<|assistant|>")
    sampling = server.sampling(0.7, 11) | {"stop": ["\n"]}
    assert body.items() >= sampling.items()
    assert "prompt" not in server.taking(question.messages).settled(question)


@pytest.mark.parametrize("dialect", sorted(set(Dialect) - {"vllm", "llama.cpp", "sglang"}))
def test_other_servers_say_that_they_take_chats_only(dialect):
    endpoint = Endpoint(model="tiny", dialect=dialect, base_url="http://localhost/v1")
    with pytest.raises(Unable, match="takes chats only"):
        exact_request(endpoint, Question("tiny", raw_pair().messages(True)))
    exact_request(endpoint, Question("tiny", [{"role": "user", "content": "Hello"}]))


SEED, MIXED_VOTES, TEMPERATURE = 20261122, 600, 0.5
# With the proposal first, B has probability 0.32 at temperature 1, and is not listed; with it second, both labels are.
LISTED = 0.4


@pytest.fixture
def hides(scripted: Endpoint, script: Script) -> Endpoint:
    script.answer = hiding(KNOWN, LISTED)
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
