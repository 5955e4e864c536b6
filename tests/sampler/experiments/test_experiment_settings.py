"""Settings of the experiments, settings.json, and the tables of a run's folder."""

import json

import pytest

from sampler import (
    EXPERIMENTS,
    ExperimentOptions,
    changed_settings,
    options_of,
    outputs,
    settings_document,
    settings_hash,
    settings_text,
)
from sampler.experiments.outputs import OutputError, read_table, write_table


@pytest.mark.parametrize("experiment", EXPERIMENTS)
@pytest.mark.parametrize("scale", ["paper", "laptop"])
def test_a_document_is_the_same_again_after_it_was_stored(experiment, scale):
    options = ExperimentOptions.of(experiment, scale)
    made = settings_document(options)
    read = json.loads(settings_text(made))
    assert read == made
    assert settings_hash(read) == settings_hash(made)
    assert changed_settings(read, made) == []
    assert options_of(read) == options


def test_a_change_is_named_with_both_values():
    stored = settings_document(ExperimentOptions.of("stories"), models={"judge": "one"})
    wanted = settings_document(ExperimentOptions.of("stories", steps=200), models={"judge": "other"}, commit="later")
    assert changed_settings(stored, wanted) == [
        'models.judge is "one" in this folder, and "other" now',
        "options.steps is 300 in this folder, and 200 now",
    ]
    assert settings_hash(stored) != settings_hash(wanted)


def test_rows_come_back_as_they_were(tmp_path):
    row = {"pair": "s0:p1:base:pref-sep:k0", "property": "gothic", "one_first": True, "number": 0, "chose_one": False}
    write_table(tmp_path, outputs.VOTES, [row | {"voter": "=a", "asks": None}])
    assert "'=a" in (tmp_path / outputs.VOTES).read_text()
    (read,) = read_table(tmp_path, outputs.VOTES)
    assert (read["voter"], read["asks"]) == ("=a", "")
    assert (read["one_first"], read["chose_one"]) == ("1", "0")


def test_a_table_of_other_columns_is_refused(tmp_path):
    (tmp_path / "calls.csv").write_text("stage,role\n")
    with pytest.raises(OutputError, match="must have the columns stage, method, role"):
        list(read_table(tmp_path, outputs.CALLS))
    (tmp_path / "calls.csv").write_text(",".join(outputs.COLUMNS[outputs.CALLS]) + "\nrun\n")
    with pytest.raises(OutputError, match="row 2 has 1 cells"):
        list(read_table(tmp_path, outputs.CALLS))
