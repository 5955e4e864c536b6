"""A model judge stays the model that its campaign was started with, is asked once for each vote, and is recorded.

A campaign whose judge is asked in its researcher's words: shown, sent, frozen, recorded and replayed.

Reasons of a model: kept beside its votes where the setting says so, shown, exported, and never the answer.

A model that is shown molecules as SMILES, drawings or both: what it is sent, what is recorded, what is refused.
"""

import json
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from functools import partial

import numpy as np
import pytest
from django.db import transaction
from django.urls import reverse
from django.utils import timezone

from prefmh_web.campaigns import lifecycle
from prefmh_web.campaigns.lifecycle import model_start
from prefmh_web.campaigns.models import Campaign, NotPossible, Turn, Vote
from prefmh_web.endpoints.models import Endpoint
from prefmh_web.endpoints.servers import Dialect
from prefmh_web.operations import doctor
from sampler.judges import PromptTemplate
from tests.console.test_endpoints import fields
from tests.console.test_pages import form
from tests.flows.test_judges_at_start import campaign, declared_server, judge_in
from tests.flows.test_model_costs import JUDGE, QUESTION, by_model, draft, endpoint, script, written
from tests.flows.test_models_judge import make
from tests.security.world import browser_of
from tests.support.campaigns import live_page, make_config, start_campaign, started_now, swept
from tests.support.models import (
    Script,
    Writer,
    anything_else,
    chat_reply,
    hiding,
    pictures,
    scripted_server,
    status,
    votes_asked,
    words,
)
from tests.support.process import on_own_connection
from tests.support.records import assert_record_is_whole, assert_replay_passes, export_to, refused_by_replay, table
from tests.support.sampling import files_of, write

__all__ = ["campaign", "endpoint", "script"]


@pytest.fixture(autouse=True)
def signed_in(client, researcher) -> None:
    client.force_login(researcher)


def started_with(owner, idle_tasks, judge: dict | None = None, **changes) -> Campaign:
    return make(owner, [judge or by_model()], **changes)


def signed(name: str, answer=JUDGE) -> Callable[[dict], dict]:
    """Answer as a judge whose replies say which model they are from."""
    return lambda body: answer(body) | {"model": name, "system_fingerprint": f"fp-{name}"}


def test_a_pair_whose_label_is_not_listed_is_voted_on_by_sampling(
    client, researcher, endpoint, script, idle_tasks, tmp_path
):
    script.answer = hiding(JUDGE, 0.3)
    campaign = started_with(researcher, idle_tasks, by_model("log-probabilities", budget=4))
    assert campaign.status == Campaign.Status.FINISHED
    assert_record_is_whole(campaign)
    path = export_to(campaign, tmp_path)
    assert_replay_passes(path)
    rows = table(path, "votes.csv")
    ways = Counter((bool(row["preference"]), row["attempts"] != "0") for row in rows)
    # Drawn from p without a reply of their own, or sampled by one and without a preference; both occur.
    assert set(ways) == {(True, False), (False, True)}
    by_order = {}
    for row in rows:
        order = row["chain_index"], row["step"], row["proposal_side"]
        by_order.setdefault(order, set()).add(row["preference"])
    assert all(len(preferences) == 1 for preferences in by_order.values())
    assert "sampled instead of drawn from log-probabilities" in live_page(client, campaign)


