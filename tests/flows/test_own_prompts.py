"""A campaign whose judge is asked in its researcher's words: shown, sent, frozen, recorded and replayed."""

import io
import json

import pytest
from django.core.management import CommandError, call_command
from django.urls import reverse

from prefmh_web.campaigns import lifecycle
from prefmh_web.campaigns.models import Campaign
from prefmh_web.endpoints.models import Endpoint
from sampler.judges import PromptTemplate
from tests.console.test_pages import form
from tests.flows.test_model_costs import QUESTION, by_model, draft, endpoint, script, started
from tests.security.world import browser_of
from tests.support.campaigns import assert_record_is_whole, assert_replay_passes, export_to
from tests.support.sampling import files_of, write

__all__ = ["endpoint", "script"]

PAIR = "Question: {{question}}\nA: {{first}}\nB: {{second}}\nThe letter (A or B), as in {json}:"
SYSTEM = "You are a careful judge of “{{question}}”."


def own(user: str = PAIR, **fields) -> dict:
    judge = by_model(budget=2)
    return judge | {"source": judge["source"] | {"prompt": {"user": user, **fields}}}


def fields_of(user: str = PAIR, **changes: str) -> dict:
    return form(
        **{
            "judges.0.question": QUESTION,
            "judges.0.source.kind": "model",
            "judges.0.source.model.endpoint": "A model",
            "judges.0.source.model.temperature": "0.7",
            "judges.0.source.model.votes": "sampled",
            "judges.0.source.model.prompt.system": SYSTEM,
            "judges.0.source.model.prompt.user": user,
        }
        | changes
    )


def votes_in(script) -> list[tuple[dict, bytes]]:
    asked = zip(list(script.requests), list(script.bodies), strict=True)
    return [(body, raw) for body, raw in asked if "careful judge" in json.dumps(body) and body["seed"] != 1]


def test_what_is_shown_in_the_setup_is_what_the_server_gets(researcher, endpoint, script, idle_tasks):
    desk = browser_of(researcher)
    desk.post(reverse("console:create"), fields_of())
    idle_tasks()
    campaign = Campaign.objects.get()
    lifecycle.start(campaign)
    idle_tasks()
    asked = votes_in(script)
    assert asked
    # The setup that the researcher saw, with the pair that the server was asked about in place of the sample.
    for body, raw in asked[:4]:
        content = body["messages"][-1]["content"]
        shown_in_it = [row for row in campaign.states.all() if f"\n{row.content}\n" in content]
        both = sorted(shown_in_it, key=lambda row: content.index(row.content))
        shown = preview(desk, fields_of(), rows=both, campaign=campaign)
        assert shown.replace('"seed":1,', f'"seed":{body["seed"]},').encode() == raw


def preview(desk, fields: dict, rows=(), campaign: Campaign | None = None) -> str:
    """Return the body that the preview shows first; of a draft whose first two objects are these."""
    if campaign is None:
        answer = desk.post(reverse("console:preview-new"), fields | {"place": "judges.0", "space.catalog.file": ""})
        return answer.context["preview"].requests[0].body
    # The same campaign as a draft again: the preview shows the first objects of its list.
    twin = draft(campaign.owner, by_model())
    twin.states.exclude(content__in=[row.content for row in rows]).delete()
    answer = desk.post(
        reverse("console:preview", args=[twin.pk]), fields | {"place": "judges.0", "space.catalog.file": ""}
    )
    requests = answer.context["preview"].requests
    assert len(requests) == 2
    return next(each.body for each in requests if each.body.index(rows[0].content) < each.body.index(rows[1].content))


def test_the_preview_shows_both_orders_the_version_and_no_key(researcher, endpoint, script, monkeypatch):
    monkeypatch.setenv("SECRET_OF_OURS", "sk-very-secret")
    Endpoint.objects.update(api_key_variable="SECRET_OF_OURS")
    answer = browser_of(researcher).post(
        reverse("console:preview-new"), fields_of() | {"place": "judges.0", "space.catalog.file": ""}
    )
    shown = answer.context["preview"]
    one, other = (json.loads(each.body) for each in shown.requests)
    assert one["messages"][0] == {"role": "system", "content": f"You are a careful judge of “{QUESTION}”."}
    assert one["messages"][1]["content"] != other["messages"][1]["content"]
    page = answer.content.decode()
    assert PromptTemplate(system=SYSTEM, user=PAIR).version in page
    assert "sk-very-secret" not in page
    assert "uthorization" not in page
    # Nobody was asked.
    assert script.requests == []


def test_a_record_replays_and_one_with_a_changed_prompt_does_not(researcher, endpoint, idle_tasks, tmp_path):
    campaign = started(idle_tasks, draft(researcher, own(system=SYSTEM)))
    path = export_to(campaign, tmp_path)
    assert_replay_passes(path)
    assert_record_is_whole(campaign)
    files = files_of(path)
    (judge,) = json.loads(files["judges.json"])
    version = PromptTemplate(system=SYSTEM, user=PAIR).version
    assert (judge["prompt"]["template"], judge["prompt_version"]) == ({"system": SYSTEM, "user": PAIR}, version)
    assert version in browser_of(researcher).get(campaign.get_absolute_url()).content.decode()
    for changed in (b"The letter (A or B)", b'"prompt_version": "', b"careful judge"):
        judges = files["judges.json"].replace(changed, changed + b"x", 1)
        other = write(files | {"judges.json": judges}, tmp_path / "changed.zip")
        with pytest.raises(CommandError, match="difference"):
            call_command("replay", str(other), stdout=(out := io.StringIO()))
        assert "prompt" in out.getvalue()
