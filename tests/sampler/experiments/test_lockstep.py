"""Lockstep runs with an editor that learns: determinism, the schedule of updates, and a record that replays."""

import csv
import hashlib
import io
import itertools
import json
import math
import zipfile

import pytest

import sampler
from sampler import Purpose, stream
from sampler.cli import main
from sampler.experiments.mars import (
    EDITOR,
    STEPS,
    LockstepRecord,
    MarsSettings,
    pack,
    replay_lockstep,
    run_mars,
    score_of,
)
from sampler.experiments.mars import SETTINGS as SETTINGS_FILE
from sampler.kernels.editor import ImprovingEdit, LearningSettings, Memory
from sampler.record.replay import RecordError
from sampler.spaces.molecules.edits import Addition
from sampler.spaces.molecules.space import MoleculeLaw, MoleculesConfig
from tests.support.sampling import CountingEditor, rows_in_file

ARMS = ("*C", "*O", "*c1ccccc1", "*C(N)=O")
SPACE = MoleculesConfig(size_log_weights=tuple(-0.8 * n for n in range(16)), vocabulary=ARMS)
SETTINGS = MarsSettings(seed=4, chains=5, steps=30, convention="exact", space=SPACE)


def run(settings=SETTINGS):
    """Return where the chains ended, their steps and the files of their record."""
    steps, record = [], LockstepRecord(settings)

    def keep(step):
        steps.append(step)
        record.write(step)

    return run_mars(settings, CountingEditor(len(ARMS)), keep), steps, record.files()


@pytest.fixture(scope="module")
def recorded():
    return run()


@pytest.fixture
def copy(recorded):
    return dict(recorded[2])


def test_a_record_is_replayed_from_its_files(recorded):
    ended, steps, files = recorded
    found = replay_lockstep(files)
    assert found.final == ended
    assert found.updates == sum(step.update.updates for step in steps) > 0
    assert found.settings == SETTINGS


def test_verdicts_are_those_of_the_formula(recorded):
    """Written out here: U < min(1, exp(Δ log p0 + log q(x|x') - log q(x'|x)) (s(x')/s(x))^30)."""
    _, steps, _ = recorded
    law = MoleculeLaw(tuple(SPACE.size_log_weights))
    states, moved = ["CC"] * SETTINGS.chains, 0
    for step in steps:
        for draw in step.draws:
            state = states[draw.chain]
            if draw.proposal == state:
                continue
            sizes = (_size(each) for each in (draw.proposal, state))
            after, before = (law.size_log_weights[size - 1] for size in sizes)
            log_ratio = after - before + draw.log_backward - draw.log_forward
            log_ratio += 30 * math.log(score_of(draw.proposal) / score_of(state))
            uniform = stream(SETTINGS.seed, draw.chain, step.number, Purpose.UNIFORM).random()
            assert draw.accepted == (math.log(uniform) < log_ratio)
            states[draw.chain] = draw.proposal if draw.accepted else state
            moved += draw.accepted
    assert moved > SETTINGS.chains


def test_the_editor_changes_only_where_an_update_is_declared(recorded):
    _, steps, _ = recorded
    for before, after in itertools.pairwise(steps):
        assert (before.editor == after.editor) == (before.update.updates == 0)


def test_after_the_learning_steps_the_editor_stays():
    _, steps, files = run(SETTINGS.model_copy(update={"learning_steps": 10}))
    assert len({step.editor for step in steps[10:]}) == 1
    assert any(step.update.updates for step in steps[:10])
    assert replay_lockstep(files).settings.learning_steps == 10


def test_the_paper_convention_replays_too():
    ended, steps, files = run(SETTINGS.model_copy(update={"convention": "paper", "steps": 10}))
    assert {(draw.log_r0, draw.log_forward) for step in steps for draw in step.draws} == {(0.0, None)}
    assert replay_lockstep(files).final == ended


