"""A language model writes a campaign's texts: over the real llama.cpp server, with a tiny model of random weights.

Campaigns whose chains make their objects: from the setup form's config to a replay that draws everything again.
"""

import csv
import io
import time
import zipfile
from datetime import timedelta

import numpy as np
import pytest
from django.utils import timezone

import sampler
from prefmh_web.campaigns import lifecycle, tasks
from prefmh_web.campaigns.engine import leases
from prefmh_web.campaigns.frozen import plan_of
from prefmh_web.campaigns.models import Annotator, Campaign
from prefmh_web.endpoints.dialects import Dialect
from prefmh_web.endpoints.models import Endpoint
from tests.support.campaigns import (
    assert_record_is_whole,
    assert_replay_passes,
    create_draft,
    export_to,
    happened,
    make_config,
    registered,
    sweep_everything,
    table,
    vote_until_finished,
)
from tests.support.sampling import mixture

SPACE = {
    "kind": "model-texts",
    "model": "tiny",
    "prompts": ["Write about the sea.", "Write about the cat."],
    "limit": 12,
}
KERNEL = mixture((0.2, "independent"), (0.8, {"kind": "suffix", "cut": "length"}))
JUDGES = [
    {"question": "Which is darker?", "votes": 2, "source": {"kind": "model", "endpoint": "tiny"}},
    {
        "question": "Which is kinder?",
        "votes": 2,
        "order": "balanced",
        "source": {"kind": "model", "endpoint": "tiny", "votes": "log-probabilities"},
    },
]
PATIENCE_S = 120


@pytest.fixture
def endpoint(researcher, llama_url, settings) -> Endpoint:
    return registered(researcher, llama_url, settings, "tiny", dialect=Dialect.LLAMA_CPP)


def make(owner, **changes) -> Campaign:
    config = make_config(space=SPACE, kernel=KERNEL, judges=JUDGES, chains=4, steps=8) | changes
    config = sampler.parse_config(config).model_dump(mode="json")
    return create_draft(owner=owner, is_seed_typed=True, name="Written", config=config)


def finish(campaign: Campaign, idle_tasks) -> None:
    # On a busy machine the model's server may fail once, and then it is left alone for a minute.
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        tasks.sweep()
        idle_tasks()
        campaign.refresh_from_db()
        if campaign.status == Campaign.Status.FINISHED:
            return
        time.sleep(0.05)
    raise AssertionError(f"still {campaign.status}")


def test_a_model_writes_and_models_judge_from_the_start_to_a_record_that_replays(
    researcher, endpoint, idle_tasks, tmp_path
):
    campaign = make(researcher)
    lifecycle.start(campaign)
    idle_tasks()
    finish(campaign, idle_tasks)
    assert_record_is_whole(campaign)
    path = export_to(campaign, tmp_path)
    assert "32 verdicts" in assert_replay_passes(path)
    # Tokens are the state: what was written is never tokenised again.
    space = plan_of(campaign).space
    for row in table(path, "states.csv"):
        writing = space.decode(row["code"])
        assert space.model.text(writing.prompt, writing.tokens) == writing.text == row["content"]
    assert {space.decode(row["code"]).prompt for row in table(path, "states.csv")} == set(SPACE["prompts"])


