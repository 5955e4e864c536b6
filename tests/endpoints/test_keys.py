"""Keys: sent where they may go, and to be found nowhere else."""

import logging
import pickle
import traceback
from dataclasses import replace

import pytest
from django.core import serializers
from django.core.exceptions import ValidationError

from prefmh_web.endpoints import addresses, loop
from prefmh_web.endpoints.client import Client
from prefmh_web.endpoints.errors import AddressRefused, EndpointError, KeyMissing, NoDistribution, Unable
from prefmh_web.endpoints.models import Endpoint
from prefmh_web.endpoints.probe import probe
from tests.endpoints.conftest import DARKER, chat
from tests.support.models import Script, chat_reply, cut, logged, raw, returns, says, slow, status

KEY = "sk-verysecret0123456789"


@pytest.fixture
def key(monkeypatch, settings) -> str:
    monkeypatch.setenv("A_MODEL_KEY", KEY)
    settings.ENDPOINT_KEYS = {"A_MODEL_KEY": ["127.0.0.1"]}
    return KEY


def test_the_key_is_read_when_the_request_is_made(local_allowed, key, script: Script, monkeypatch) -> None:
    chat(script.url, "A_MODEL_KEY")
    monkeypatch.setenv("A_MODEL_KEY", "sk-another")
    chat(script.url, "A_MODEL_KEY")
    assert [headers["Authorization"] for headers in script.headers] == [f"Bearer {KEY}", "Bearer sk-another"]


@pytest.mark.parametrize(
    "fault",
    [
        status(401, f"Incorrect key: {KEY}".encode()),
        status(500, (" " * 190 + KEY).encode()),
        status(429, KEY.encode(), Retry_After="1"),
        raw(KEY.encode()),
        says(KEY),
        cut,
        slow,
    ],
)
def test_no_log_exception_or_row_holds_the_key(make_endpoint, key, script: Script, caplog, fault) -> None:
    endpoint = make_endpoint(script.url, api_key_variable="A_MODEL_KEY", timeout_s=1)
    script.faults.extend([fault] * 4)
    asked = {"base_url": script.url, "dialect": "vllm", "api_key_variable": "A_MODEL_KEY", "timeout_s": 0.5}
    client = Client(Endpoint(**asked))
    with caplog.at_level(logging.DEBUG):
        seen = [repr(client.__dict__)]
        try:
            loop.run(client.ask(DARKER))
        except EndpointError as error:
            seen += [
                repr(error),
                repr(error.__dict__),
                "".join(traceback.format_exception(error)),
                repr(error.__context__),
            ]
            seen += [repr(pickle.dumps(error))]
        seen += [repr(probe(endpoint)), repr(client.calls)]
    endpoint.refresh_from_db()
    seen += [caplog.text, repr([record.__dict__ for record in caplog.records])]
    seen += [serializers.serialize("json", Endpoint.objects.all()), endpoint.last_error]
    assert script.headers[0]["Authorization"] == f"Bearer {KEY}"
    assert not [text for text in seen if KEY in text or KEY[:10] in text]


@pytest.mark.parametrize("said", [KEY, [KEY], {KEY: KEY}, "x" + KEY * 4, ["x" * 30 + KEY], [[[KEY]]]])
def test_no_error_quotes_a_key_that_a_server_says_it_sampled_with(local_allowed, key, script: Script, said) -> None:
    script.faults.append(returns({"generation_settings": {"samplers": said}}))
    fields = {"dialect": "llama.cpp", "api_key_variable": "A_MODEL_KEY", "timeout_s": 5}
    where = Endpoint(base_url=script.url, **fields)
    with pytest.raises(Unable, match="samplers") as raised:
        loop.run(Client(where).complete([1, 2, 3], temperature=1.0, seed=1, limit=4))
    assert KEY[:10] not in repr(raised.value) + raised.value.reason


@pytest.mark.parametrize("token", [KEY * 2, "x" * 30 + KEY * 2])
def test_no_error_quotes_half_a_key_that_a_server_gives_for_a_token(local_allowed, key, script: Script, token) -> None:
    listed = [{"token": token, "logprob": "none"}, {"token": "B", "logprob": -1.0}]
    script.faults.append(returns(chat_reply("A", logprobs=logged("A", listed))))
    where = Endpoint(base_url=script.url, dialect="vllm", api_key_variable="A_MODEL_KEY", timeout_s=5)
    with pytest.raises(NoDistribution, match="no log-probability") as raised:
        loop.run(Client(where).ask(replace(DARKER, log_probabilities=True)))
    assert not any(part in repr(raised.value) + raised.value.reason for part in (KEY[:8], KEY[-8:]))


def test_a_variable_that_is_not_for_keys_is_refused(make_endpoint, script: Script, key) -> None:
    # Or SECRET_KEY could be read by naming it, with a server of one's own for an endpoint.
    with pytest.raises(ValidationError) as raised:
        make_endpoint(script.url, api_key_variable="SECRET_KEY")
    assert "ENDPOINT_KEYS" in raised.value.message_dict["api_key_variable"][0]


def test_a_key_goes_to_its_own_hosts_only(local_allowed, settings, key, script: Script) -> None:
    settings.ENDPOINT_KEYS = {"A_MODEL_KEY": ["api.example.com"]}
    with pytest.raises(KeyMissing, match=r"only to api\.example\.com"):
        chat(script.url, "A_MODEL_KEY")
    assert script.requests == []


@pytest.mark.parametrize("value", ["", "sk with space", "sk\nsk-second-line", "schlüssel"])
def test_an_unusable_key_is_named_by_its_variable(local_allowed, key, script: Script, monkeypatch, value: str) -> None:
    monkeypatch.setenv("A_MODEL_KEY", value)
    with pytest.raises(KeyMissing, match="A_MODEL_KEY") as raised:
        chat(script.url, "A_MODEL_KEY")
    assert script.requests == []
    assert not value or value not in str(raised.value)


def test_a_key_never_crosses_a_public_network_unencrypted(monkeypatch, local_allowed, key, script: Script) -> None:
    # As if this machine had a public address: none that can be reached from here has one.
    monkeypatch.setattr(addresses, "_is_public", lambda address: True)
    with pytest.raises(AddressRefused, match="https"):
        chat(script.url, "A_MODEL_KEY")
    assert script.requests == []
