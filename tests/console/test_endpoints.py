"""The researcher's model endpoints and the questions that models answer, over HTTP."""

import pytest
from django.db import connection
from django.urls import reverse

from prefmh_web.campaigns.models import Campaign, Comparison, Turn
from prefmh_web.endpoints.dialects import Dialect
from prefmh_web.endpoints.models import Endpoint
from tests.console.test_pages import OF_MOLECULES, as_shown, form
from tests.support.models import KnownJudge, chat_reply, raw, reply, scripted_server, status


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


def test_the_kind_of_a_server_can_be_declared_and_left_to_the_test_again(signed_in, script, idle_tasks):
    signed_in.post(reverse("console:new-endpoint"), fields(script, kind="tgi"))
    endpoint = Endpoint.objects.get()
    assert (endpoint.dialect, endpoint.dialect_is_declared) == (Dialect.TGI, True)
    page = reverse("console:edit-endpoint", args=[endpoint.pk])
    assert '<option value="tgi" selected>' in signed_in.get(page).content.decode()
    signed_in.post(page, fields(script, kind=""))
    press_test(signed_in, endpoint, idle_tasks)
    endpoint.refresh_from_db()
    assert (endpoint.dialect, endpoint.dialect_is_declared) == (Dialect.VLLM, False)


def test_the_page_shows_what_the_server_does_with_each_field(signed_in, endpoint, idle_tasks):
    page = reverse("console:edit-endpoint", args=[endpoint.pk])
    assert "What it does with each field" not in signed_in.get(page).content.decode()
    press_test(signed_in, endpoint, idle_tasks)
    shown = signed_in.get(page).content.decode()
    endpoint.refresh_from_db()
    assert f"in {endpoint.profile['requests']} requests" in shown
    # The scripted judge writes one of fifty words by the seed alone.
    assert "<td>temperature</td><td>ignored</td>" in shown
    assert "<td>seed</td><td>obeyed</td>" in shown
    assert "untruncated sampling" not in shown


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


def test_a_test_says_on_the_page_what_each_attempt_saw(signed_in, endpoint, script, idle_tasks):
    script.pages |= {"/props": raw(b"<html>Welcome to the gateway"), "/get_server_info": status(503, b"warming up")}
    script.answer = lambda body: chat_reply("The sea is wide.")
    page = press_test(signed_in, endpoint, idle_tasks)
    assert "did not pass" not in page
    for words in ("/props", "Welcome to the gateway", "/get_server_info", "warming up", "/version", "it is vLLM"):
        assert words in page
    # Why there is no tick, too.
    assert "gave the same reply" in page


def test_an_endpoint_may_be_removed_while_it_is_tested(signed_in, endpoint, script, idle_tasks, caplog):
    def removed(handler) -> None:
        Endpoint.objects.all().delete()
        connection.close()
        reply(handler, chat_reply("The sea is wide."))

    script.faults.append(removed)
    assert "No endpoints yet" in press_test(signed_in, endpoint, idle_tasks)
    assert not [line for line in caplog.records if line.levelname == "ERROR"]


def test_nothing_is_asked_again_once_a_campaign_is_finished(signed_in, endpoint, campaign):
    # A model's question that waits for somebody, in a campaign that has come to its end since.
    judge = campaign.judges.first()
    campaign.judges.filter(pk=judge.pk).update(endpoint=endpoint)
    comparison = Comparison.objects.first()
    Turn.objects.create(comparison=comparison, judge=judge, asked=0, until=None, reason="A model: no")
    assert "Ask again" in signed_in.get(campaign.get_absolute_url()).content.decode()
    Campaign.objects.update(status=Campaign.Status.FINISHED)
    page = signed_in.get(campaign.get_absolute_url()).content.decode()
    assert "Ask again" not in page
    answer = signed_in.post(reverse("console:try-again", args=[campaign.pk]), follow=True).content.decode()
    assert Turn.objects.filter(until__isnull=True).count() == 1
    assert "the campaign is finished" in answer


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
