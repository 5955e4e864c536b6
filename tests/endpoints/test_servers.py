"""What each kind of server is sent, and what is made of its replies: as its documentation says.

Each file in `recorded/` holds the one request, field for field, and replies with what has to be made of them. They were
written from the pages that the row of the kind names, not recorded from a server.
"""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import binomtest

from prefmh_web.endpoints import judge_calls, loop
from prefmh_web.endpoints.calls import called
from prefmh_web.endpoints.client import LABEL_TOKENS, Client, Reply
from prefmh_web.endpoints.errors import EndpointError, TryLater, Unable
from prefmh_web.endpoints.models import Endpoint
from prefmh_web.endpoints.servers import ChatRequest, ComparedPair, Dialect
from sampler.judges import ShownObject, UnparsableReplyError, parse_label
from tests.endpoints.conftest import PAIR, pair_of
from tests.support.installations import wait_for
from tests.support.models import Script, port_from, returns, status

RECORDED: dict[str, dict[str, Any]] = {
    file.stem: json.loads(file.read_text()) for file in sorted((Path(__file__).parent / "recorded").glob("*.json"))
}
KEY = "sk-secret"
PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw=="}}
MESSAGES = [
    {"role": "system", "content": "You judge."},
    {
        "role": "user",
        "content": [{"type": "text", "text": "Which is redder?"}, PICTURE, {"type": "text", "text": "A or B?"}],
    },
]
SHOWN = ComparedPair("Which is redder?", "the red moon", "data:image/png;base64,iVBORw==")
ANSWERS = [(name, answer) for name, recorded in RECORDED.items() for answer in recorded["answers"]]
ERRORS = [(name, error) for name, recorded in RECORDED.items() for error in recorded["errors"]]
LOGGED = [name for name, recorded in RECORDED.items() if recorded["first_token"]]
MOST = 2000
THINKING = {name: recorded["thinking"]["body"] for name, recorded in RECORDED.items() if "thinking" in recorded}


@pytest.fixture
def client(local_allowed, script: Script, monkeypatch, settings) -> Callable[[str], Client]:
    """Return a client of a kind, with a key where one is recorded."""
    monkeypatch.setenv("A_MODEL_KEY", KEY)
    settings.ENDPOINT_KEYS = {"A_MODEL_KEY": ["127.0.0.1"]}

    def of(name: str) -> Client:
        recorded = RECORDED[name]
        has_key = any(KEY in value for value in recorded["request"]["headers"].values())
        variable = "A_MODEL_KEY" if has_key else ""
        fields = {"model": recorded["model"], "dialect": name, "api_key_variable": variable, "timeout_s": 5}
        return Client(Endpoint(base_url=script.url, **fields))

    return of


def asked(client: Client, name: str) -> Reply:
    recorded = RECORDED[name]
    fields = {"temperature": recorded["temperature"], "seed": 12345, "choices": recorded.get("choices", ())}
    return loop.run(client.ask(ChatRequest(recorded["model"], MESSAGES, LABEL_TOKENS, **fields, compared=SHOWN)))


def first_token(client: Client) -> Reply:
    return loop.run(client.ask(ChatRequest(client.endpoint.model, MESSAGES, log_probabilities=True)))


def test_every_kind_is_recorded_here() -> None:
    assert set(RECORDED) == set(Dialect.values)


@pytest.mark.parametrize(("name", "answer"), ANSWERS, ids=[f"{name}: {answer['what']}" for name, answer in ANSWERS])
def test_a_reply_is_asked_for_and_read(client, script: Script, name: str, answer: dict) -> None:
    script.faults.append(returns(answer["reply"]))
    one = client(name)
    found = asked(one, name)
    text, identity = found.text, found.identity
    request = RECORDED[name]["request"]
    assert script.paths == [request["path"]]
    assert script.requests == [request["body"]]
    headers = {header.lower(): value for header, value in script.headers[0].items()}
    assert {header.lower(): value for header, value in request["headers"].items()}.items() <= headers.items()
    # The key goes where it belongs, and nowhere else.
    assert sum(KEY in value for value in headers.values()) == sum(KEY in each for each in request["headers"].values())
    assert text == answer["text"]
    assert [identity.model, identity.system_fingerprint] == answer["identity"]
    assert [one.calls[0].tokens_in, one.calls[0].tokens_out] == answer["tokens"] == [found.tokens_in, found.tokens_out]
    if text not in ("A", "B"):
        with pytest.raises(UnparsableReplyError):
            parse_label(text)


@pytest.mark.parametrize(("name", "error"), ERRORS, ids=[f"{name}: {error['status']}" for name, error in ERRORS])
def test_an_error_is_sorted_by_what_to_do_about_it(client, script: Script, name: str, error: dict) -> None:
    headers = {header.replace("-", "_"): value for header, value in error["headers"].items()}
    script.faults.append(status(error["status"], json.dumps(error["body"]).encode(), **headers))
    with pytest.raises(EndpointError) as raised:
        asked(client(name), name)
    assert type(raised.value).__name__ == error["kind"].title().replace("_", "")
    if isinstance(raised.value, TryLater):
        assert raised.value.asked_to_wait == (error["wait"] is not None)
        assert error["wait"] in (None, pytest.approx(raised.value.retry_after))


@pytest.mark.parametrize("name", LOGGED)
def test_log_probabilities_are_asked_for_and_read(client, script: Script, name: str) -> None:
    recorded = RECORDED[name]["first_token"]
    script.faults.append(returns(recorded["reply"]))
    found = first_token(client(name))
    assert recorded["fields"].items() <= script.requests[0].items()
    assert [list(token) for token in found.tokens] == recorded["tokens"]