@pytest.mark.parametrize("change", [{"base_url": "http://127.0.0.1:9/v1"}, {"model": "other"}, {"name": "Another"}])
def test_an_endpoint_that_a_campaign_asks_stays_what_it_is(client, researcher, endpoint, script, idle_tasks, change):
    script.answer = signed("tiny-1")
    campaign = started_with(researcher, idle_tasks, steps=10)
    Campaign.objects.filter(pk=campaign.pk).update(status=Campaign.Status.PAUSED)
    address = reverse("console:edit-endpoint", args=[endpoint.pk])
    page = client.post(address, fields(script, **change), follow=True).content.decode()
    endpoint.refresh_from_db()
    assert {name: getattr(endpoint, name) for name in change} != change
    assert "cannot be changed while “Twelve texts” uses it" in page
    # Prices and limits change no distribution.
    client.post(address, fields(script, input_price="2.5", concurrency="7"))
    endpoint.refresh_from_db()
    assert (endpoint.input_price, endpoint.concurrency) == (2.5, 7)
    Campaign.objects.filter(pk=campaign.pk).update(status=Campaign.Status.FINISHED)
    client.post(address, fields(script, **change))
    endpoint.refresh_from_db()
    assert {name: getattr(endpoint, name) for name in change} == change


@pytest.mark.parametrize("status", [Campaign.Status.RUNNING, Campaign.Status.FINISHED])
def test_an_endpoint_that_writes_stays_what_it_is_as_long_as_its_campaign_may_go_on(
    client, researcher, settings, idle_tasks, status
):
    with scripted_server(Writer()) as writing:
        campaign = started_now(written(researcher, writing, settings))
        Campaign.objects.filter(pk=campaign.pk).update(status=status)
        endpoint = Endpoint.objects.get()
        address = reverse("console:edit-endpoint", args=[endpoint.pk])
        page = client.post(address, fields(writing, model="other"), follow=True).content.decode()
        assert "cannot be changed while “Made” uses it, or may be extended with it" in page
        page = client.post(reverse("console:remove-endpoint", args=[endpoint.pk]), follow=True).content.decode()
        assert "cannot be removed, because a campaign uses it" in page
        assert Endpoint.objects.get().model == "tiny"


def test_an_endpoint_that_is_changed_while_it_writes_the_first_texts_starts_nothing(researcher, settings, idle_tasks):
    with scripted_server(Writer(lambda: Endpoint.objects.update(model="other"))) as writing:
        draft = written(researcher, writing, settings)
        with pytest.raises(NotPossible, match="“A model” was changed in this very moment"):
            lifecycle.start(draft)
        draft.refresh_from_db()
        assert draft.is_draft


def test_an_endpoint_is_not_changed_or_removed_under_a_campaign_that_starts(client, researcher, settings, idle_tasks):
    with scripted_server(Writer()) as writing:
        draft, endpoint = written(researcher, writing, settings), Endpoint.objects.get()
        paths = [reverse(f"console:{name}-endpoint", args=[endpoint.pk]) for name in ("edit", "remove")]
        with ThreadPoolExecutor(1) as pool:
            with transaction.atomic():
                Campaign.objects.filter(pk=draft.pk).update(status=Campaign.Status.RUNNING, started_at=timezone.now())
                model_start.freeze(draft, {endpoint.name: (endpoint, ())})
                post = on_own_connection(partial(client.post, follow=True))
                sent = [pool.submit(post, path, fields(writing, model="other")) for path in paths]
                # Time enough to look at the campaign before it has started.
                wait(sent, timeout=0.5)
            changed, removed = (each.result().content.decode() for each in sent)
        assert "cannot be changed while “Made” uses it" in changed
        assert "cannot be removed, because a campaign uses it" in removed
        assert Endpoint.objects.get().model == "tiny"


def turned(script: Script, after: int) -> None:
    """Let the server answer as another model after so many votes."""

    def answer(body: dict) -> dict:
        return signed("tiny-1" if len(votes_asked(script)) <= after else "tiny-2")(body)

    script.answer = answer


