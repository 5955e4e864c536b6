"""The log-probabilities that tokens were drawn with: a real llama.cpp server's, and what a scripted vLLM may not do."""

import math

import httpx
import numpy as np
import pytest

from prefmh_web.endpoints import drawing_told, told_draws
from prefmh_web.endpoints.calls import target_of
from prefmh_web.endpoints.client import Client
from prefmh_web.endpoints.errors import BadReply, Unable
from prefmh_web.endpoints.language_model import ServedModel
from tests.support.scripted_server import Script

PROMPT = "Begin a story about the sea."
END, TEMPERATURE = 2, 0.8
# The server keeps what it has read in half precision, so that numbers depend a little on how a prompt came in.
HALF_PRECISION = 5e-3


def rngs(count: int) -> list[np.random.Generator]:
    return [np.random.default_rng([20261124, row]) for row in range(count)]


def law_after(url: str, before: tuple[int, ...], temperature: float) -> dict[int, float]:
    """Return the law of the next token, from what the server lists of all tokens at temperature 1.

    It lists them only where the token that it happens to draw ends within no character.
    """
    for seed in range(50):
        body = {
            "prompt": list(before),
            "n_predict": 1,
            "n_probs": 1000,
            "seed": seed,
            "cache_prompt": False,
            "samplers": ["temperature"],
        }
        reply = httpx.post(url.removesuffix("/v1") + "/completion", json=body, trust_env=False, timeout=60).json()
        if told := reply.get("completion_probabilities"):
            weights = {each["id"]: math.exp(each["logprob"] / temperature) for each in told[0]["top_logprobs"]}
            return {token: math.log(weight / sum(weights.values())) for token, weight in weights.items()}
    raise AssertionError("no token that ends within no character")


def test_each_token_has_the_log_probability_of_the_law_that_it_was_drawn_from(llama, llama_url):
    model = ServedModel(llama, limit=16, temperature=TEMPERATURE)
    prefixes = [(), (), (263, 77, 263), ()]
    drawn = model.continue_told(rngs(4), [PROMPT] * 4, prefixes)
    # It draws what it draws when nothing is asked.
    assert [tokens for tokens, _ in drawn] == model.continue_batch(rngs(4), [PROMPT] * 4, prefixes)
    gaps, others = [], []
    for (tokens, told), prefix in zip(drawn, prefixes, strict=True):
        assert len(told) == len(tokens) - len(prefix)
        for place, number in enumerate(told, start=len(prefix)):
            before = (*model._ids[PROMPT], *tokens[:place])
            gaps.append(abs(number - law_after(llama_url, before, TEMPERATURE)[tokens[place]]))
            others.append(abs(number - law_after(llama_url, before, 1.0)[tokens[place]]))
    assert max(gaps) < HALF_PRECISION
    # Negative control: the model's law at temperature 1 is another one.
    assert max(others) > 0.1


def test_tokens_that_the_server_leaves_out_are_asked_for_and_the_end_counts(llama):
    model = ServedModel(llama, limit=30, temperature=TEMPERATURE)
    drawn = model.continue_told(rngs(12), [PROMPT] * 12, [()] * 12)
    ended = [(tokens, told) for tokens, told in drawn if tokens[-1] == END]
    assert ended
    assert all(len(told) == len(tokens) and told[-1] < 0 for tokens, told in ended)
    with Client(target_of(llama)) as client:
        parts = [
            drawing_told._told(client, model._ids[PROMPT], temperature=TEMPERATURE, seed=seed, limit=30)
            for seed in range(12)
        ]
        assert any(None in part.log_probabilities for part in parts)
        (seed, *_) = (seed for seed, part in enumerate(parts) if None in part.log_probabilities)
        # A server that does not name its end cannot be asked.
        with pytest.raises(Unable, match="left out"):
            drawing_told.draw(client, model._ids[PROMPT], temperature=TEMPERATURE, seed=seed, limit=30, end=None)


@pytest.mark.parametrize("temperature", [0.8, 1.0, 1.5])
def test_a_real_server_passes_the_look(llama, temperature):
    ServedModel(llama, limit=8, temperature=temperature).check_told()


