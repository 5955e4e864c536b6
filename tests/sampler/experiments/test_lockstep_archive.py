"""The record of a lockstep run as a ZIP: samples as in an export, replayed; what does not follow is told."""

import csv
import io
import zipfile

import pytest

import sampler
from sampler.experiments.lockstep import pack
from tests.sampler.experiments import test_lockstep

SETTINGS = test_lockstep.SETTINGS.model_copy(update={"steps": 12})


@pytest.fixture(scope="module")
def archived(tmp_path_factory):
    path = tmp_path_factory.mktemp("lockstep") / "mars-s4.zip"
    ended, _, files = test_lockstep.run(SETTINGS)
    pack(files, path)
    return path, ended


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
    samples = sampler.read_samples(path)
    last = {int(row["chain_index"]): row["content"] for row in samples if int(row["step"]) == SETTINGS.steps}
    assert last == {each.chain: each.smiles for each in ended}
    assert len(samples) == SETTINGS.chains * (SETTINGS.steps + 1)
    assert sum(each.moved for each in ended) > 0


@pytest.mark.parametrize(
    ("name", "edit"),
    [
        ("lockstep/steps.csv", lambda content: flipped(content, "accepted")),
        ("lockstep/settings.json", lambda content: content.replace(b'"seed": 4', b'"seed": 5')),
        ("samples.csv", lambda content: flipped(content, "content")),
        ("samples.csv", lambda content: content[: content.rindex(b"\r\n", 0, -2) + 2]),
    ],
)
def test_what_does_not_follow_is_a_difference(archived, tmp_path, name, edit):
    found = sampler.replay_file(changed(archived[0], tmp_path / "changed.zip", name, edit))
    assert found.differences
    # Of other settings, what follows is told: the first draw.
    assert name.replace("settings.json", "steps.csv, step 1, chain 0") in str(found.differences[0])


@pytest.mark.parametrize("name", ["lockstep/editor.csv", "samples.csv"])
def test_an_archive_without_a_file_cannot_be_read(archived, tmp_path, name):
    with pytest.raises(sampler.RecordError, match="cannot be read"):
        sampler.replay_file(changed(archived[0], tmp_path / "changed.zip", name, lambda content: None))
