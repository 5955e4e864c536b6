"""Whatever a server answers becomes a result or an error with a name: no reply is a crash, a 500, or a broken row."""

import copy
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as examples
from hypothesis import strategies as st

from prefmh_web.endpoints import judge_calls, limits
from prefmh_web.endpoints.calls import called
from prefmh_web.endpoints.errors import EndpointError
from prefmh_web.endpoints.models import Endpoint
from prefmh_web.endpoints.probe import probe
from prefmh_web.endpoints.servers import Dialect
from prefmh_web.endpoints.writer import ServedModel
from sampler.judges import Exhibit, RatingScale
from tests.endpoints.conftest import PAIR
from tests.support.models import Script, chat_reply, logged, raw, returns, status, wire

RATED = judge_calls.Rated("texts", "How dark?", Exhibit("the red moon"), RatingScale(0, 10))
MANY = examples(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))


def rng() -> np.random.Generator:
    return np.random.default_rng(20261122)


def written(endpoint: Endpoint) -> list[str]:
    """Return a text by a served model, through all its requests: the prompt's tokens, new tokens, their words."""
    model = ServedModel(endpoint, limit=4)
    (tokens,) = model.continue_batch([rng()], ["Begin."], [()])
    return [model.text("Begin.", tokens)]


@dataclass(frozen=True)
class Way:
    """One way to ask a server, and a reply that it can use."""

    ask: Callable[[Endpoint], object]
    reply: dict[str, Any]
    dialect: Dialect = Dialect.VLLM


