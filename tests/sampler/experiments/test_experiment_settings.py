"""Settings of the experiments, settings.json, and the tables of a run's folder."""

import csv
import json

import pytest

from sampler import (
    EXPERIMENTS,
    ExperimentOptions,
    changed_settings,
    options_of,
    outputs,
    preset_names,
    settings_document,
    settings_hash,
    settings_text,
)
from sampler.experiments.outputs import OutputError, read_table, table_path
from sampler.judges import PRESETS


def document(options, **given):
    words = {name: PRESETS[name].template.model_dump(mode="json") for name in preset_names(options)}
    return settings_document(options, words, **given)


@pytest.mark.parametrize("experiment", EXPERIMENTS)
@pytest.mark.parametrize("scale", ["paper", "laptop"])
def test_a_document_is_the_same_again_after_it_was_stored(experiment, scale):
    options = ExperimentOptions.of(experiment, scale)
    made = document(options)
    read = json.loads(settings_text(made))
    assert read == made
    assert settings_hash(read) == settings_hash(made)
    assert changed_settings(read, made) == []
    assert options_of(read) == options


def test_a_change_is_named_with_both_values():
    stored = document(ExperimentOptions.of("stories"), models={"judge": "one"})
    wanted = document(ExperimentOptions.of("stories", steps=200), models={"judge": "other"}, commit="later")
    assert changed_settings(stored, wanted) == [
        'models.judge is "one" in this folder, and "other" now',
        "options.steps is 300 in this folder, and 200 now",
    ]
    assert settings_hash(stored) != settings_hash(wanted)


def test_rows_come_back_and_a_row_that_was_cut_off_does_not(tmp_path):
    path = table_path(tmp_path, outputs.VOTES)
    path.parent.mkdir()
    row = outputs.VOTES.row(
        pair="s0:p1:base:pref-sep:k0", property="gothic", one_first=True, number=0, chose_one=False, voter="=a", asks=1
    )
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([outputs.VOTES.header, row])
        file.write("s0:p1:base:pref")
    (read,) = read_table(tmp_path, outputs.VOTES)
    assert read["voter"] == "=a"
    assert (read["one_first"], read["chose_one"]) == ("1", "0")


def test_a_table_of_other_columns_is_refused(tmp_path):
    (tmp_path / "calls.csv").write_text("stage,role\n")
    with pytest.raises(OutputError, match="must have the columns stage, method, role"):
        list(read_table(tmp_path, outputs.CALLS))
    (tmp_path / "calls.csv").write_text(",".join(outputs.CALLS.header) + "\nrun\n")
    with pytest.raises(OutputError, match="row 2 has 1 cells"):
        list(read_table(tmp_path, outputs.CALLS))
