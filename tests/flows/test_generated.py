"""Campaigns whose chains make their objects: from the setup form's config to a replay that draws everything again."""

import csv
import io
import zipfile

import numpy as np
import pytest

import sampler
from prefmh_web.campaigns import lifecycle
from prefmh_web.campaigns.models import Annotator, Campaign
from tests.support.campaigns import (
    assert_record_is_whole,
    assert_replay_passes,
    create_draft,
    export_to,
    make_config,
    table,
    vote_until_finished,
)

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
    # With another object in it, it does not.
    record = sampler.read_record(path)
    last = record["states"][-1]
    last["code"] = next(row["code"] for row in record["states"] if row["code"] != last["code"])
    found = sampler.replay(record)
    assert any(f"state {last['state_index']}" in str(difference) for difference in found.differences)


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
