"""Texts written by a server, token by token: the distribution, and what a server may not do."""

import math

import numpy as np
import pytest

from prefmh_web.endpoints import loop
from prefmh_web.endpoints.client import Client
from prefmh_web.endpoints.errors import Unable
from prefmh_web.endpoints.models import Endpoint
from prefmh_web.endpoints.servers import ChatRequest, Dialect
from prefmh_web.endpoints.writer import ServedModel

PROMPT = "Begin a story about the sea."
END = 2


def rngs(count: int, seed: int = 20261121) -> list[np.random.Generator]:
    return [np.random.default_rng([seed, row]) for row in range(count)]


def drawn(model: ServedModel, count: int, prefix: tuple[int, ...] = (), seed: int = 20261121) -> list[tuple[int, ...]]:
    return model.continue_batch(rngs(count, seed), [PROMPT] * count, [prefix] * count)


class TestOverARealServer:
    def test_texts_are_whole_sequences_within_the_limit(self, llama: Endpoint) -> None:
        model = ServedModel(llama, limit=12)
        texts = drawn(model, 30)
        assert {len(text) for text in texts} > {12}
        for text in texts:
            assert (text[-1] == END) or len(text) == 12
            assert END not in text[:-1]
        assert len(set(texts)) == 30

    def test_a_prefix_is_kept_token_by_token(self, llama: Endpoint) -> None:
        model = ServedModel(llama, limit=12)
        for text in drawn(model, 20, prefix=(263, 77, 263)):
            assert text[:3] == (263, 77, 263)
            assert 4 <= len(text) <= 12

    def test_a_row_comes_out_the_same_in_any_batch(self, llama: Endpoint) -> None:
        model = ServedModel(llama, limit=12)
        together = drawn(model, 6)
        alone = [model.continue_batch([rng], [PROMPT], [()])[0] for rng in rngs(6)]
        assert together == alone
        assert drawn(model, 6, seed=2) != together

    def test_the_first_token_has_the_models_own_distribution(self, llama: Endpoint) -> None:
        # Against the server's log-probabilities at temperature 1, tempered here; a truncating sampler never draws
        # from the tail, which has more than a tenth of the mass.
        temperature, count = 1.5, 600
        model = ServedModel(llama, limit=1, temperature=temperature)
        messages = [{"role": "user", "content": PROMPT}]
        body = {"messages": messages, "max_tokens": 1, "logprobs": True, "top_logprobs": 400, "seed": 1}
        reply = loop.run(Client(llama).send("/chat/completions", body, dict))
        top = reply["choices"][0]["logprobs"]["content"][0]["top_logprobs"]
        weights = {entry["id"]: math.exp(entry["logprob"] / temperature) for entry in top}
        likely = sorted(weights, key=weights.get, reverse=True)[:40]
        chances = [weights[token] / sum(weights.values()) for token in likely]
        found = [text[0] for text in drawn(model, count)]
        for token, chance in [*zip(likely[:3], chances[:3], strict=True), (None, 1 - sum(chances))]:
            seen = sum(first == token if token is not None else first not in likely for first in found)
            # Each count is Binomial(count, chance).
            assert abs(seen - count * chance) < 4 * math.sqrt(count * chance * (1 - chance)), (token, seen)
        assert 1 - sum(chances) > 0.1

    def test_texts_are_said_without_their_end(self, llama: Endpoint) -> None:
        model = ServedModel(llama, limit=3)
        the, space, cat = 263, 38, 265
        assert model.text(PROMPT, (the, space, END)) == "the "
        assert model.text(PROMPT, (the, space, cat)) == "the cat"
        assert model.text(PROMPT, (END,)) == ""

    def test_the_prompt_is_read_as_a_chat_is(self, llama: Endpoint) -> None:
        model = ServedModel(llama, limit=2, system="You tell stories.")
        drawn(model, 1)
        client = Client(llama)
        messages = [{"role": "system", "content": "You tell stories."}, {"role": "user", "content": PROMPT}]
        reply = loop.run(client.ask(ChatRequest(llama.model, messages, 8)))
        assert reply.tokens_in == len(model._ids[PROMPT])

    def test_what_does_not_fit_into_the_context_is_refused(self, llama: Endpoint) -> None:
        model = ServedModel(llama, limit=2040)
        with pytest.raises(Unable, match="context"):
            drawn(model, 1, prefix=(38,) * 2015)


class TestWhatIsRefused:
    @pytest.mark.parametrize("dialect", [Dialect.OPENAI, Dialect.SGLANG])
    def test_a_kind_of_server_without_token_ids(self, scripted: Endpoint, dialect: Dialect) -> None:
        scripted.dialect = dialect
        with pytest.raises(Unable, match="tokenised again"):
            ServedModel(scripted, limit=3)