@pytest.mark.parametrize("name", sorted(set(RECORDED) - set(LOGGED)))
def test_a_kind_without_log_probabilities_is_not_asked_for_them(client, script: Script, name: str) -> None:
    with pytest.raises(Unable, match="no log-probabilities"):
        first_token(client(name))
    assert script.requests == []


@pytest.mark.parametrize("name", RECORDED)
def test_what_is_frozen_holds_no_message_and_no_seed(name: str) -> None:
    server, model = Dialect(name).server, RECORDED[name]["model"]
    one, other = (server.settled(ChatRequest(model, MESSAGES[:part], 8, 1.0, part)) for part in (1, 2))
    assert one == other
    assert "You judge." not in json.dumps(one)
    assert '"seed"' not in json.dumps(one)


@pytest.mark.parametrize("name", [name for name in RECORDED if "continuation" in RECORDED[name]])
def test_a_completion_of_token_ids_is_asked_for(name: str) -> None:
    server = Dialect(name).server
    body = server.writing.body("tiny", [1, 2, 3], 4) | server.sampling(0.7, 12345)
    assert body == RECORDED[name]["continuation"] | {"model": "tiny"}


# Thinking before an answer: bounded in the kind's own field, with room in the limit, counted, never an answer.


def found(body: dict[str, Any], name: str) -> Any:
    for part in name.split("."):
        body = body[part]
    return body


def body_of(dialect: str, thinking: int | None, choices: tuple[str, ...] = ()) -> dict[str, Any]:
    model = RECORDED[dialect]["model"]
    return Dialect(dialect).server.body(
        ChatRequest(model, MESSAGES, LABEL_TOKENS, 1.0, 12345, choices, thinking=thinking)
    )


def test_every_kind_that_can_think_has_its_bound_recorded() -> None:
    assert set(THINKING) == {dialect.value for dialect in Dialect if dialect.server.thinking is not None}


@pytest.mark.parametrize("dialect", THINKING)
def test_the_bound_is_sent_in_the_kinds_own_field_with_room_in_the_limit(dialect: str) -> None:
    body = body_of(dialect, MOST)
    assert {name: found(body, name) for name in THINKING[dialect]} == THINKING[dialect]
    # Without it, requests are what they were.
    plain = body_of(dialect, None)
    assert all(found(plain, name) != value for name, value in THINKING[dialect].items() if name in plain)


@pytest.mark.parametrize("dialect", THINKING)
def test_a_thought_is_not_constrained_to_the_answers(dialect: str) -> None:
    assert body_of(dialect, MOST, ("A", "B")) == body_of(dialect, MOST)


@pytest.mark.parametrize("dialect", sorted(set(Dialect.values) - set(THINKING)))
def test_a_kind_that_cannot_think_is_sent_no_such_field(dialect: str) -> None:
    body = body_of(dialect, MOST)
    assert body | {"max_tokens": 0} == body_of(dialect, None) | {"max_tokens": 0}


def test_a_model_of_google_that_cannot_but_think_has_room_for_it() -> None:
    body = Dialect.GEMINI.server.body(ChatRequest("gemini-2.5-pro", MESSAGES, 8))
    assert body["reasoning_effort"] == "low"
    assert body["max_tokens"] > 1_024 + 8
    bounded = Dialect.GEMINI.server.body(ChatRequest("gemini-2.5-pro", MESSAGES, 8, thinking=200))
    assert "reasoning_effort" not in bounded
    assert bounded["max_tokens"] == 208


def test_log_probabilities_are_those_of_a_model_that_does_not_think(make_endpoint, script: Script) -> None:
    endpoint = make_endpoint(script.url, thinking_tokens=MOST)
    called(judge_calls.votes(endpoint, PAIR, [True], np.random.default_rng(1)))
    called(judge_calls.votes(endpoint, PAIR, [True], np.random.default_rng(1), [0.5]))
    assert script.requests[0]["thinking_token_budget"] == MOST
    assert script.requests[1]["chat_template_kwargs"] == {"enable_thinking": False}


# The program that docs/models.md shows as a judge.


DOCS = Path(__file__).resolve().parents[2] / "docs" / "models.md"
LONG, SHORT = ShownObject("a text of twenty-one"), ShownObject("ten words.")
VOTES = 400


def test_the_program_of_the_docs_votes_by_its_distribution(make_endpoint):
    [code] = re.findall(r"```python\n(import json\n.*?)```", DOCS.read_text(), re.S)
    port = port_from(24_000)
    program = subprocess.Popen([sys.executable, "-c", code.replace("8100", str(port))], stderr=subprocess.DEVNULL)
    try:
        endpoint = make_endpoint(f"http://127.0.0.1:{port}", dialect=Dialect.PROGRAM)
        pair = pair_of("texts", "Which is longer?", SHORT, LONG)

        def votes(count: int) -> judge_calls.Answers:
            first = [index % 2 == 0 for index in range(count)]
            return called(judge_calls.votes(endpoint, pair, first, np.random.default_rng(1)))

        wait_for(lambda: votes(1).failure is None, "the program answers")
        cast = votes(VOTES).given
    finally:
        program.kill()
        program.wait()
    # Ten letters more: the odds are e. The program has no seed; a right one fails once in a million runs.
    assert binomtest(sum(vote.value for vote in cast), VOTES, np.e / (1 + np.e)).pvalue > 1e-6
