"""The researcher's model endpoints and the questions that models answer, over HTTP.

*Test* of an endpoint as its owner sees it: made by a worker, seen on its way, stopped, and found after a crash.
"""

import json
import threading
from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone

from prefmh_web.endpoints import probe
from prefmh_web.endpoints.models import Endpoint, EndpointTest
from prefmh_web.endpoints.servers import Dialect
from prefmh_web.tasks import sweep
from tests.security.test_limits import all_at_once
from tests.support.models import Held, KnownJudge, Script, chat_reply, reply, scripted_server, send, status

JUDGE = KnownJudge({"the dark house": 0.4, "the red moon": 0.0})


@pytest.fixture
def script():
    with scripted_server(JUDGE) as script:
        yield script


@pytest.fixture
def signed_in(client, researcher, settings):
    settings.ENDPOINT_ALLOWED_HOSTS = ["127.0.0.1"]
    settings.ENDPOINT_ALLOW_PRIVATE = ["127.0.0.0/8"]
    client.force_login(researcher)
    return client


@pytest.fixture
def endpoint(researcher, script) -> Endpoint:
    return Endpoint.objects.create(
        owner=researcher, name="A model", base_url=script.url, model="tiny", dialect=Dialect.VLLM
    )


def press_test(desk, endpoint: Endpoint, idle_tasks) -> str:
    """Press Test, let the worker come to its end, and return the page."""
    assert desk.post(reverse("console:test-endpoint", args=[endpoint.pk])).status_code == 302
    idle_tasks()
    return desk.get(reverse("console:endpoints")).content.decode()


def fields(script, **changes) -> dict:
    filled = {"name": "A model", "base_url": script.url, "model": "tiny", "concurrency": "4", "timeout_s": "20"}
    return filled | {"api_key_variable": "", "input_price": "0.5", "output_price": ""} | changes


def test_an_endpoint_is_registered_tested_and_changed(signed_in, script, idle_tasks):
    signed_in.post(reverse("console:new-endpoint"), fields(script, name="Mine"))
    endpoint = Endpoint.objects.get()
    assert (endpoint.name, endpoint.tested_at) == ("Mine", None)
    # Told before the button is pressed; the cost where both prices are known.
    assert f"Test makes at most {probe.MAX_REQUESTS} short requests; most" in page(signed_in)
    Endpoint.objects.update(output_price=1.0)
    assert "short requests and costs at most 0." in page(signed_in)
    assert "Mine works" in press_test(signed_in, endpoint, idle_tasks)
    assert endpoint.totals.requests > 0
    signed_in.post(reverse("console:edit-endpoint", args=[endpoint.pk]), fields(script, name="Ours"))
    endpoint.refresh_from_db()
    assert endpoint.name == "Ours"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"base_url": "http://169.254.169.254/v1"}, "169.254.169.254"),
        ({}, "already have an endpoint with this name"),
    ],
)
def test_a_bad_endpoint_says_why_and_is_not_saved(signed_in, endpoint, script, changes, message):
    answer = signed_in.post(reverse("console:new-endpoint"), fields(script, **changes))
    assert answer.status_code == 200
    assert message in answer.content.decode()
    assert Endpoint.objects.count() == 1


_RUNNING, _DONE, _STOPPED = EndpointTest.Status.RUNNING, EndpointTest.Status.DONE, EndpointTest.Status.STOPPED


def of_the_sea(body: dict) -> dict:
    """Answer as a model that says something else by each seed."""
    return JUDGE(body) if body.get("logprobs") else chat_reply(f"The sea {body.get('seed', 0)}.")


def page(desk) -> str:
    return desk.get(reverse("console:endpoints")).content.decode()


def press(desk, name: str, endpoint: Endpoint) -> str:
    return desk.post(reverse(f"console:{name}", args=[endpoint.pk]), follow=True).content.decode()


def under_way(desk, endpoint: Endpoint, script: Script, eventually) -> Held:
    """Press Test, and let two requests be answered."""
    held = script.answer = Held(of_the_sea, 2)
    press(desk, "test-endpoint", endpoint)
    eventually(lambda: EndpointTest.objects.get().requests >= 2)
    return held


def died(endpoint: Endpoint, **changes) -> EndpointTest:
    """Return a test whose worker is gone."""
    stale = timezone.now() - timedelta(seconds=1)
    return EndpointTest.objects.create(endpoint=endpoint, **{"until": stale, "requests": 7} | changes)


def test_the_page_answers_at_once_and_shows_how_far_it_is(signed_in, endpoint, script, idle_tasks, eventually):
    held = script.answer = Held(of_the_sea, 3)
    shown = press(signed_in, "test-endpoint", endpoint)
    assert "You can leave this page and come back" in shown
    # The page asks for the card by itself, and reloading shows the same without a script.
    assert f'hx-select="#endpoint-{endpoint.pk}"' in shown
    eventually(lambda: EndpointTest.objects.get().requests >= 3)
    so_far = EndpointTest.objects.get().requests
    words = page(signed_in)
    assert f"{so_far} requests so far" in words
    assert 'hx-trigger="every 2s"' in words
    held.may_go_on.set()
    idle_tasks()
    test = EndpointTest.objects.get()
    assert (test.status, test.until) == (_DONE, None)
    # Every request that it made is told, and counted as the endpoint's.
    assert test.requests == endpoint.totals.requests > so_far
    words = page(signed_in)
    assert f"took {test.requests} requests" in words
    assert "hx-trigger" not in words
    endpoint.refresh_from_db()
    assert endpoint.tested_at is not None
    assert endpoint.profile["fields"]