def test_a_judge_whose_server_answers_as_another_model_is_asked_no_more(
    client, researcher, endpoint, script, idle_tasks, tmp_path
):
    turned(script, after=10)
    campaign = started_with(researcher, idle_tasks)
    swept(campaign, 3)
    page = live_page(client, campaign)
    assert "now answers as “tiny-2”" in page
    assert "A model needs you." in page
    assert campaign.status == Campaign.Status.RUNNING
    assert any("tiny-2" in str(finding) for finding in doctor.findings())
    # Nothing is asked any more, and no reply of the other model counts.
    asked, cast = len(script.requests), Vote.objects.count()
    swept(campaign, 3)
    assert len(script.requests) == asked
    assert cast <= 10
    # Ask again asks, and sees that it is another one still.
    client.post(reverse("console:try-again", args=[campaign.pk]))
    swept(campaign, 2)
    assert asked < len(script.requests) <= asked + 10
    assert Vote.objects.count() == cast
    # To go on with it is the researcher's to say, and the record tells the votes of the two apart.
    client.post(reverse("console:accept-model", args=[campaign.pk]))
    swept(campaign)
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
    campaign = started_with(researcher, idle_tasks)
    path = export_to(campaign, tmp_path)
    (judge,) = judges_of(path)
    assert (judge["endpoint"], judge["base_url"], judge["model"]) == ("A model", script.url, "tiny")
    assert (judge["dialect"], judge["question"]) == ("vllm", QUESTION)
    # What stands there is what was sent.
    sent = votes_asked(script)[0]
    assert {name: value for name, value in sent.items() if name not in ("messages", "seed")} == judge["request"]
    system, user = (message["content"] for message in sent["messages"])
    template = judge["prompt"]["template"]
    assert system == template["system"]
    assert user.startswith(template["user"].partition("{{first}}")[0].replace("{{question}}", QUESTION))
    assert user.endswith(template["user"].rpartition("{{second}}")[2])
    (identity,) = judge["identities"]
    assert (identity["model"], identity["system_fingerprint"]) == ("tiny-1", "fp-tiny-1")
    assert {row["identity"] for row in table(path, "votes.csv")} == {str(identity["identity"])}


TAMPERINGS = {
    "question": lambda judge: judge.update(question="Which is lighter?"),
    "temperature": lambda judge: judge["request"].update(temperature=0.1),
    "endpoint": lambda judge: judge.update(endpoint="Another"),
    "prompt": lambda judge: judge["prompt"].update(question="Which is lighter?"),
    "prompt's version": lambda judge: judge.update(prompt_version="0" * 8),
    "reply": lambda judge: judge["identities"].clear(),
}


def test_a_changed_judge_is_found_by_replay(researcher, endpoint, script, idle_tasks, tmp_path):
    path = export_to(started_with(researcher, idle_tasks), tmp_path)
    for what, change in TAMPERINGS.items():
        judges = judges_of(path)
        change(judges[0])
        changed = files_of(path) | {"judges.json": json.dumps(judges).encode()}
        assert what in refused_by_replay(write(changed, tmp_path / "changed.zip"))


LIES = {"fields": [{"field": "truth", "effect": "ignored", "evidence": "it came 80 times in 90 replies"}]}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"model": "other"}, "has another model now, other"),
        # As a test sees it.
        ({"dialect": "sglang"}, "has another kind of server now, sglang"),
        ({"profile": LIES}, "does not sample from the distribution that it tells: it came 80 times"),
    ],
)
def test_an_endpoint_that_is_another_one_now_stops_the_judge(
    client, researcher, endpoint, script, idle_tasks, change, words
):
    script.faults.extend([status(500)] * 100)
    campaign = started_with(researcher, idle_tasks)
    before = Endpoint.objects.values(*change).get()
    Endpoint.objects.update(**change)
    Turn.objects.all().delete()
    script.faults.clear()
    script.requests.clear()
    swept(campaign, 2)
    assert script.requests == []
    assert words in live_page(client, campaign)
    Endpoint.objects.update(**before)
    client.post(reverse("console:try-again", args=[campaign.pk]))
    swept(campaign)
    assert campaign.status == Campaign.Status.FINISHED


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
    campaign = started_now(Campaign.objects.get())
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
        answer = desk.post(reverse("console:preview-new"), fields | {"part": "judges.0", "space.catalog.file": ""})
        return answer.context["preview"]["requests"][0]["body"]
    # The same campaign as a draft again: the preview shows the first objects of its list.
    copied = draft(campaign.owner, by_model())
    copied.states.exclude(content__in=[row.content for row in rows]).delete()
    answer = desk.post(
        reverse("console:preview", args=[copied.pk]), fields | {"part": "judges.0", "space.catalog.file": ""}
    )
    requests = answer.context["preview"]["requests"]
    assert len(requests) == 2
    return next(
        each["body"] for each in requests if each["body"].index(rows[0].content) < each["body"].index(rows[1].content)
    )


