"""An experiment's options, the sums of its dry run, its settings and its files of sentences."""

import json

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import sampler
from sampler.experiments.outputs import OutputError, read_table, write_table

# The sums of `--dry-run`, against the notes' numbers and against counting one by one.


PAPER = {
    "stories": (62_500, 126_000, 240_200, 50_000 + 30_000),
    "images": (9_000, 0, 90_003, 27_000),
    "molecules": (4_000_000, 0, 16_008_000, 0),
    "translation": (1_132_544, 2_300_480, 1_421_210, 0),
}


@pytest.mark.parametrize("experiment", sampler.EXPERIMENTS)
def test_the_paper_s_sizes_give_the_sums_of_the_notes(experiment):
    sums = sampler.planned_sums(sampler.ExperimentOptions.of(experiment))
    assert tuple(part["all"] for part in sums.values()) == PAPER[experiment]
    for part in sums.values():
        assert part["all"] == sum(count for name, count in part.items() if name != "all")
        assert set(part) == {"all", *sampler.EXPERIMENTS[experiment].default_methods}


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
@given(st.sampled_from(sorted(sampler.EXPERIMENTS)), st.fixed_dictionaries(SMALL), st.integers(1, 3), st.data())
def test_sums_are_those_of_counting_one_by_one(experiment, named, prompts, data):
    known = [method.name for method in sampler.EXPERIMENTS[experiment].methods]
    named["methods"] = data.draw(st.lists(st.sampled_from(known), min_size=1, max_size=3, unique=True))
    if experiment in ("stories", "translation"):
        named["prompts"] = prompts
    try:
        options = sampler.ExperimentOptions.of(experiment, **named)
    except sampler.OptionError:
        assume(False)
    assert sampler.planned_sums(options) == counted(options)


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
                        happens("judge_requests", method, method.max_votes if method.kind == "pointwise" else 0)
                    for _step in sampler.kept_steps(options, method) if method.draws_only else range(options.steps):
                        happens("proposals", method)
                        happens("writer_requests", method, of_a_text)
                        for _judge in method.judges:
                            happens("judge_requests", method, asked(method, options.votes))
                    for _kept in sampler.kept_steps(options, method):
                        happens("evaluation_requests", method, len(options.of_experiment.rated))
    for slot in sampler.tournament_schedule(options):
        happens("evaluation_requests", options.of_experiment.method(slot.first.method))
    return sums


PARTS = ("proposals", "writer_requests", "judge_requests", "evaluation_requests")


def asked(method, votes):
    if method.kind == "pointwise" or votes == "sampled":
        return method.max_votes
    return min(method.max_votes, 1 if method.name == "pref-exact" else 2)


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
    with pytest.raises(sampler.OptionError) as refused:
        sampler.ExperimentOptions.of(experiment, **named)
    assert refused.value.option == option


@given(st.integers(1, 60), st.integers(0, 40), st.integers(1, 30))
def test_spaced_states_are_distinct_after_the_burn_in_and_end_with_the_last(steps, burn_in, keep):
    assume(keep <= steps - burn_in)
    options = sampler.ExperimentOptions.of("translation", steps=steps, burn_in=burn_in, keep=keep)
    kept = sampler.kept_steps(options, options.chosen[-1])
    assert len(set(kept)) == keep
    assert burn_in < min(kept)
    assert max(kept) == steps


# Settings of the experiments, settings.json, and the tables of a run's folder.


@pytest.mark.parametrize("experiment", sampler.EXPERIMENTS)
@pytest.mark.parametrize("scale", ["paper", "laptop"])
def test_a_document_is_the_same_again_after_it_was_stored(experiment, scale):
    options = sampler.ExperimentOptions.of(experiment, scale)
    made = sampler.settings_document(options)
    read = json.loads(sampler.settings_text(made))
    assert read == made
    assert sampler.settings_hash(read) == sampler.settings_hash(made)
    assert sampler.changed_settings(read, made) == []
    assert sampler.options_of(read) == options


def test_a_change_is_named_with_both_values():
    stored = sampler.settings_document(sampler.ExperimentOptions.of("stories"), models={"judge": "one"})
    wanted = sampler.settings_document(
        sampler.ExperimentOptions.of("stories", steps=200), models={"judge": "other"}, commit="later"
    )
    assert sampler.changed_settings(stored, wanted) == [
        'models.judge is "one" in this folder, and "other" now',
        "options.steps is 300 in this folder, and 200 now",
    ]
    assert sampler.settings_hash(stored) != sampler.settings_hash(wanted)


def test_rows_come_back_as_they_were(tmp_path):
    row = {"pair": "s0:p1:base:pref-sep:k0", "property": "gothic", "one_first": True, "number": 0, "chose_one": False}
    write_table(tmp_path, sampler.outputs.VOTES, [row | {"voter": "=a", "attempts": None}])
    assert "'=a" in (tmp_path / sampler.outputs.VOTES).read_text()
    (read,) = read_table(tmp_path, sampler.outputs.VOTES)
    assert (read["voter"], read["attempts"]) == ("=a", "")
    assert (read["one_first"], read["chose_one"]) == ("1", "0")


def test_a_table_of_other_columns_is_refused(tmp_path):
    (tmp_path / "calls.csv").write_text("stage,role\n")
    with pytest.raises(OutputError, match="must have the columns stage, method, role"):
        list(read_table(tmp_path, sampler.outputs.CALLS))
    (tmp_path / "calls.csv").write_text(",".join(sampler.outputs.COLUMNS[sampler.outputs.CALLS]) + "\nrun\n")
    with pytest.raises(OutputError, match="row 2 has 1 cells"):
        list(read_table(tmp_path, sampler.outputs.CALLS))


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
    with pytest.raises(sampler.OptionError) as error:
        sampler.read_sentences(content if isinstance(content, bytes) else content.encode(), "data.tsv")
    assert error.value.option == "--data"
    assert told in str(error.value)


def test_a_file_is_read_as_it_stands():
    quoted = '"Ja", sagte er. {source}'
    found = sampler.read_sentences(f"\ufeffsource\tdirection\r\n{quoted}\tde-en\r\nYes\ten-de\r\n".encode(), "x.tsv")
    assert found["de-en"] == [sampler.ExperimentInput(quoted)]
    assert [len(sentences) for sentences in sampler.own_sentences().values()] == [6, 6]
