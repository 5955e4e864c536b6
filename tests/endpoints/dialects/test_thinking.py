"""Thinking before an answer: bounded in the dialect's own field, with room in the limit, counted, never an answer."""

from typing import Any

import pytest

from prefmh_web.endpoints.calls import target_of
from prefmh_web.endpoints.client import LABEL_TOKENS, Client
from prefmh_web.endpoints.dialects import Dialect, Question
from prefmh_web.endpoints.models import Endpoint
from sampler.judges import parse_label
from tests.endpoints.dialects.test_recorded import MESSAGES, RECORDED
from tests.support.models import Script, chat_reply, returns

MOST = 2000
# Those that are tried really; the others' fields stand in `recorded`.
FIELDS: dict[str, dict[str, Any]] = {
    "vllm": {"max_tokens": 2008, "chat_template_kwargs": {"enable_thinking": True}, "thinking_token_budget": 2000},
    "llama.cpp": {
        "max_tokens": 2008,
        "chat_template_kwargs": {"enable_thinking": True},
        "thinking_budget_tokens": 2000,
    },
    "sglang": {"max_tokens": 2008, "chat_template_kwargs": {"enable_thinking": True, "thinking_budget": 2000}},
} | {name: recorded["thinking"]["body"] for name, recorded in RECORDED.items() if "thinking" in recorded}


def found(body: dict[str, Any], name: str) -> Any:
    for part in name.split("."):
        body = body[part]
    return body


def body_of(dialect: str, thinking: int | None, choices: tuple[str, ...] = ()) -> dict[str, Any]:
    model = RECORDED[dialect]["model"] if dialect in RECORDED else "tiny"
    return Dialect(dialect).server.body(Question(model, MESSAGES, LABEL_TOKENS, 1.0, 12345, choices, thinking=thinking))


def test_every_kind_that_can_think_is_here() -> None:
    assert set(FIELDS) == {dialect.value for dialect in Dialect if dialect.server.can_think}


@pytest.mark.parametrize("dialect", FIELDS)
def test_the_bound_is_sent_in_the_dialects_own_field_with_room_in_the_limit(dialect: str) -> None:
    body = body_of(dialect, MOST)
    assert {name: found(body, name) for name in FIELDS[dialect]} == FIELDS[dialect]
    # Without it, requests are what they were.
    plain = body_of(dialect, None)
    assert all(found(plain, name) != value for name, value in FIELDS[dialect].items() if name in plain)


@pytest.mark.parametrize("dialect", FIELDS)
def test_a_thought_is_not_confined_to_the_answers(dialect: str) -> None:
    assert body_of(dialect, MOST, ("A", "B")) == body_of(dialect, MOST)


@pytest.mark.parametrize("dialect", sorted(set(Dialect.values) - set(FIELDS)))
def test_a_kind_that_cannot_think_is_sent_no_such_field(dialect: str) -> None:
    body = body_of(dialect, MOST)
    assert body | {"max_tokens": 0} == body_of(dialect, None) | {"max_tokens": 0}


def test_a_thought_in_a_field_of_its_own_is_counted_and_not_read(make_endpoint, script: Script) -> None:
    endpoint: Endpoint = make_endpoint(script.url, thinking_tokens=MOST)
    reply = chat_reply("B")
    reply["choices"][0]["message"]["reasoning_content"] = "A is darker, so A."
    reply["usage"] = {"prompt_tokens": 50, "completion_tokens": 313}
    script.faults.append(returns(reply))
    with Client(target_of(endpoint)) as client:
        said, _ = client.signed_chat(MESSAGES, temperature=1.0, seed=1)
    assert (parse_label(said), client.calls[0].tokens_out) == ("B", 313)
    assert script.requests[0]["thinking_token_budget"] == MOST


def test_log_probabilities_are_those_of_a_model_that_does_not_think(make_endpoint, script: Script) -> None:
    endpoint = make_endpoint(script.url, thinking_tokens=MOST)
    with Client(target_of(endpoint)) as client:
        client.first_token([{"role": "user", "content": "the dark house or the red moon"}])
    assert script.requests[0]["chat_template_kwargs"] == {"enable_thinking": False}
