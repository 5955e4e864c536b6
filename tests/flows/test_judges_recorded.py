"""A model judge stays the model that its campaign was started with, is asked once for each vote, and is recorded."""

import io
import json
import math
from collections import Counter
from collections.abc import Callable

import pytest
from django.core.management import CommandError, call_command
from django.urls import reverse

from prefmh_web.campaigns import tasks
from prefmh_web.campaigns.models import Campaign, Turn, Vote
from prefmh_web.endpoints.models import Endpoint
from prefmh_web.operations import doctor
from tests.flows.test_model_costs import JUDGE, QUESTION, endpoint, script
from tests.flows.test_models_judge import by_model, make
from tests.support.campaigns import (
    assert_record_is_whole,
    assert_replay_passes,
    export_to,
    table,
)
from tests.support.models import Script, status, votes_asked
from tests.support.sampling import files_of, write

__all__ = ["endpoint", "script"]


@pytest.fixture(autouse=True)
def signed_in(client, researcher) -> None:
    client.force_login(researcher)


def started(owner, idle_tasks, judge: dict | None = None, **changes) -> Campaign:
    return make(owner, [judge or by_model()], idle_tasks, **changes)


def sweep(campaign: Campaign, idle_tasks, times: int = 15) -> None:
    for _ in range(times):
        tasks.sweep()
        idle_tasks()
    campaign.refresh_from_db()


def page_of(client, campaign: Campaign) -> str:
    return client.get(campaign.get_absolute_url()).content.decode()


def signed(name: str, answer=JUDGE) -> Callable[[dict], dict]:
    """Answer as a judge whose replies say which model they are from."""
    return lambda body: answer(body) | {"model": name, "system_fingerprint": f"fp-{name}"}


def hiding(body: dict) -> dict:
    """Answer as a server whose list of log-probabilities leaves out a label of probability below 0.3."""
    found = JUDGE(body)
    told = found["choices"][0].get("logprobs")
    if told and JUDGE.is_asked_about_two(body):
        entry = told["content"][0]
        entry["top_logprobs"] = [one for one in entry["top_logprobs"] if one["logprob"] > math.log(0.3)]
    return found


def test_a_pair_whose_label_is_not_listed_is_voted_on_by_sampling(
    client, researcher, endpoint, script, idle_tasks, tmp_path
):
    script.answer = hiding
    campaign = started(researcher, idle_tasks, by_model("log-probabilities", budget=4))
    assert campaign.status == Campaign.Status.FINISHED
    assert_record_is_whole(campaign)
    path = export_to(campaign, tmp_path)
    assert_replay_passes(path)
    rows = table(path, "votes.csv")
    ways = Counter((bool(row["preference"]), row["asks"] != "0") for row in rows)
    # Drawn from p without a reply of their own, or sampled by one and without a preference; both occur.
    assert set(ways) == {(True, False), (False, True)}
    by_order = {}
    for row in rows:
        order = row["chain_index"], row["step"], row["proposal_side"]
        by_order.setdefault(order, set()).add(row["preference"])
    assert all(len(preferences) == 1 for preferences in by_order.values())
    assert "sampled instead of drawn from log-probabilities" in page_of(client, campaign)


def form_of(endpoint: Endpoint, **changes) -> dict:
    fields = {"name": endpoint.name, "base_url": endpoint.base_url, "model": endpoint.model, "concurrency": "4"}
    return fields | {"timeout_s": "20", "api_key_variable": "", "input_price": "", "output_price": ""} | changes


@pytest.mark.parametrize("change", [{"base_url": "http://127.0.0.1:9/v1"}, {"model": "other"}, {"name": "Another"}])
def test_an_endpoint_that_a_campaign_asks_stays_what_it_is(client, researcher, endpoint, script, idle_tasks, change):
    script.answer = signed("tiny-1")
    campaign = started(researcher, idle_tasks, steps=10)
    Campaign.objects.filter(pk=campaign.pk).update(status=Campaign.Status.PAUSED)
    address = reverse("console:edit-endpoint", args=[endpoint.pk])
    page = client.post(address, form_of(endpoint, **change), follow=True).content.decode()
    endpoint.refresh_from_db()
    assert {name: getattr(endpoint, name) for name in change} != change
    assert "cannot be changed while “Twelve texts” uses it" in page
    # Prices and limits are nobody's law.
    client.post(address, form_of(endpoint, input_price="2.5", concurrency="7"))
    endpoint.refresh_from_db()
    assert (endpoint.input_price, endpoint.concurrency) == (2.5, 7)
    Campaign.objects.filter(pk=campaign.pk).update(status=Campaign.Status.FINISHED)
    client.post(address, form_of(endpoint, **change))
    endpoint.refresh_from_db()
    assert {name: getattr(endpoint, name) for name in change} == change


