"""Prompts that a model goes on from, without a chat template: what is sent, and the law of votes of a real server."""

import math

import numpy as np
import pytest

from prefmh_web.endpoints import judge_calls
from prefmh_web.endpoints.dialects import Dialect, Question
from prefmh_web.endpoints.errors import Unable
from prefmh_web.endpoints.exact_requests import exact_request
from prefmh_web.endpoints.models import Endpoint
from sampler.judges import Exhibit, OwnPrompt, PromptTemplate

# The tests' own model answers A, B or a digit after this token, which its chat template would end with.
WORDS = "{{question}}\nA: {{first}}\nB: {{second}}\nAnswer (A or B):<|assistant|>"
VOTES = 400
# Of a standard normal number; beyond it with probability 6e-5.
MOST_Z = 4.0


def pair(words: str = WORDS) -> judge_calls.Pair:
    prompt = OwnPrompt(PromptTemplate(user=words, completion=True), "Which is darker?")
    return judge_calls.Pair("texts", "Which is darker?", Exhibit("the red moon"), Exhibit("the dark sea"), 1.0, prompt)


def z_score(votes: list[bool], chance: float) -> float:
    return (sum(votes) - len(votes) * chance) / math.sqrt(len(votes) * chance * (1 - chance))


@pytest.mark.parametrize("first", [True, False])
def test_votes_of_a_model_that_completes_have_the_law_of_its_log_probabilities(llama, first):
    told = judge_calls.votes_by_log_probabilities(llama, pair(), [first], [0.5])
    assert told.failure is None
    chance = told.cast[0].preference
    sampled = judge_calls.votes_by_sampling(llama, pair(), [first] * VOTES, np.random.default_rng(20261124))
    assert sampled.failure is None
    votes = [vote.for_proposal for vote in sampled.cast]
    assert abs(z_score(votes, chance)) < MOST_Z
    # A law that is a fifth off is seen.
    assert abs(z_score(votes, chance - math.copysign(0.2, chance - 0.5))) > MOST_Z


@pytest.mark.parametrize("dialect", [Dialect.VLLM, Dialect.LLAMA_CPP, Dialect.SGLANG, Dialect.TGI])
def test_a_completion_is_the_prompt_as_it_is_sampled_plainly(dialect):
    endpoint = Endpoint(model="tiny", dialect=dialect, base_url="http://localhost/v1")
    question = Question("tiny", pair().messages(True), 8, 0.7, 11, ("A", "B"))
    request = exact_request(endpoint, question)
    server = dialect.server
    body = server.taking(question.messages).body(question)
    assert request.path == "/completions"
    assert "messages" not in body
    assert body["prompt"].endswith("Answer (A or B):<|assistant|>")
    sampling = server.sampling(0.7, 11) | {"stop": ["\n"]}
    assert body.items() >= sampling.items()
    assert "prompt" not in server.taking(question.messages).settled(question)


@pytest.mark.parametrize("dialect", sorted(set(Dialect) - {"vllm", "llama.cpp", "sglang", "tgi"}))
def test_other_servers_say_that_they_take_chats_only(dialect):
    endpoint = Endpoint(model="tiny", dialect=dialect, base_url="http://localhost/v1")
    with pytest.raises(Unable, match="takes chats only"):
        exact_request(endpoint, Question("tiny", pair().messages(True)))
    exact_request(endpoint, Question("tiny", [{"role": "user", "content": "Hello"}]))
