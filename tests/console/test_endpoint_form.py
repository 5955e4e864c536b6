"""The form of an endpoint: what is asked first, the models of a server, and what is said of a wrong address or key."""

import json

import pytest
from django.urls import reverse

from prefmh_web.endpoints.models import Endpoint, EndpointTest
from prefmh_web.endpoints.servers import Dialect
from tests.console.test_endpoints import fields, press_test, script, signed_in
from tests.support.models import Script, raw, reply, send, status

__all__ = ["script", "signed_in"]
MODELS = {"object": "list", "data": [{"id": "tiny"}, {"id": "<b>large</b>"}]}


def listing(handler) -> None:
    reply(handler, MODELS)


def a_web_page(handler, *_) -> None:
    send(handler, 200, b"<!DOCTYPE html><title>Welcome</title>", {"Content-Type": "text/html"})


def models_there(desk, url: str) -> str:
    return desk.get(reverse("console:models-there"), {"base_url": url}).content.decode()


def test_name_address_and_model_come_first_and_the_rest_is_folded(signed_in, script):
    page = signed_in.get(reverse("console:new-endpoint")).content.decode()
    first, rest = page.split('<details class="fold">')
    for name in ("name", "base_url", "model"):
        assert f'name="{name}"' in first
    for name in ("kind", "api_key_variable", "concurrency", "input_price"):
        assert f'name="{name}"' in rest
    # What is wrong is not folded away.
    refused = signed_in.post(reverse("console:new-endpoint"), fields(script, concurrency="0")).content.decode()
    assert '<details class="fold" open>' in refused


def test_save_and_test_is_one_button(signed_in, script, idle_tasks):
    signed_in.post(reverse("console:new-endpoint"), fields(script, name="Mine", test=""))
    idle_tasks()
    assert EndpointTest.objects.get().endpoint.name == "Mine"
    assert Endpoint.objects.get().tested_at is not None


def test_the_models_of_a_server_are_offered(signed_in, script: Script):
    script.pages["/v1/models"] = listing
    shown = models_there(signed_in, script.url)
    assert '<option value="tiny">' in shown
    assert "&lt;b&gt;large" in shown
    assert "lists 2 models" in shown


@pytest.mark.parametrize(
    "url", ["http://10.0.0.1/v1", "http://models.example.org/v1", "nonsense", "http://127.0.0.1:9/v1"]
)
def test_an_address_that_cannot_be_asked_says_why(signed_in, url):
    assert "No list of models: " in models_there(signed_in, url)
    assert not Endpoint.objects.exists()


@pytest.mark.parametrize(
    ("cut", "pages", "said"),
    [
        ("/v1", {"/v1/models": listing}, "add /v1 to the address"),
        ("/v1", {"/models": a_web_page}, "a web page answers at this address"),
        ("", {"/v1/models": lambda handler: reply(handler, {"data": []})}, "lists no models"),
    ],
)
def test_what_is_wrong_about_an_address_is_said(signed_in, script: Script, cut, pages, said):
    script.pages |= pages
    assert said in models_there(signed_in, script.url.removesuffix(cut))


def test_a_test_that_fails_names_the_models_that_are_there(signed_in, researcher, script: Script, idle_tasks):
    script.pages["/v1/models"] = listing
    script.faults.extend([status(404, json.dumps({"error": {"message": "no such model"}}).encode())] * 9)
    endpoint = Endpoint.objects.create(
        owner=researcher, name="Mine", base_url=script.url, model="tyni", dialect=Dialect.VLLM, dialect_is_declared=True
    )
    assert "the server has no model “tyni”; it lists &lt;b&gt;large&lt;/b&gt;, tiny" in press_test(
        signed_in, endpoint, idle_tasks
    )


def test_a_server_that_is_not_there_is_asked_once(signed_in, researcher, script: Script, idle_tasks):
    script.faults.extend([raw(b"")] * 9)
    endpoint = Endpoint.objects.create(
        owner=researcher, name="Mine", base_url=script.url, model="m", dialect=Dialect.VLLM, dialect_is_declared=True
    )
    assert "Test of Mine failed" in press_test(signed_in, endpoint, idle_tasks)
    assert len(script.requests) == 1


@pytest.mark.parametrize("key", ["sk-proj-0123456789abcdef", "AIzaSyD-secret", "hf_abcdef0123"])
def test_a_pasted_key_is_refused_and_does_not_come_back(signed_in, script, key):
    page = signed_in.post(reverse("console:new-endpoint"), fields(script, api_key_variable=key)).content.decode()
    assert "and not the key itself" in page
    assert key not in page
    assert not Endpoint.objects.exists()