@pytest.mark.parametrize(
    ("tokens", "ids", "told"),
    [
        ((5, 6, 7), (5, 6, 7), (0, 1, 2)),
        ((5, 6, 7), (5, 7), (0, 2)),
        # Which of the two 6 was left out cannot be told.
        ((5, 6, 6, 7), (5, 6, 7), (0, 3)),
        ((5, 6), (), ()),
    ],
)
def test_what_was_left_out_is_found_by_ids_and_never_guessed(tokens, ids, told):
    entries = [{"id": each, "prob": 0.5} for each in ids]
    reply = {"generation_settings": {"post_sampling_probs": True}, "completion_probabilities": entries}
    found = told_draws.llama_cpp(reply, tokens)
    assert [place for place, number in enumerate(found) if number is not None] == list(told)


def test_log_probabilities_of_other_tokens_and_of_another_temperature_are_refused():
    settings = {"generation_settings": {"post_sampling_probs": True}}
    with pytest.raises(BadReply, match="other tokens than it drew"):
        told_draws.llama_cpp(settings | {"completion_probabilities": [{"id": 9, "prob": 0.5}]}, (5, 6))
    with pytest.raises(BadReply, match="form of the protocol"):
        told_draws.llama_cpp(settings | {"completion_probabilities": [{"id": 5, "prob": 1.5}]}, (5,))
    with pytest.raises(Unable, match=r"a newer llama\.cpp does"):
        told_draws.llama_cpp({"generation_settings": {}, "completion_probabilities": []}, (5,))
    some = {"completion_probabilities": [{"top_logprobs": [{"id": 5, "logprob": -1.0}]}]}
    with pytest.raises(Unable, match="of some tokens only"):
        told_draws.llama_cpp_law(some, 0.8)


def vllm(told):
    """Return a server of two tokens, 7 of logit 1 and 8 of logit 0, that tells log-probabilities in some way.

    Args:
        told: from the tokens and the temperature of a request, the field `logprobs`; None to leave it out.
    """

    def answer(body: dict) -> dict:
        if "messages" in body:
            return {"tokens": [1, 2, 3]}
        tokens = [7] * body["max_tokens"]
        logprobs = told(tokens, body["temperature"]) if "logprobs" in body else None
        return {"choices": [{"token_ids": tokens, "finish_reason": "length", "logprobs": logprobs}]}

    return answer


def of_the_draw(tokens: list[int], temperature: float) -> dict:
    number = -math.log1p(math.exp(-1 / temperature))
    return {"token_logprobs": [number for _ in tokens], "top_logprobs": [{"seven": number} for _ in tokens]}


def of_temperature_1(tokens: list[int], temperature: float) -> dict:
    return of_the_draw(tokens, 1.0)


def with_one_missing(tokens: list[int], temperature: float) -> dict:
    told = of_the_draw(tokens, temperature)
    return told | {"token_logprobs": [None, *told["token_logprobs"][1:]]}


def one_too_few(tokens: list[int], temperature: float) -> dict:
    told = of_the_draw(tokens, temperature)
    return told | {"token_logprobs": told["token_logprobs"][1:]}


def test_a_vllm_that_tells_the_law_of_the_draw_passes_the_look(scripted, script: Script):
    script.answer = vllm(of_the_draw)
    model = ServedModel(scripted, limit=3, temperature=TEMPERATURE)
    model.check_told()
    ((tokens, told),) = model.continue_told(rngs(1), [PROMPT], [(8,)])
    assert tokens == (8, 7, 7)
    assert told == pytest.approx([-math.log1p(math.exp(-1 / TEMPERATURE))] * 2)
    # Nothing is asked for by campaigns that do without.
    model.continue_batch(rngs(1), [PROMPT], [()])
    assert "logprobs" not in script.requests[-1]


@pytest.mark.parametrize(
    ("told", "kind", "reason"),
    [
        (of_temperature_1, Unable, "start vLLM with --logprobs-mode processed_logprobs, or set the temperature to 1"),
        (lambda tokens, temperature: None, Unable, "tells no log-probabilities of the tokens that it draws"),
        (with_one_missing, Unable, "left out the log-probability of a token that it drew"),
        (one_too_few, BadReply, "tells 3 log-probabilities of 4 tokens"),
    ],
)
def test_a_vllm_that_does_otherwise_does_not(scripted, script: Script, told, kind, reason):
    script.answer = vllm(told)
    with pytest.raises(kind, match=reason):
        ServedModel(scripted, limit=3, temperature=TEMPERATURE).check_told()


def test_at_temperature_1_both_laws_are_the_same(scripted, script: Script):
    script.answer = vllm(of_temperature_1)
    ServedModel(scripted, limit=3, temperature=1.0).check_told()
