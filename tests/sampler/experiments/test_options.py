"""An experiment's options, the sums of its dry run, its settings and its files of sentences."""

import json

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from sampler import (
    EXPERIMENTS,
    ExperimentInput,
    ExperimentOptions,
    OptionError,
    changed_settings,
    kept_steps,
    options_of,
    outputs,
    own_sentences,
    planned_sums,
    read_sentences,
    settings_document,
    settings_hash,
    settings_text,
    tournament_schedule,
)
from sampler.experiments.outputs import OutputError, read_table

# The sums of `--dry-run`, against counting one by one.


SMALL = {
    "seeds": st.lists(st.integers(0, 9), min_size=1, max_size=2, unique=True),
    "steps": st.integers(1, 6),
    "keep": st.integers(1, 4),
    "chains": st.integers(1, 3),
    "matches": st.none() | st.integers(0, 3),
    "votes": st.sampled_from(["sampled", "log-probabilities"]),
    "available": st.none(),
}


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(sorted(EXPERIMENTS)), st.fixed_dictionaries(SMALL), st.integers(1, 3), st.data())
def test_sums_are_those_of_counting_one_by_one(experiment, named, prompts, data):
    known = [method.name for method in EXPERIMENTS[experiment].methods]
    named["methods"] = data.draw(st.lists(st.sampled_from(known), min_size=1, max_size=3, unique=True))
    if experiment in ("stories", "translation"):
        named["prompts"] = prompts
    try:
        options = ExperimentOptions.of(experiment, **named)
    except OptionError:
        assume(False)
    assert planned_sums(options) == counted(options)


def counted(options):
    """Walk through everything that would happen, one event at a time."""
    sums = {part: dict.fromkeys(("all", *options.methods), 0) for part in PARTS}

    def happens(part, method, times=1):
        for _ in range(times):
            sums[part]["all"] += 1
            sums[part][method.name] += 1

    for method in options.chosen:
        for _seed in options.seeds:
            for direction in options.directions:
                chains = list(range(direction.inputs * options.chains))
                of_a_text = 2 * options.of_experiment.is_written
                happens("writer_requests", method, of_a_text * (direction.inputs + len(chains)))
                for _chain in chains:
                    for _judge in method.judges:
                        happens("judge_requests", method, method.asks if method.kind == "pointwise" else 0)
                    for _step in kept_steps(options, method) if method.draws_only else range(options.steps):
                        happens("proposals", method)
                        happens("writer_requests", method, of_a_text)
                        for _judge in method.judges:
                            happens("judge_requests", method, asked(method, options.votes))
                    for _kept in kept_steps(options, method):
                        happens("evaluation_requests", method, len(options.of_experiment.rated))
    for slot in tournament_schedule(options):
        happens("evaluation_requests", options.of_experiment.method(slot.first.method))
    return sums


PARTS = ("proposals", "writer_requests", "judge_requests", "evaluation_requests")


def asked(method, votes):
    if method.kind == "pointwise" or votes == "sampled":
        return method.asks
    return min(method.asks, 1 if method.name == "pref-exact" else 2)


@pytest.mark.parametrize(
    ("experiment", "named", "option"),
    [
        ("stories", {"methods": ["pref"]}, "--methods"),
        ("stories", {"methods": ["base", "base"]}, "--methods"),
        ("stories", {"methods": []}, "--methods"),
        ("stories", {"seeds": [1, 1]}, "--seeds"),
        ("stories", {"seeds": [-1]}, "--seeds"),
        ("stories", {"steps": 0}, "--steps"),
        ("stories", {"steps": 40, "keep": 50}, "--keep"),
        ("stories", {"steps": 60, "keep": 20, "burn_in": 50}, "--keep"),
        ("stories", {"matches": 51}, "--matches"),
        ("stories", {"methods": ["base"], "matches": 1}, "--matches"),
        ("stories", {"prompts": 51}, "--prompts"),
        ("stories", {"exact": True}, "--exact"),
        ("stories", {"chains": 0}, "--chains"),
        ("images", {"votes": "guessed"}, "--votes"),
        ("images", {"scale": "huge"}, "--scale"),
        ("translation", {"available": [3]}, "--data"),
    ],
)
def test_what_cannot_be_met_is_refused_by_its_option(experiment, named, option):
    with pytest.raises(OptionError) as refused:
        ExperimentOptions.of(experiment, **named)
    assert refused.value.option == option


@given(st.integers(1, 60), st.integers(0, 40), st.integers(1, 30))
def test_spaced_states_are_distinct_after_the_burn_in_and_end_with_the_last(steps, burn_in, keep):
    assume(keep <= steps - burn_in)
    options = ExperimentOptions.of("translation", steps=steps, burn_in=burn_in, keep=keep)
    kept = kept_steps(options, options.chosen[-1])
    assert len(set(kept)) == keep
    assert burn_in < min(kept)
    assert max(kept) == steps


# Settings of the experiments, settings.json, and the tables of a run's folder.


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


def test_a_table_of_other_columns_is_refused(tmp_path):
    (tmp_path / "calls.csv").write_text("stage,role\n")
    with pytest.raises(OutputError, match="must have the columns stage, method, role"):
        list(read_table(tmp_path, outputs.CALLS))
    (tmp_path / "calls.csv").write_text(",".join(outputs.COLUMNS[outputs.CALLS]) + "\nrun\n")
    with pytest.raises(OutputError, match="row 2 has 1 cells"):
        list(read_table(tmp_path, outputs.CALLS))


# Files of sentences: read as they stand, and refused with the line and the column where they are wrong.


COLUMNS = "direction\tsource\treference\n"
BOTH_WAYS = f"{COLUMNS}de-en\tGuten Tag.\tHello.\nen-de\tHello.\tGuten Tag.\n"


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("source\treference\nGuten Tag.\tHello.\n", "line 1, column direction"),
        (f"{COLUMNS}de-fr\tGuten Tag.\tBonjour.\n", "line 2, column direction of data.tsv must be de-en or en-de"),
        (f"{BOTH_WAYS}de-en\t\tHello.\n", "line 4, column source of data.tsv must not be empty"),
        (f"{BOTH_WAYS}de-en\tGuten Tag.\tGood day.\n", "line 4, column source of data.tsv is that of line 2"),
        (f"{BOTH_WAYS}de-en\tGute Nacht.\t\n", "line 4, column reference of data.tsv must be there for all"),
        (f"{BOTH_WAYS}de-en\tGute Nacht.\n", "2 cells in line 4"),
        (f"{BOTH_WAYS}de-en\t{'a' * 3_501}\tb\n", "line 4, column source of data.tsv has 3,501 characters"),
        (f"{COLUMNS}de-en\tGuten Tag.\tHello.\n", "must hold a sentence of direction en-de"),
        (BOTH_WAYS.encode() + b"de-en\t\xff\tx\n", "line 4 of data.tsv is not"),
    ],
)
def test_a_wrong_file_is_refused_where_it_is_wrong(content, told):
    with pytest.raises(OptionError) as error:
        read_sentences(content if isinstance(content, bytes) else content.encode(), "data.tsv")
    assert error.value.option == "--data"
    assert told in str(error.value)


def test_a_file_is_read_as_it_stands():
    quoted = '"Ja", sagte er. {source}'
    found = read_sentences(f"\ufeffsource\tdirection\r\n{quoted}\tde-en\r\nYes\ten-de\r\n".encode(), "x.tsv")
    assert found["de-en"] == [ExperimentInput(quoted)]
    assert [len(sentences) for sentences in own_sentences().values()] == [6, 6]