def test_where_a_model_writes_a_chain_opens_before_anybody_waits(researcher, endpoint, idle_tasks, tmp_path):
    campaign = make(researcher, judges=[{"question": "Which is better?", "votes": 1}], chains=1, max_chains=9, steps=3)
    lifecycle.start(campaign)
    idle_tasks()
    people = [Annotator.objects.create(campaign=campaign) for _ in range(5)]
    assert leases.take(people[0])
    # A pair for each of the four who read, and two more, since there are five people.
    opened = []
    for _ in range(3):
        sweep_everything()
        idle_tasks()
        opened.append(campaign.chains.count())
    # Only one is on its way to each of them at a time.
    assert opened == [6, 7, 7]
    assert [bool(leases.take(person)) for person in people[1:]] == [True] * 4
    # Nobody reads any more, and the two pairs that are left are as many as there should be.
    Annotator.objects.filter(campaign=campaign).update(votes_cast=1, online_until=timezone.now() + timedelta(minutes=1))
    sweep_everything()
    idle_tasks()
    assert campaign.chains.count() == 7
    Annotator.objects.filter(campaign=campaign).update(online_until=None)
    sweep_everything()
    idle_tasks()
    assert campaign.chains.count() == 7
    path = export_to(campaign, tmp_path)
    assert_replay_passes(path)
    assert [said["reason"] for _, said in happened(path, "chain-opened")] == ["ahead"] * 6


SUFFIX = {"kind": "suffix", "cut": "length"}
SPACES = {
    "texts": ({"kind": "texts", "scenarios": [3, 14]}, SUFFIX),
    "molecules": ({"kind": "molecules"}, {"kind": "fragments"}),
    "images": ({"kind": "images"}, sampler.PAPER_MIXTURE),
    "texts that walk": ({"kind": "texts"}, {"kind": "walk", "kernel": {"kind": "suffix"}, "length": 16}),
    "molecules that walk": ({"kind": "molecules"}, {"kind": "walk", "kernel": {"kind": "fragments"}, "length": 16}),
    "images that walk": ({"kind": "images"}, {"kind": "walk", "kernel": sampler.PAPER_MIXTURE, "length": 4}),
}


def run(owner, space: dict, kernel: dict, steps: int = 12) -> Campaign:
    """Return a campaign that four people have voted to its end."""
    config = make_config(space=space, kernel=kernel, steps=steps)
    campaign = create_draft(
        owner=owner, is_seed_typed=True, name="Made", config=sampler.parse_config(config).model_dump(mode="json")
    )
    lifecycle.start(campaign)
    annotators = [Annotator.objects.create(campaign=campaign) for _ in range(4)]
    rng = np.random.default_rng(5)
    vote_until_finished(campaign, annotators, dict.fromkeys((0, 1), lambda place: (place * 7 % 5) / 2), rng)
    return campaign


@pytest.mark.parametrize("kind", SPACES)
def test_a_campaign_makes_its_objects_and_its_record_replays(researcher, idle_tasks, tmp_path, kind):
    campaign = run(researcher, *SPACES[kind])
    assert_record_is_whole(campaign)
    path = export_to(campaign, tmp_path)
    assert "36 verdicts" in assert_replay_passes(path)
    states = table(path, "states.csv")
    contents = {row["state_index"]: row["content"] for row in states}
    # The same object is made again under a new number, and counted once.
    assert len({row["object_index"] for row in states}) == len(set(contents.values()))
    assert all(
        contents[row["object_index"]] == row["content"] and int(row["object_index"]) <= int(row["state_index"])
        for row in states
    )
    assert len(set(contents.values())) > 6
    assert {row["content"] for row in table(path, "samples.csv")} <= set(contents.values())


def test_an_open_campaign_exports_only_what_the_cut_knows(researcher, idle_tasks, tmp_path):
    space, kernel = SPACES["images"]
    config = sampler.parse_config(make_config(space=space, kernel=kernel)).model_dump(mode="json")
    campaign = create_draft(owner=researcher, is_seed_typed=True, name="Open", config=config)
    lifecycle.start(campaign)
    idle_tasks()
    path = export_to(campaign, tmp_path)
    assert_replay_passes(path)
    with zipfile.ZipFile(path) as archive:
        named = {row["state_index"] for row in csv.DictReader(io.StringIO(archive.read("states.csv").decode()))}
    steps = table(path, "steps.csv")
    starts = {row["state_index"] for row in table(path, "samples.csv")}
    assert named == starts | {row["current_state"] for row in steps} | {row["proposal_state"] for row in steps}