CHANGES = {
    "proposal": ("CCN", "one edit away"),
    "log_q_forward": ("-1.5", "log_r0"),
    "log_q_backward": ("0.5", "logarithm of a probability"),
    "log_r0": ("3.0", "log_r0"),
    "score": ("0.7", "score"),
    "uniform": ("0.25", "uniform"),
    "accepted": (None, "accepted"),
}


@pytest.mark.parametrize("column", CHANGES)
def test_a_changed_cell_is_found_even_if_all_digests_are_made_anew(copy, column):
    value, message = CHANGES[column]
    rows = _read(copy, STEPS)
    row = next(row for row in rows if row["log_q_forward"])
    row[column] = value or str(1 - int(row["accepted"]))
    _write(copy, STEPS, rows)
    _forge(copy)
    with pytest.raises(RecordError, match=rf"steps\.csv, step {row['step']}, chain {row['chain_index']}.*{message}"):
        replay_lockstep(copy)


def test_probabilities_made_up_together_with_their_ratio_do_not_fit_the_digest(copy):
    rows = _read(copy, STEPS)
    row = next(row for row in rows if row["log_q_forward"])
    for column in ("log_q_forward", "log_q_backward"):
        row[column] = repr(float(row[column]) - 0.5)
    _write(copy, STEPS, rows)
    with pytest.raises(RecordError, match=r"digest|log_r0"):
        replay_lockstep(copy)


@pytest.mark.parametrize(("column", "value"), [("editor", "0" * 64), ("updates", "7"), ("loss", "0.1")])
def test_a_changed_line_of_the_editor_is_found(copy, column, value):
    rows = _read(copy, EDITOR)
    rows[3][column] = value
    _write(copy, EDITOR, rows)
    with pytest.raises(RecordError, match=r"editor\.csv, step"):
        replay_lockstep(copy)


def test_an_editor_that_changes_without_an_update_is_found(copy):
    rows = _read(copy, EDITOR)
    place = next(place for place, row in enumerate(rows[:-1]) if row["updates"] == "0")
    rows[place + 1]["editor"] = "0" * 64
    _write(copy, EDITOR, rows)
    _forge(copy)
    with pytest.raises(RecordError, match="without an update in between"):
        replay_lockstep(copy)


def test_updates_after_learning_has_stopped_are_found(copy):
    settings = json.loads(copy[SETTINGS_FILE])
    copy[SETTINGS_FILE] = json.dumps(settings | {"learning_steps": 0}, indent=2) + "\n"
    _forge(copy)
    with pytest.raises(RecordError, match="updates after learning_steps"):
        replay_lockstep(copy)


@pytest.mark.parametrize("name", [STEPS, EDITOR])
def test_a_lost_or_added_line_is_found(copy, name):
    text = copy[name]
    lines = text.splitlines(keepends=True)
    for wrong in ("".join(lines[:-1]), text + lines[-1], "".join(lines[:4] + lines[5:])):
        copy[name] = wrong
        with pytest.raises(RecordError, match=r"the record ends|more lines|chain_index is|step is"):
            replay_lockstep(copy)


def test_other_settings_do_not_fit(copy):
    settings = json.loads(copy[SETTINGS_FILE])
    copy[SETTINGS_FILE] = json.dumps(settings | {"seed": 9}, indent=2) + "\n"
    with pytest.raises(RecordError, match="uniform"):
        replay_lockstep(copy)
    copy[SETTINGS_FILE] = json.dumps(settings | {"steps": 0})
    with pytest.raises(RecordError, match=r"settings\.json"):
        replay_lockstep(copy)


