"""Lockstep runs with an editor that learns: the schedule of updates, and a record that replays.

The record is a ZIP, samples as in an export; what does not follow is told.
"""

import csv
import hashlib
import io
import itertools
import json
import math
import re

import pytest

import sampler
from sampler import Purpose, stream
from sampler.__main__ import main
from sampler.experiments import mars
from sampler.experiments.mars import SETTINGS as SETTINGS_FILE
from sampler.kernels.editor import ImprovingEdit, LearningSettings, Memory
from sampler.spaces.molecules.edits import Addition
from sampler.spaces.molecules.graph import heavy_atoms
from sampler.spaces.molecules.space import MoleculeDistribution, MoleculesConfig
from tests.support.sampling import CountingEditor, files_of, rows_in_file, rows_of, table_of, with_rows, write

FRAGMENTS = ("*C", "*O", "*c1ccccc1", "*C(N)=O")
SPACE = MoleculesConfig(size_log_weights=tuple(-0.8 * n for n in range(16)), vocabulary=FRAGMENTS)
SETTINGS = mars.MarsSettings(seed=4, chains=5, steps=30, convention="exact", space=SPACE)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Return where the chains of a run ended, its steps, and the files of its record."""

    def ran(settings):
        steps, record, path = [], mars.LockstepRecord(settings), tmp_path_factory.mktemp("lockstep") / "mars-s4.zip"

        def keep(step):
            steps.append(step)
            record.write(step)

        ended = mars.run_mars(settings, CountingEditor(len(FRAGMENTS)), keep)
        mars.pack(record.files(), path)
        return ended, steps, files_of(path)

    return ran


@pytest.fixture(scope="module")
def recorded(run):
    return run(SETTINGS)


@pytest.fixture
def files(recorded):
    return recorded[2]


@pytest.fixture
def told(tmp_path):
    """Replay files, and return what is said not to follow: nothing of an honest record."""

    def replayed(files):
        found = sampler.replay_file(write(files, tmp_path / "record.zip"))
        return "\n".join(map(str, found.differences))

    return replayed


def test_every_verdict_is_worked_out_again_and_the_samples_are_where_the_chains_were(recorded, tmp_path):
    ended, steps, files = recorded
    path = write(files, tmp_path / "record.zip")
    found = sampler.replay_file(path)
    assert (found.differences, found.verdicts) == ((), SETTINGS.chains * SETTINGS.steps)
    samples = sampler.read_samples(path)
    last = {int(row["chain_index"]): row["content"] for row in samples if int(row["step"]) == SETTINGS.steps}
    assert last == {each.chain: each.smiles for each in ended}
    assert len(samples) == SETTINGS.chains * (SETTINGS.steps + 1)
    assert sum(each.moved for each in ended) > 0
    updates = sum(step.update.updates for step in steps)
    assert updates > 0
    texts = {name: content.decode() for name, content in files.items()}
    assert mars.replay_lockstep(texts) == mars.LockstepReplay(SETTINGS, ended, updates)


def test_verdicts_are_those_of_the_formula(recorded):
    """Written out here: U < min(1, exp(Δ log p0 + log q(x|x') - log q(x'|x)) (s(x')/s(x))^30)."""
    _, steps, _ = recorded
    distribution = MoleculeDistribution(tuple(SPACE.size_log_weights))
    states, moved = ["CC"] * SETTINGS.chains, 0
    for step in steps:
        for draw in step.draws:
            state = states[draw.chain]
            if draw.proposal == state:
                continue
            sizes = (heavy_atoms(each) for each in (draw.proposal, state))
            after, before = (distribution.size_log_weights[size - 1] for size in sizes)
            log_ratio = after - before + draw.log_backward - draw.log_forward
            log_ratio += 30 * math.log(mars.score_of(draw.proposal) / mars.score_of(state))
            uniform = stream(SETTINGS.seed, draw.chain, step.number, Purpose.UNIFORM).random()
            assert draw.accepted == (math.log(uniform) < log_ratio)
            states[draw.chain] = draw.proposal if draw.accepted else state
            moved += draw.accepted
    assert moved > SETTINGS.chains


def test_the_editor_changes_only_where_an_update_is_declared(recorded):
    _, steps, _ = recorded
    for before, after in itertools.pairwise(steps):
        assert (before.editor == after.editor) == (before.update.updates == 0)


def test_after_the_learning_steps_the_editor_stays(run, told):
    _, steps, files = run(SETTINGS.model_copy(update={"learning_steps": 10}))
    assert len({step.editor for step in steps[10:]}) == 1
    assert any(step.update.updates for step in steps[:10])
    assert told(files) == ""


def test_the_paper_convention_replays_too(run, told):
    _, steps, files = run(SETTINGS.model_copy(update={"convention": "paper", "steps": 10}))
    assert {(draw.log_r0, draw.log_forward) for step in steps for draw in step.draws} == {(0.0, None)}
    assert told(files) == ""


CHANGES = {
    "proposal": ("CCN", "one edit away"),
    "log_q_forward": ("-1.5", "log_r0"),
    "log_q_backward": ("0.5", "logarithm of a probability"),
    "log_r0": ("3.0", "log_r0"),
    "score": ("0.7", "score"),
    "uniform": ("0.25", "uniform"),
    "accepted": (None, "accepted"),
}


def moved(files):
    """Return the index of the first proposal of another molecule, and its row."""
    return next((index, row) for index, row in enumerate(rows_of(files, mars.STEPS)) if row["log_q_forward"])


@pytest.mark.parametrize("column", CHANGES)
def test_a_changed_cell_is_found_even_if_all_digests_are_made_anew(files, told, column):
    value, message = CHANGES[column]
    index, row = moved(files)
    cell = {column: value or str(1 - int(row["accepted"]))}
    changed = forged(with_rows(files, mars.STEPS, lambda rows: rows[index].update(cell)))
    where = rf"steps\.csv, step {row['step']}, chain {row['chain_index']}"
    assert re.search(f"{where}.*{message}", told(changed))


def test_probabilities_made_up_together_with_their_ratio_do_not_fit_the_digest(files, told):
    index, row = moved(files)
    made_up = {name: repr(float(row[name]) - 0.5) for name in ("log_q_forward", "log_q_backward")}
    assert re.search("digest|log_r0", told(with_rows(files, mars.STEPS, lambda rows: rows[index].update(made_up))))


@pytest.mark.parametrize(("column", "value"), [("editor", "0" * 64), ("updates", "7"), ("loss", "0.1")])
def test_a_changed_line_of_the_editor_is_found(files, told, column, value):
    assert "editor.csv, step" in told(with_rows(files, mars.EDITOR, lambda rows: rows[3].update({column: value})))


def test_an_editor_that_changes_without_an_update_is_found(files, told):
    index = next(index for index, row in enumerate(rows_of(files, mars.EDITOR)) if row["updates"] == "0")
    changed = with_rows(files, mars.EDITOR, lambda rows: rows[index + 1].update(editor="0" * 64))
    assert "without an update in between" in told(forged(changed))


@pytest.mark.parametrize("name", [mars.STEPS, mars.EDITOR, "samples.csv"])
def test_a_lost_or_added_line_is_found(files, told, name):
    lines = files[name].splitlines(keepends=True)
    for wrong in (lines[:-1], [*lines, lines[-1]], lines[:4] + lines[5:]):
        said = told(files | {name: b"".join(wrong)})
        assert re.search(r"the record ends|more lines|chain_index is|step is|^samples\.csv does not follow", said)


def test_a_sample_that_does_not_follow_is_found(files, told):
    changed = with_rows(files, "samples.csv", lambda rows: rows[19].update(content="CCO"))
    assert "samples.csv does not follow" in told(changed)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        # Of other settings, what follows is told: the first draw.
        ({"seed": 9}, r"steps\.csv, step 1, chain 0.*uniform"),
        ({"steps": 0}, r"settings\.json"),
        ({"learning_steps": 0}, "updates after learning_steps"),
    ],
)
def test_other_settings_do_not_fit(files, told, changes, message):
    text = json.dumps(json.loads(files[SETTINGS_FILE]) | changes, indent=2) + "\n"
    assert re.search(message, told(forged(files | {SETTINGS_FILE: text.encode()})))


@pytest.mark.parametrize("name", [mars.EDITOR, "samples.csv"])
def test_an_archive_without_a_file_cannot_be_read(files, told, name):
    with pytest.raises(sampler.RecordError, match="cannot be read"):
        told({each: content for each, content in files.items() if each != name})


def test_the_memory_is_cut_to_the_newest_and_batches_shrink_with_size():
    memory = Memory(LearningSettings(max_updates=3, max_kept=10, kept_then=4, batch_atoms=6))
    memory.add([ImprovingEdit("CC", Addition(0, fragment)) for fragment in range(10)])
    assert (len(memory), memory.batch_size) == (10, 3)
    assert [len(batch) for batch in memory.batches(stream(0, 0, 0, Purpose.EDITOR))] == [3, 3, 3]
    memory.add([ImprovingEdit("CCCCCC", Addition(0, 10))])
    assert (len(memory), memory.batch_size) == (4, 2)
    kept = [each.edit.fragment for batch in memory.batches(stream(0, 0, 1, Purpose.EDITOR)) for each in batch]
    assert sorted(kept) == [7, 8, 9, 10]


def forged(files):
    """Return files whose digests are all made anew, as somebody would who knows how."""
    digest = hashlib.sha256(files[SETTINGS_FILE]).hexdigest()
    draws, learned = rows_of(files, mars.STEPS), rows_of(files, mars.EDITOR)
    for row in learned:
        mine = [list(each.values()) for each in draws if each["step"] == row["step"]]
        lines = io.StringIO()
        csv.writer(lines).writerows([*mine, list(row.values())[:4]])
        row["digest"] = digest = hashlib.sha256((digest + "\n" + lines.getvalue()).encode()).hexdigest()
    return files | {mars.EDITOR: table_of(learned)}


# The command.


def test_the_command_writes_the_molecules(tmp_path, capsys):
    out = tmp_path / "mars.csv"
    arguments = ["mars", "--chains", "2", "--steps", "20", "--seed", "1", "--seeds", "2"]
    assert main([*arguments, "--out", str(out)]) == 0
    assert "diversity" in capsys.readouterr().out
    rows = rows_in_file(out)
    assert [(row["seed"], row["chain"]) for row in rows] == [("1", "0"), ("1", "1"), ("2", "0"), ("2", "1")]
    first = mars.run_mars(mars.MarsSettings(seed=1, chains=2, steps=20, convention="exact"))
    assert [row["smiles"] for row in rows[:2]] == [final.smiles for final in first]
    assert all(math.isfinite(float(row["qed"])) for row in rows)


def test_options_of_the_learned_proposal_are_refused_with_the_plain_one(tmp_path, capsys):
    assert main(["mars", "--record", str(tmp_path), "--out", str(tmp_path / "mars.csv")]) == 2
    assert "--record" in capsys.readouterr().err