def turned(script: Script, after: int) -> None:
    """Let the server answer as another model after so many votes."""

    def answer(body: dict) -> dict:
        return signed("tiny-1" if len(votes_asked(script)) <= after else "tiny-2")(body)

    script.answer = answer


def test_a_judge_whose_server_answers_as_another_model_is_asked_no_more(
    client, researcher, endpoint, script, idle_tasks, tmp_path
):
    turned(script, after=10)
    campaign = started(researcher, idle_tasks)
    sweep(campaign, idle_tasks, times=3)
    page = page_of(client, campaign)
    assert "now answers as “tiny-2”" in page
    assert campaign.status == Campaign.Status.RUNNING
    assert any("tiny-2" in str(finding) for finding in doctor.findings())
    # Nothing is asked any more, and no reply of the other model counts.
    asked, cast = len(script.requests), Vote.objects.count()
    sweep(campaign, idle_tasks, times=3)
    assert len(script.requests) == asked
    assert cast <= 10
    # Ask again asks, and sees that it is another one still.
    client.post(reverse("console:try-again", args=[campaign.pk]))
    sweep(campaign, idle_tasks, times=2)
    assert asked < len(script.requests) <= asked + 10
    assert Vote.objects.count() == cast
    # To go on with it is the researcher's to say, and the record tells the votes of the two apart.
    client.post(reverse("console:accept-model", args=[campaign.pk]))
    sweep(campaign, idle_tasks)
    assert campaign.status == Campaign.Status.FINISHED
    path = export_to(campaign, tmp_path)
    assert_replay_passes(path)
    (judge,) = judges_of(path)
    names = {str(found["identity"]): found["model"] for found in judge["identities"]}
    assert Counter(names[row["identity"]] for row in table(path, "votes.csv"))["tiny-1"] == cast
    assert set(names.values()) == {"tiny-1", "tiny-2"}


def judges_of(path) -> list[dict]:
    return json.loads(files_of(path)["judges.json"])


def test_the_record_says_what_the_judge_is(researcher, endpoint, script, idle_tasks, tmp_path):
    script.answer = signed("tiny-1")
    campaign = started(researcher, idle_tasks)
    path = export_to(campaign, tmp_path)
    (judge,) = judges_of(path)
    assert (judge["endpoint"], judge["base_url"], judge["model"]) == ("A model", script.url, "tiny")
    assert (judge["dialect"], judge["question"]) == ("vllm", QUESTION)
    # What stands there is what was sent.
    sent = votes_asked(script)[0]
    assert {name: value for name, value in sent.items() if name not in ("messages", "seed")} == judge["request"]
    system, user = (message["content"] for message in sent["messages"])
    assert system == judge["prompt"]["system"]
    assert user.startswith(judge["prompt"]["opening"])
    assert user.endswith(judge["prompt"]["closing"])
    (identity,) = judge["identities"]
    assert (identity["model"], identity["system_fingerprint"]) == ("tiny-1", "fp-tiny-1")
    assert {row["identity"] for row in table(path, "votes.csv")} == {str(identity["identity"])}


TAMPERINGS = {
    "question": lambda judge: judge.update(question="Which is lighter?"),
    "temperature": lambda judge: judge["request"].update(temperature=0.1),
    "endpoint": lambda judge: judge.update(endpoint="Another"),
    "prompt": lambda judge: judge["prompt"].update(opening="Question: Which is lighter?"),
    "reply": lambda judge: judge["identities"].clear(),
}


def test_a_changed_judge_is_found_by_replay(researcher, endpoint, script, idle_tasks, tmp_path):
    path = export_to(started(researcher, idle_tasks), tmp_path)
    for what, change in TAMPERINGS.items():
        judges = judges_of(path)
        change(judges[0])
        changed = files_of(path) | {"judges.json": json.dumps(judges).encode()}
        with pytest.raises(CommandError, match="difference"):
            call_command("replay", str(write(changed, tmp_path / "changed.zip")), stdout=(out := io.StringIO()))
        assert what in out.getvalue()


def test_an_endpoint_changed_behind_the_form_stops_the_judge(client, researcher, endpoint, script, idle_tasks):
    script.faults.extend([status(500)] * 100)
    campaign = started(researcher, idle_tasks)
    Endpoint.objects.update(model="other", open_until=None, failures=0)
    Turn.objects.all().delete()
    script.faults.clear()
    script.requests.clear()
    sweep(campaign, idle_tasks, times=2)
    assert script.requests == []
    assert "has another model now, other" in page_of(client, campaign)
    Endpoint.objects.update(model="tiny")
    client.post(reverse("console:try-again", args=[campaign.pk]))
    sweep(campaign, idle_tasks)
    assert campaign.status == Campaign.Status.FINISHED
