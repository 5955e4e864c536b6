"""The record of a lockstep run as a ZIP: read like a campaign's export, and replayed; what does not follow is told."""

import csv
import io
import zipfile

import pytest

import sampler
from sampler.experiments.lockstep_archive import write_archive
from tests.sampler.experiments import test_lockstep

SETTINGS = test_lockstep.SETTINGS.model_copy(update={"steps": 12})


@pytest.fixture(scope="module")
def archived(tmp_path_factory):
    folder = tmp_path_factory.mktemp("lockstep")
    ended, _ = test_lockstep.run(folder / "run", SETTINGS)
    write_archive(folder / "run", folder / "mars-s4.zip")
    return folder / "mars-s4.zip", ended


def changed(path, copy, name, edit):
    """Copy an archive with one entry edited, or without it where the edit gives None."""
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(copy, "w") as new:
        for each in old.namelist():
            content = old.read(each)
            if each == name:
                content = edit(content)
            if content is not None:
                new.writestr(each, content)
    return copy


def flipped(content, column, row=20):
    """Change a cell of 0 or 1, or a text."""
    rows = list(csv.reader(io.StringIO(content.decode(), newline="")))
    place = rows[0].index(column)
    rows[row][place] = {"0": "1", "1": "0"}.get(rows[row][place], "CCO")
    text = io.StringIO(newline="")
    csv.writer(text).writerows(rows)
    return text.getvalue().encode()


def test_every_verdict_is_worked_out_again_and_the_samples_are_where_the_chains_were(archived):
    path, ended = archived
    found = sampler.replay_file(path)
    assert not found.differences
    assert found.verdicts == SETTINGS.chains * SETTINGS.steps
    record = sampler.read_record(path)
    assert not record["votes"]
    last = {int(row["chain_index"]): row["content"] for row in record["samples"] if int(row["step"]) == SETTINGS.steps}
    assert last == {each.chain: each.smiles for each in ended}
    assert len(record["samples"]) == SETTINGS.chains * (SETTINGS.steps + 1)
    contents = {row["state_index"]: row["content"] for row in record["states"]}
    assert all(contents[row["state_index"]] == row["content"] for row in record["samples"])
    for row in record["states"]:
        alike = [int(other["state_index"]) for other in record["states"] if other["content"] == row["content"]]
        assert int(row["object_index"]) == min(alike)
    moved = sum(row["verdict"] == "accept" and row["current_state"] != row["proposal_state"] for row in record["steps"])
    assert moved == sum(each.moved for each in ended) > 0


@pytest.mark.parametrize(
    ("name", "edit"),
    [
        ("lockstep/steps.csv", lambda content: flipped(content, "accepted")),
        ("lockstep/settings.json", lambda content: content.replace(b'"seed": 4', b'"seed": 5')),
        ("steps.csv", lambda content: content.replace(b"reject", b"accept", 1)),
        ("samples.csv", lambda content: flipped(content, "content")),
        ("samples.csv", lambda content: content[: content.rindex(b"\r\n", 0, -2) + 2]),
        ("states.csv", lambda content: flipped(content, "content", 3)),
        ("votes.csv", lambda content: content + b"0,1,1\r\n"),
        ("campaign.json", lambda content: content.replace(b'"seed": 4', b'"seed": 5')),
    ],
)
def test_what_does_not_follow_is_a_difference(archived, tmp_path, name, edit):
    found = sampler.replay_file(changed(archived[0], tmp_path / "changed.zip", name, edit))
    assert found.differences
    # Of other settings, what follows is told: the first draw.
    assert name.replace("settings.json", "steps.csv, step 1, chain 0") in str(found.differences[0])


@pytest.mark.parametrize("name", ["lockstep/editor.csv", "samples.csv", "campaign.json"])
def test_an_archive_without_a_file_cannot_be_read(archived, tmp_path, name):
    with pytest.raises(sampler.RecordError, match="cannot be read"):
        sampler.replay_file(changed(archived[0], tmp_path / "changed.zip", name, lambda content: None))