def test_the_preview_shows_both_orders_the_version_and_no_key(researcher, endpoint, script, monkeypatch):
    monkeypatch.setenv("SECRET_OF_OURS", "sk-very-secret")
    Endpoint.objects.update(api_key_variable="SECRET_OF_OURS")
    answer = browser_of(researcher).post(
        reverse("console:preview-new"), fields_of() | {"part": "judges.0", "space.catalog.file": ""}
    )
    shown = answer.context["preview"]
    one, other = (json.loads(each["body"]) for each in shown["requests"])
    assert one["messages"][0] == {"role": "system", "content": f"You are a careful judge of “{QUESTION}”."}
    assert one["messages"][1]["content"] != other["messages"][1]["content"]
    page = answer.content.decode()
    assert PromptTemplate(system=SYSTEM, user=PAIR).version in page
    assert "sk-very-secret" not in page
    assert "uthorization" not in page
    # Nobody was asked.
    assert script.requests == []


def test_a_record_holds_the_researchers_own_prompt_and_replays(researcher, endpoint, idle_tasks, tmp_path):
    campaign = started_now(draft(researcher, own(system=SYSTEM)))
    path = export_to(campaign, tmp_path)
    assert_replay_passes(path)
    assert_record_is_whole(campaign)
    (judge,) = judges_of(path)
    version = PromptTemplate(system=SYSTEM, user=PAIR).version
    assert (judge["prompt"]["template"], judge["prompt_version"]) == ({"system": SYSTEM, "user": PAIR}, version)
    assert version in browser_of(researcher).get(campaign.get_absolute_url()).content.decode()


HOSTILE = "<script>alert(1)</script> A. Answer B!\0 =HYPERLINK(1)"


def thinking(text: str):
    """Return a model that thinks this before each of its answers."""

    def answer(body: dict) -> dict:
        found = JUDGE(body)
        found["choices"][0]["message"]["reasoning"] = text
        return found

    return answer


def finished(campaign, answer, **source) -> Campaign:
    settings = {"distribution_unverified": True, "temperature": 1, "thinking": 2000} | source
    return campaign(Dialect.OPENROUTER, answer, **settings)


def test_each_vote_has_its_reason_on_the_page_and_in_the_record(campaign, client, tmp_path) -> None:
    done = finished(campaign, thinking("A, or B?"), reasons=True)
    assert done.status == Campaign.Status.FINISHED
    votes = Vote.objects.filter(comparison__chain__campaign=done)
    assert {vote.reason for vote in votes} == {"A, or B?"}
    page = client.get(done.get_absolute_url()).content.decode()
    assert "What the models thought" in page
    assert "A, or B?" in page
    path = export_to(done, tmp_path)
    assert_replay_passes(path)
    assert_record_is_whole(done)
    rows = table(path, "reasons.csv")
    which = ("chain_index", "step", "judge_index", "slot")
    assert [[row[name] for name in which] for row in rows] == sorted(
        ([row[name] for name in which] for row in table(path, "votes.csv")), key=lambda row: [int(cell) for cell in row]
    )
    assert {(row["reason"], row["cut"]) for row in rows} == {("A, or B?", "0")}
    record = client.get(reverse("console:record", args=[done.pk])).content.decode()
    assert reverse("console:download", args=[done.pk, "reasons.csv"]) in record


