"""The researcher's model endpoints and the questions that models answer, over HTTP."""

import pytest
from django.urls import reverse

from prefmh_web.endpoints.dialects import Dialect
from prefmh_web.endpoints.models import Endpoint
from tests.support.models import KnownJudge, scripted_server


@pytest.fixture
def script():
    with scripted_server(KnownJudge({"the dark house": 0.4, "the red moon": 0.0})) as script:
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
    filled = {"name": "Mine", "base_url": script.url, "model": "tiny", "concurrency": "4", "timeout_s": "20"}
    return filled | {"api_key_variable": "", "input_price": "0.5", "output_price": ""} | changes


def test_an_endpoint_is_registered_tested_and_changed(signed_in, script, idle_tasks):
    signed_in.post(reverse("console:new-endpoint"), fields(script))
    endpoint = Endpoint.objects.get()
    assert (endpoint.name, endpoint.tested_at) == ("Mine", None)
    assert "Mine works" in press_test(signed_in, endpoint, idle_tasks)
    assert endpoint.totals()["requests"] > 0
    signed_in.post(reverse("console:edit-endpoint", args=[endpoint.pk]), fields(script, name="Ours"))
    endpoint.refresh_from_db()
    assert endpoint.name == "Ours"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"base_url": "http://169.254.169.254/v1"}, "169.254.169.254"),
        ({"name": "A model"}, "already have an endpoint with this name"),
    ],
)
def test_a_bad_endpoint_says_why_and_is_not_saved(signed_in, endpoint, script, changes, message):
    answer = signed_in.post(reverse("console:new-endpoint"), fields(script, **changes))
    assert answer.status_code == 200
    assert message in answer.content.decode()
    assert Endpoint.objects.count() == 1


def test_who_is_no_researcher_has_no_endpoints(client, django_user_model):
    client.force_login(django_user_model.objects.create_user("eve"))
    assert client.get(reverse("console:endpoints")).status_code == 403


def question(**changes) -> dict:
    filled = {"question": "Which?", "votes": "4", "source": "A model", "order": "random"}
    filled |= {"temperature": "0.7", "votes": "log-probabilities", "first": "on"} | changes
    return {f"questions-0-{name}": value for name, value in filled.items()}
