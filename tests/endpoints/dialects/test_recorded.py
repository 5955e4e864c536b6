"""Kinds of servers that cannot be reached from here: what their documentation says is asked of them and played back.

Each file in `recorded/` holds the one request, field for field, and replies with what has to be made of them. They were
written from the pages that the file of the dialect names, not recorded from a server.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from prefmh_web.endpoints.client import LABEL_TOKENS, Client, Target
from prefmh_web.endpoints.dialects import Dialect, Question
from prefmh_web.endpoints.errors import EndpointError, TryLater, Unable
from sampler.judges import UnparsableReplyError, parse_label
from tests.support.models import Script, returns, status

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
ANSWERS = [(name, answer) for name, recorded in RECORDED.items() for answer in recorded["answers"]]
ERRORS = [(name, error) for name, recorded in RECORDED.items() for error in recorded["errors"]]
LOGGED = [name for name, recorded in RECORDED.items() if recorded["first_token"]]


@pytest.fixture
def client(local_allowed, script: Script, monkeypatch, settings):
    """Return a client of a dialect, with a key where one is recorded."""
    monkeypatch.setenv("A_MODEL_KEY", KEY)
    settings.ENDPOINT_KEYS = {"A_MODEL_KEY": ["127.0.0.1"]}
    opened: list[Client] = []

    def of(name: str) -> Client:
        recorded = RECORDED[name]
        has_key = any(KEY in value for value in recorded["request"]["headers"].values())
        opened.append(Client(Target(script.url, recorded["model"], name, "A_MODEL_KEY" if has_key else "", 5.0)))
        return opened[-1]

    yield of
    for each in opened:
        each.__exit__()


def asked(client: Client, name: str):
    recorded = RECORDED[name]
    fields = {"temperature": recorded["temperature"], "seed": 12345, "choices": recorded.get("choices", ())}
    return client.signed_chat(MESSAGES, **fields, max_tokens=LABEL_TOKENS)


def test_every_kind_is_recorded_here_or_compared_byte_for_byte() -> None:
    compared = {Dialect.VLLM, Dialect.LLAMA_CPP, Dialect.SGLANG}
    assert set(RECORDED) == set(Dialect.values) - compared


@pytest.mark.parametrize(("name", "answer"), ANSWERS, ids=[f"{name}: {answer['what']}" for name, answer in ANSWERS])
def test_a_reply_is_asked_for_and_read(client, script: Script, name: str, answer: dict) -> None:
    script.faults.append(returns(answer["reply"]))
    one = client(name)
    text, identity = asked(one, name)
    request = RECORDED[name]["request"]
    assert script.paths == [request["path"]]
    assert script.requests == [request["body"]]
    headers = {header.lower(): value for header, value in script.headers[0].items()}
    assert {header.lower(): value for header, value in request["headers"].items()}.items() <= headers.items()
    # The key goes where it belongs, and nowhere else.
    assert sum(KEY in value for value in headers.values()) == sum(KEY in each for each in request["headers"].values())
    assert text == answer["text"]
    assert [identity.model, identity.system_fingerprint] == answer["identity"]
    assert [one.calls[0].tokens_in, one.calls[0].tokens_out] == answer["tokens"]
    if not text:
        with pytest.raises(UnparsableReplyError):
            parse_label(text)


@pytest.mark.parametrize(("name", "error"), ERRORS, ids=[f"{name}: {error['status']}" for name, error in ERRORS])
def test_an_error_is_sorted_by_what_to_do_about_it(client, script: Script, name: str, error: dict) -> None:
    headers = {header.replace("-", "_"): value for header, value in error["headers"].items()}
    script.faults.append(status(error["status"], json.dumps(error["body"]).encode(), **headers))
    with pytest.raises(EndpointError) as raised:
        asked(client(name), name)
    assert raised.value.kind == error["kind"]
    if isinstance(raised.value, TryLater):
        assert raised.value.asked_to_wait == (error["wait"] is not None)
        assert error["wait"] in (None, pytest.approx(raised.value.retry_after))


@pytest.mark.parametrize("name", LOGGED)
def test_log_probabilities_are_asked_for_and_read(client, script: Script, name: str) -> None:
    recorded = RECORDED[name]["first_token"]
    script.faults.append(returns(recorded["reply"]))
    tokens, _ = client(name).signed_first_token(MESSAGES)
    assert recorded["fields"].items() <= script.requests[0].items()
    assert [list(token) for token in tokens] == recorded["tokens"]


@pytest.mark.parametrize("name", sorted(set(RECORDED) - set(LOGGED)))
def test_a_kind_without_log_probabilities_is_not_asked_for_them(client, script: Script, name: str) -> None:
    with pytest.raises(Unable, match="no log-probabilities"):
        client(name).first_token(MESSAGES)
    assert script.requests == []


@pytest.mark.parametrize("name", LOGGED)
def test_a_reply_without_log_probabilities_says_so(client, script: Script, name: str) -> None:
    script.faults.append(returns(RECORDED[name]["answers"][0]["reply"]))
    with pytest.raises(Unable, match="no log-probabilities"):
        client(name).first_token(MESSAGES)


@pytest.mark.parametrize("name", RECORDED)
def test_what_is_frozen_holds_no_message_and_no_seed(name: str) -> None:
    server, model = Dialect(name).server, RECORDED[name]["model"]
    one, other = (server.settled(Question(model, MESSAGES[:part], 8, 1.0, part)) for part in (1, 2))
    assert one == other
    assert "You judge." not in json.dumps(one)
    assert '"seed"' not in json.dumps(one)


def test_a_model_of_google_that_cannot_but_think_has_room_for_it() -> None:
    config = Dialect.GEMINI.server.body(Question("gemini-2.5-pro", MESSAGES, 8))["generationConfig"]
    assert config["thinkingConfig"] == {"thinkingBudget": 128, "includeThoughts": False}
    assert config["maxOutputTokens"] > 128 + 8