_TOP = [{"token": "A", "logprob": -0.7}, {"token": "B", "logprob": -0.9}]
_LLAMA = {"samplers": ["temperature"], "grammar": "", "logit_bias": [], "mirostat": 0, "temperature": 1.0}
WAYS = {
    "a vote": Way(lambda e: called(judge_calls.votes_by_sampling(e, PAIR, [True], rng())), chat_reply("A")),
    "a rating": Way(lambda e: called(judge_calls.ratings(e, RATED, 1, rng())), chat_reply("7")),
    "log-probabilities": Way(
        lambda e: called(judge_calls.votes_by_log_probabilities(e, PAIR, [True], [0.5])),
        chat_reply("A", logprobs=logged("A", _TOP)),
    ),
    # One reply that does for every request of a text.
    "a text of vLLM's": Way(
        written,
        {
            "tokens": [1, 2, 3],
            "choices": [{"token_ids": [7, 2], "prompt_token_ids": [1, 2, 3], "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 3, "completion_tokens": 2},
            "prompt": "the cat",
        },
    ),
    "a text of llama.cpp's": Way(
        written,
        {
            "prompt": "Begin.",
            "tokens": [1, 2, 3],
            "generation_settings": _LLAMA | {"n_predict": 4},
            "truncated": False,
            "tokens_evaluated": 3,
            "tokens_predicted": 3,
            "stop_type": "eos",
            "content": "the cat",
        },
        Dialect.LLAMA_CPP,
    ),
    "a test": Way(probe, chat_reply("A", logprobs=logged("A", _TOP))),
}

NESTED: Any = "A"
for _ in range(600):
    NESTED = [NESTED]
NASTY = [
    None, True, -1, 0, 2**31, 2**63, 2**64, -(2**63), 10**400, -(10**400), 10**4000, 1e308, -1e308, 5e-324,
    float("inf"), float("-inf"), float("nan"), "", "\0", "A\0", "\ud800", "\udfff A", "A" * 5000,
    "\N{RIGHT-TO-LEFT OVERRIDE}A", "1",
    [], [[]], {}, {"A": {}}, [None], ["A", "B"], [-1], [True], [10**400], [2**63], [0.5], NESTED, {"a": NESTED},
]  # fmt: skip
VALUES = st.sampled_from(NASTY) | st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=10,
)


def places(value: Any, way: tuple = ()) -> Iterator[tuple]:
    """Yield the way to every value inside a reply, the reply itself among them."""
    yield way
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, inner in inside:
        yield from places(inner, (*way, name))


def changed(reply: dict[str, Any], place: tuple, value: Any) -> Any:
    """Return a reply with something else at one place."""
    if not place:
        return value
    reply = copy.deepcopy(reply)
    inner = reply
    for name in place[:-1]:
        inner = inner[name]
    inner[place[-1]] = value
    return reply


def outcome(endpoint: Endpoint, way: Way) -> object:
    """Ask, and let nothing but an error with a name leave."""
    limits.forget()
    endpoint.dialect = way.dialect
    endpoint.save()
    try:
        return way.ask(endpoint)
    except EndpointError as error:
        return error
    except Exception as crash:  # noqa: BLE001 - what the test is about
        return pytest.fail(f"{type(crash).__name__} left the client: {str(crash)[:200]}")


def check_rows(endpoint: Endpoint) -> None:
    """Check that what was stored can be read and shown."""
    endpoint.refresh_from_db()
    assert "\0" not in endpoint.last_error
    endpoint.last_error.encode()
    totals = endpoint.totals
    counts = [getattr(totals, name) for name in totals.COUNTS]
    assert all(0 <= count < 2**62 for count in counts), counts


def answer_with(script: Script, fault: Callable) -> None:
    script.faults.clear()
    script.faults.extend([fault] * 400)
    script.pages.update(dict.fromkeys(("/props", "/get_server_info", "/version"), fault))


@pytest.mark.parametrize("name", WAYS)
def test_the_replies_that_are_changed_here_are_good_ones(scripted: Endpoint, script: Script, name: str) -> None:
    way = WAYS[name]
    answer_with(script, returns(way.reply))
    script.pages.clear()
    found = outcome(scripted, way)
    assert not isinstance(found, EndpointError), found
    assert getattr(found, "failure", None) is None


@pytest.mark.parametrize("name", WAYS)
def test_a_reply_that_is_wrong_at_one_place_is_a_result_or_an_error(scripted, script: Script, name: str) -> None:
    way = WAYS[name]

    @MANY
    @given(st.sampled_from(list(places(way.reply))), VALUES)
    def check(place: tuple, value: Any) -> None:
        answer_with(script, raw(json.dumps(changed(way.reply, place, value)).encode()))
        found = outcome(scripted, way)
        for text in found if isinstance(found, list) else ():
            assert "\0" not in text
            text.encode()
        check_rows(scripted)

    check()


@pytest.mark.parametrize("name", ["a vote", "log-probabilities", "a text of llama.cpp's", "a test"])
def test_a_reply_of_any_bytes_is_an_error(scripted, script: Script, name: str) -> None:
    @examples(MANY, max_examples=60)
    @given(st.binary(max_size=300), st.booleans(), st.sampled_from([200, 204, 206, 301, 400, 418, 429, 500, 503, 599]))
    def check(content: bytes, is_whole: bool, code: int) -> None:
        head = b"HTTP/1.1 200 OK\r\n" if is_whole else b""
        answer_with(script, wire(head + content) if code == 200 else status(code, content))
        outcome(scripted, WAYS[name])
        check_rows(scripted)

    check()


@pytest.mark.parametrize(
    "content",
    [
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b'{"choices": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"choices": ' + b"9" * 5_000 + b"}",
        b'{"choices": NaN}',
        b'{"usage": {"prompt_tokens": 1e999}, "choices": [{"message": {"content": "A"}}]}',
        b"\xed\xa0\x80",
        b'{"choices": "\xed\xa0\x80"}',
        '{"choices": 1}'.encode("utf-16"),
        b"\0" * 1000,
        b"",
        b"\xef\xbb\xbf",
        b'"' + b"\\ud800" * 1000 + b'"',
    ],
)
def test_json_that_a_reader_chokes_on_is_an_error(scripted, script: Script, content: bytes) -> None:
    for name in WAYS:
        answer_with(script, raw(content))
        outcome(scripted, WAYS[name])
        check_rows(scripted)


def test_a_text_that_no_database_takes_is_written_without_it(scripted, script: Script) -> None:
    way = WAYS["a text of vLLM's"]
    answer_with(script, returns(way.reply | {"prompt": "the \0cat \ud83d"}))
    assert outcome(scripted, way) == ["the \N{REPLACEMENT CHARACTER}cat \N{REPLACEMENT CHARACTER}"]
