"""The researcher's model endpoints and the questions that models answer, over HTTP."""

import pytest
from django.urls import reverse

from prefmh_web.campaigns.models import Campaign
from prefmh_web.endpoints.dialects import Dialect
from prefmh_web.endpoints.models import Endpoint
from tests.console.test_pages import OF_MOLECULES, as_shown, form
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
    asked = {"question": "Which?", "votes": "4", "order": "random", "source.kind": "model"}
    model = {"endpoint": "A model", "temperature": "0.7", "votes": "log-probabilities", "first": "on"}
    filled = asked | {f"source.model.{name}": value for name, value in model.items()} | changes
    return {f"judges.0.{name}": value for name, value in filled.items()}


def test_how_pictures_are_shown_goes_into_the_config_and_back(signed_in, endpoint, idle_tasks):
    vision = {"edge": "512", "format": "jpeg", "quality": "80", "detail": "low", "molecules": "picture"}
    fields = {f"source.model.vision.{name}": value for name, value in vision.items()}
    signed_in.post(reverse("console:create"), form(**question(**fields), **OF_MOLECULES))
    campaign = Campaign.objects.get()
    source = campaign.config_data["judges"][0]["source"]
    assert source["vision"] == vision | {"edge": 512, "quality": 80}
    shown = as_shown(signed_in, reverse("console:edit", args=[campaign.pk]))
    assert {name: shown[f"judges.0.{name}"] for name in fields} == {name: [value] for name, value in fields.items()}
    fields = question(**{"source.model.vision.quality": "80"})
    refused = signed_in.post(reverse("console:create"), form(**fields, **OF_MOLECULES))
    assert "quality is that of a jpeg" in refused.content.decode()
    assert Campaign.objects.count() == 1


def test_a_bad_question_for_a_model_says_why(signed_in, endpoint, idle_tasks):
    answer = signed_in.post(reverse("console:create"), form(**{"judges.0.order": "balanced"}))
    assert "needs a model with an even number of votes" in answer.content.decode()
    assert not Campaign.objects.exists()