def test_a_test_that_is_stopped_sends_nothing_more_and_leaves_what_was_known(
    signed_in, endpoint, script, idle_tasks, eventually
):
    known = {"requests": 5, "fields": [{"field": "top_k", "effect": "ignored", "evidence": "…", "requests": 4}]}
    Endpoint.objects.update(profile=known, can_vary=True, last_error="")
    held = under_way(signed_in, endpoint, script, eventually)
    assert "You stopped it" in press(signed_in, "stop-test", endpoint)
    # Its last request is on its way.
    assert "still on its way" in press(signed_in, "test-endpoint", endpoint)
    # Every second the worker looks whether it may go on.
    threading.Event().wait(1.5)
    held.may_go_on.set()
    idle_tasks()
    test = EndpointTest.objects.get()
    assert (test.status, test.until) == (_STOPPED, None)
    assert test.requests == endpoint.totals.requests < 10
    endpoint.refresh_from_db()
    # It is nothing against the server either.
    assert (endpoint.profile, endpoint.can_vary, endpoint.failures, endpoint.last_error) == (known, True, 0, "")
    assert endpoint.open_until is None
    assert "works" in press_test(signed_in, endpoint, idle_tasks)


def test_a_test_whose_worker_died_is_found_and_can_be_made_again(signed_in, endpoint, script, idle_tasks):
    died(endpoint)
    assert "ended before it was over" in page(signed_in)
    sweep()
    idle_tasks()
    test = EndpointTest.objects.get()
    assert test.status == _STOPPED
    # Nothing is paid for that nobody has asked for.
    assert not script.requests
    assert "works" in press_test(signed_in, endpoint, idle_tasks)


def test_a_test_that_lives_is_left_alone_by_the_sweep(endpoint, idle_tasks):
    died(endpoint, until=timezone.now() + timedelta(seconds=20))
    sweep()
    idle_tasks()
    assert EndpointTest.objects.get().status == _RUNNING


def test_what_was_seen_of_another_address_is_not_kept(signed_in, endpoint, script, idle_tasks, eventually):
    held = under_way(signed_in, endpoint, script, eventually)
    address = reverse("console:edit-endpoint", args=[endpoint.pk])
    signed_in.post(address, fields(script, model="another"))
    held.may_go_on.set()
    idle_tasks()
    endpoint.refresh_from_db()
    assert (endpoint.tested_at, endpoint.can_vary, endpoint.profile) == (None, None, {})
    assert "The endpoint was changed" in page(signed_in)


def test_of_two_who_press_at_once_one_begins_a_test(endpoint, script, idle_tasks):
    begun, together = [], threading.Barrier(2)
    held = script.answer = Held(of_the_sea)

    def begin() -> None:
        together.wait(20)
        try:
            begun.append(probe.begin(endpoint))
        except probe.UnderWay:
            begun.append(None)

    all_at_once([begin] * 2)
    held.may_go_on.set()
    idle_tasks()
    assert [test for test in begun if test] == list(EndpointTest.objects.all())
    assert len(begun) == 2


# The form of an endpoint: what is asked first, the models of a server, and what is said of a wrong address or key.


MODELS = {"object": "list", "data": [{"id": "tiny"}, {"id": "<b>large</b>"}]}


def listing(handler) -> None:
    reply(handler, MODELS)


def a_web_page(handler, *_) -> None:
    send(handler, 200, b"<!DOCTYPE html><title>Welcome</title>", {"Content-Type": "text/html"})


def models_there(desk, url: str) -> str:
    return desk.post(reverse("console:models-there"), {"base_url": url}).content.decode()


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


@pytest.mark.parametrize("key", ["sk-proj-0123456789abcdef", "AIzaSyD-secret", "hf_abcdef0123", "AKIAIOSFODNN7EXAMPLE"])
def test_a_pasted_key_is_refused_and_does_not_come_back(signed_in, script, key):
    # Addresses are logged.
    address = reverse("console:models-there")
    assert signed_in.get(address, {"base_url": script.url, "api_key_variable": key}).status_code == 405
    there = signed_in.post(address, {"base_url": script.url, "api_key_variable": key}).content.decode()
    assert key not in there
    page = signed_in.post(reverse("console:new-endpoint"), fields(script, api_key_variable=key)).content.decode()
    assert "and not the key itself" in page
    assert key not in page
    for url in (script.url.replace("//", f"//user:{key}@"), f"{script.url}?key={key}", f"{script.url}#{key}"):
        page = signed_in.post(reverse("console:new-endpoint"), fields(script, base_url=url)).content.decode()
        assert f'value="{script.url}"' in page
        assert "the base URL must" in page
        assert key not in page
    assert not Endpoint.objects.exists()