def test_the_memory_is_cut_to_the_newest_and_batches_shrink_with_size():
    memory = Memory(LearningSettings(most_updates=3, most_kept=10, kept_then=4, batch_atoms=6))
    memory.add([ImprovingEdit("CC", Addition(0, arm)) for arm in range(10)])
    assert (len(memory), memory.batch_size) == (10, 3)
    assert [len(batch) for batch in memory.batches(stream(0, 0, 0, Purpose.EDITOR))] == [3, 3, 3]
    memory.add([ImprovingEdit("CCCCCC", Addition(0, 10))])
    assert (len(memory), memory.batch_size) == (4, 2)
    kept = [each.edit.arm for batch in memory.batches(stream(0, 0, 1, Purpose.EDITOR)) for each in batch]
    assert sorted(kept) == [7, 8, 9, 10]


def _size(state: str) -> int:
    from rdkit import Chem

    return Chem.MolFromSmiles(state).GetNumHeavyAtoms()


def _read(files, name):
    return list(csv.DictReader(io.StringIO(files[name], newline="")))


def _write(files, name, rows):
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, rows[0].keys())
    writer.writeheader()
    writer.writerows(rows)
    files[name] = text.getvalue()


def _forge(files):
    """Make all digests anew, as somebody would who knows how."""
    digest = hashlib.sha256(files[SETTINGS_FILE].encode()).hexdigest()
    draws, learned = _read(files, STEPS), _read(files, EDITOR)
    for row in learned:
        mine = [list(each.values()) for each in draws if each["step"] == row["step"]]
        lines = io.StringIO()
        csv.writer(lines).writerows([*mine, list(row.values())[:4]])
        digest = hashlib.sha256((digest + "\n" + lines.getvalue()).encode()).hexdigest()
        row["digest"] = digest
    _write(files, EDITOR, learned)


# The record of a lockstep run as a ZIP: samples as in an export, replayed; what does not follow is told.


SHORT = SETTINGS.model_copy(update={"steps": 12})


@pytest.fixture(scope="module")
def archived(tmp_path_factory):
    path = tmp_path_factory.mktemp("lockstep") / "mars-s4.zip"
    ended, _, files = run(SHORT)
    pack(files, path)
    return path, ended


def archive_with(path, copy, name, edit):
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
    assert found.verdicts == SHORT.chains * SHORT.steps
    samples = sampler.read_samples(path)
    last = {int(row["chain_index"]): row["content"] for row in samples if int(row["step"]) == SHORT.steps}
    assert last == {each.chain: each.smiles for each in ended}
    assert len(samples) == SHORT.chains * (SHORT.steps + 1)
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
    found = sampler.replay_file(archive_with(archived[0], tmp_path / "changed.zip", name, edit))
    assert found.differences
    # Of other settings, what follows is told: the first draw.
    assert name.replace("settings.json", "steps.csv, step 1, chain 0") in str(found.differences[0])


@pytest.mark.parametrize("name", ["lockstep/editor.csv", "samples.csv"])
def test_an_archive_without_a_file_cannot_be_read(archived, tmp_path, name):
    with pytest.raises(sampler.RecordError, match="cannot be read"):
        sampler.replay_file(archive_with(archived[0], tmp_path / "changed.zip", name, lambda content: None))


# The command.


def test_the_command_writes_the_molecules(tmp_path, capsys):
    out = tmp_path / "mars.csv"
    arguments = ["mars", "--chains", "2", "--steps", "20", "--seed", "1", "--seeds", "2"]
    assert main([*arguments, "--out", str(out)]) == 0
    assert "diversity" in capsys.readouterr().out
    rows = rows_in_file(out)
    assert [(row["seed"], row["chain"]) for row in rows] == [("1", "0"), ("1", "1"), ("2", "0"), ("2", "1")]
    first = run_mars(MarsSettings(seed=1, chains=2, steps=20, convention="exact"))
    assert [row["smiles"] for row in rows[:2]] == [final.smiles for final in first]
    assert all(math.isfinite(float(row["qed"])) for row in rows)


def test_options_of_the_learned_proposal_are_refused_with_the_plain_one(tmp_path, capsys):
    assert main(["mars", "--record", str(tmp_path), "--out", str(tmp_path / "mars.csv")]) == 2
    assert "--record" in capsys.readouterr().err
