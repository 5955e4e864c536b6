"""A model that is shown molecules as SMILES, drawings or both: what it is sent, what is recorded, what is refused."""

import io
import json
import zipfile

import numpy as np
import pytest
from django.core.management import CommandError, call_command

import sampler
from prefmh_web.campaigns import lifecycle
from prefmh_web.campaigns.errors import NotPossible
from prefmh_web.campaigns.models import Campaign
from prefmh_web.endpoints.dialects import Dialect
from prefmh_web.endpoints.models import Endpoint
from tests.flows.test_model_costs import registered
from tests.support.campaigns import assert_replay_passes, export_to, make_config, make_draft
from tests.support.models import anything_else, chat_reply, scripted_server, status, votes_asked

MOLECULES = "smiles,weight\nCCO,1\nc1ccccc1,1\nCC(=O)O,1\nCCN,1\nCCCC,1\nOCC(O)CO,1\n"


def pictures_in(body: dict) -> list[dict]:
    content = body["messages"][-1]["content"] if "messages" in body else ""
    return [] if isinstance(content, str) else [part["image_url"] for part in content if part["type"] == "image_url"]


def seeing(body: dict) -> dict:
    """Answer as a model that sees pictures, and prefers either object at random."""
    if "Question: " not in json.dumps(body.get("messages", "")):
        return anything_else(body)
    said = str(np.random.default_rng(body["seed"]).choice(["A", "B"]))
    return chat_reply(said) | {"usage": {"prompt_tokens": 50 + 255 * len(pictures_in(body)), "completion_tokens": 1}}


def blind(body: dict) -> dict:
    """Answer as a model that passes over pictures."""
    return seeing(body) | {"usage": {"prompt_tokens": 50, "completion_tokens": 1}}


@pytest.fixture
def judged(researcher, settings, idle_tasks, client):
    client.force_login(researcher)

    def of(answer=seeing, dialect=Dialect.OPENAI, **vision):
        source = {"kind": "model", "endpoint": "A model", "law_unverified": True}
        source |= {"vision": vision} if vision else {}
        judges = [{"question": "Which is safer?", "votes": 2, "source": source}]
        config = make_config(
            judges=judges, chains=2, steps=4, kernel={"kind": "independent"},
            space={"kind": "catalog", "objects": "molecules", "neighbours": 0},
        )  # fmt: skip
        with scripted_server(answer) as script:
            script.pages["/version"] = status(404)
            registered(researcher, script, settings, dialect=dialect, dialect_is_declared=True)
            made = make_draft(researcher, file=MOLECULES, filename="molecules.csv",
                              config=sampler.parse_config(config).model_dump(mode="json"))  # fmt: skip
            page = client.get(made.get_absolute_url()).content.decode()
            lifecycle.start(made)
            idle_tasks()
        made.refresh_from_db()
        return made, votes_asked(script), page

    return of


def judge_in(path) -> dict:
    with zipfile.ZipFile(path) as archive:
        return json.loads(archive.read("judges.json"))[0]


def words_in(body: dict) -> str:
    content = body["messages"][-1]["content"]
    return content if isinstance(content, str) else "\n".join(part.get("text", "") for part in content)


def smiles_in(body: dict) -> bool:
    return any(line.split(",")[0] in words_in(body).splitlines() for line in MOLECULES.splitlines()[1:])


@pytest.mark.parametrize(
    ("molecules", "pictures", "smiles"),
    [(None, 2, True), ("smiles", 0, True), ("picture", 2, False), ("both", 2, True)],
)
def test_molecules_are_shown_as_the_config_says(judged, tmp_path, molecules, pictures, smiles):
    campaign, asked, _ = judged(**({"molecules": molecules} if molecules else {}))
    assert campaign.status == Campaign.Status.FINISHED
    assert {len(pictures_in(body)) for body in asked} == {pictures}
    assert {smiles_in(body) for body in asked} == {smiles}
    path = export_to(campaign, tmp_path)
    assert_replay_passes(path)
    judge = judge_in(path)
    assert judge.get("vision") == ({"molecules": molecules} if molecules else None)
    assert ("SMILES" in judge["prompt"]["system"]) == smiles
    assert {body["messages"][0]["content"] for body in asked} == {judge["prompt"]["system"]}


def test_a_record_whose_pictures_were_shown_otherwise_does_not_replay(judged, tmp_path):
    campaign, _, _ = judged(edge=128)
    judge = campaign.judges.get()
    judge.frozen["vision"] = {"edge": 256}
    judge.save()
    out = io.StringIO()
    with pytest.raises(CommandError):
        call_command("replay", str(export_to(campaign, tmp_path)), stdout=out, stderr=out)
    assert "how pictures are shown" in out.getvalue()


def test_what_the_model_or_its_server_cannot_do_is_refused_at_the_start(judged):
    with pytest.raises(NotPossible, match="no sign that it sees pictures"):
        judged(answer=blind, molecules="picture")
    Endpoint.objects.all().delete()
    with pytest.raises(NotPossible, match="has no field for the detail of pictures"):
        judged(dialect=Dialect.VLLM, detail="high")