def test_what_a_model_thinks_is_cut_escaped_and_never_the_answer(campaign, client, tmp_path) -> None:
    done = finished(campaign, thinking(HOSTILE + "x" * 5000), reasons=True)
    assert done.status == Campaign.Status.FINISHED
    for vote in Vote.objects.all():
        assert (len(vote.shown_reason), vote.is_reason_cut) == (2000, True)
    page = client.get(done.get_absolute_url()).content.decode()
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert" in page
    assert "Cut after 2,000 characters" in page
    assert {row["cut"] for row in table(export_to(done, tmp_path), "reasons.csv")} == {"1"}
    # Its thoughts name both labels, and each vote is the label of the answer all the same.
    assert set(Vote.objects.values_list("attempts", flat=True)) == {1}


MOLECULES = "smiles,weight\nCCO,1\nc1ccccc1,1\nCC(=O)O,1\nCCN,1\nCCCC,1\nOCC(O)CO,1\n"


def seeing(body: dict) -> dict:
    """Answer as a model that sees pictures, and prefers either object at random."""
    if "Question: " not in json.dumps(body.get("messages", "")):
        return anything_else(body)
    said = str(np.random.default_rng(body["seed"]).choice(["A", "B"]))
    return chat_reply(said) | {"usage": {"prompt_tokens": 50 + 255 * len(pictures(body)), "completion_tokens": 1}}


def blind(body: dict) -> dict:
    """Answer as a model that passes over pictures."""
    return seeing(body) | {"usage": {"prompt_tokens": 50, "completion_tokens": 1}}


@pytest.fixture
def judged(researcher, settings):
    def of(answer=seeing, dialect=Dialect.OPENAI, **vision):
        source = {"kind": "model", "endpoint": "A model", "distribution_unverified": True}
        source |= {"vision": vision} if vision else {}
        judges = [{"question": "Which is safer?", "votes": 2, "source": source}]
        config = make_config(
            judges=judges, chains=2, steps=4, kernel={"kind": "independent"},
            space={"kind": "catalog", "objects": "molecules", "neighbours": 0},
        )  # fmt: skip
        with declared_server(researcher, settings, answer, dialect) as script:
            made = start_campaign(researcher, file=MOLECULES, filename="molecules.csv", config=config)
        return made, votes_asked(script)

    return of


def smiles_in(body: dict) -> bool:
    return any(line.split(",")[0] in words(body).splitlines() for line in MOLECULES.splitlines()[1:])


@pytest.mark.parametrize(
    ("molecules", "count", "smiles"),
    [(None, 2, True), ("smiles", 0, True), ("picture", 2, False), ("both", 2, True)],
)
def test_molecules_are_shown_as_the_config_says(judged, tmp_path, molecules, count, smiles):
    campaign, asked = judged(**({"molecules": molecules} if molecules else {}))
    assert campaign.status == Campaign.Status.FINISHED
    assert {len(pictures(body)) for body in asked} == {count}
    assert {smiles_in(body) for body in asked} == {smiles}
    path = export_to(campaign, tmp_path)
    assert_replay_passes(path)
    judge = judge_in(path)
    assert judge.get("vision") == ({"molecules": molecules} if molecules else None)
    assert ("SMILES" in judge["prompt"]["template"]["system"]) == smiles
    assert {body["messages"][0]["content"] for body in asked} == {judge["prompt"]["template"]["system"]}


def test_a_record_whose_pictures_were_shown_otherwise_does_not_replay(judged, tmp_path):
    campaign, _ = judged(edge=128)
    judge = campaign.judges.get()
    judge.frozen["vision"] = {"edge": 256}
    judge.save()
    assert "how pictures are shown" in refused_by_replay(export_to(campaign, tmp_path))


def test_what_the_model_or_its_server_cannot_do_is_refused_at_the_start(judged):
    with pytest.raises(NotPossible, match="no sign that it sees pictures"):
        judged(answer=blind, molecules="picture")
    Endpoint.objects.all().delete()
    with pytest.raises(NotPossible, match="has no field for the detail of pictures"):
        judged(dialect=Dialect.VLLM, detail="high")
