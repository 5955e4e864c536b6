"""`python -m sampler report`: tables and figures from files alone, the same bytes each time."""

from hashlib import sha256

import numpy as np
import pytest
from PIL import Image
from scipy.special import expit

from sampler import ExperimentInput, ExperimentOptions, outputs, shown_steps
from sampler.cli import main
from sampler.experiments.metrics import over_runs
from tests.support.campaigns import begin_run, write_record, write_scores, write_votes
from tests.support.sampling import rows_in_file


def stories(folder):
    options = ExperimentOptions.of("stories", steps=4, keep=4, prompts=16, matches=4)
    run = begin_run(folder, options)
    places = {name: place for place, name in enumerate(options.methods)}
    write_scores(run, ["elevated", "gothic", "dialogue"], lambda _, state: 4 + (places[state[0]] + state[4]) % 7)
    chance = {(one, other): float(expit(places[one] - places[other])) for one in places for other in places}
    write_votes(run, lambda _, one, other, __: chance[one, other], np.random.default_rng(1))


def images(folder):
    options = ExperimentOptions.of("images", "laptop")
    run = begin_run(folder, options)
    write_scores(run, ["salamander", "butterfly", "mushroom"], lambda _, state: float(state[4] % 2))
    for method in options.methods:
        for step in shown_steps(options):
            path = folder / "images" / outputs.image_name(method, 0, step)
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.new("RGB", (16, 16), (20 * step, 90, 90)).save(path)


def molecules(folder):
    run = begin_run(folder, ExperimentOptions.of("molecules", "laptop", exact=True))
    smiles = ["CCO", "c1ccccc1O", "CCN(CC)CC", "c1ccncc1"]
    for method in run.options.methods:
        for seed in run.options.seeds:
            write_record(run, f"{method}-s{seed}.zip", lambda chain, _: smiles[chain], 4, 20)


def translation(folder):
    said = [ExperimentInput(f"Satz {number}.", f"This is sentence {number}.") for number in range(3)]
    run = begin_run(folder, ExperimentOptions.of("translation", "laptop"), {"de-en": said, "en-de": said})
    write_scores(run, ["xcomet", "quality"], lambda _, state: 0.8 + state[4] / 100)
    for method in run.options.methods:
        for direction in ("de-en", "en-de"):
            write_record(run, f"{method}-{direction}-s0.zip", lambda chain, step: f"This is {chain} {step}.", 3, 8)


FOLDERS = {"stories": stories, "images": images, "molecules": molecules, "translation": translation}
FIGURES = {
    "stories": {"radar"},
    "images": {"selected", "trajectories", "measures"},
    "molecules": {"measures"},
    "translation": {"measures"},
}


@pytest.fixture(scope="module", params=FOLDERS)
def reported(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    FOLDERS[request.param](folder)
    assert main(["report", str(folder)]) == 0
    return request.param, folder


def test_every_file_is_there_and_the_same_again(reported):
    experiment, folder = reported
    made = [f"table.{ending}" for ending in ("csv", "md", "tex")]
    made += [f"figures/{name}.{ending}" for name in FIGURES[experiment] for ending in ("csv", "svg", "png")]
    before = {name: sha256((folder / name).read_bytes()).hexdigest() for name in made}
    assert main(["report", str(folder)]) == 0
    assert {name: sha256((folder / name).read_bytes()).hexdigest() for name in made} == before


def test_a_tournament_of_molecules_gets_a_column_with_intervals_over_chains(tmp_path):
    options = ExperimentOptions.of("molecules", methods=["mars-plain", "pref"], seeds=[0], chains=20, matches=20)
    run = begin_run(tmp_path, options)
    write_votes(run, lambda *_: 0.3, np.random.default_rng(2))
    assert main(["report", str(tmp_path)]) == 0
    rows = {(row["method"], row["column"]): row for row in rows_in_file(tmp_path / "table.csv")}
    strength = rows["pref", "bt_follow-up"]
    assert 0 < float(strength["ours"]) < 1.5
    assert float(strength["low"]) < float(strength["ours"]) < float(strength["high"])


@pytest.mark.parametrize(
    ("scale", "model", "is_beside"),
    [("paper", "Llama-3.1-8B-Instruct", True), ("paper", "tiny", False), ("laptop", "Llama-3.1-8B-Instruct", False)],
)
def test_the_paper_s_numbers_stand_beside_runs_of_its_size_and_models_only(scale, model, is_beside, tmp_path):
    models = dict.fromkeys(("writer", "judge", "evaluator"), f"mine: {model}")
    begin_run(tmp_path, ExperimentOptions.of("stories", scale), models=models)
    assert main(["report", str(tmp_path)]) == 0
    rows = {(row["method"], row["column"]): row for row in rows_in_file(tmp_path / "table.csv")}
    assert rows["pref-sep", "gothic"]["paper"] == ("0.797" if is_beside else "")
    for name in ("table.md", "table.tex"):
        first = (tmp_path / name).read_text(encoding="utf-8").splitlines()[0]
        assert ("6 of 300 steps" if scale == "laptop" else "300 of 300 steps") in first
        assert f"judge mine: {model}" in first
        assert ("stands in for Llama-3.1-8B-Instruct" in first) == (model == "tiny")


def test_the_best_and_the_second_best_of_a_column_are_marked(tmp_path):
    options = ExperimentOptions.of("stories", "laptop", methods=["base", "pref-joint", "pref-sep"])
    rating = {"base": 2.0, "pref-joint": 5.0, "pref-sep": 9.0}
    write_scores(begin_run(tmp_path, options), ["gothic"], lambda _, state: rating[state[0]])
    assert main(["report", str(tmp_path)]) == 0
    markdown, latex = ((tmp_path / f"table.{ending}").read_text(encoding="utf-8") for ending in ("md", "tex"))
    assert "**0.900 ± 0.000**" in markdown
    assert "| *0.500 ± 0.000* |" in markdown
    assert r"\textbf{0.900 $\pm$ 0.000}" in latex
    assert r"\underline{0.500 $\pm$ 0.000}" in latex


def test_two_runs_have_an_error_and_no_interval_and_three_one_that_is_possible():
    assert over_runs([0.2, 0.8]).spread == pytest.approx(0.3)
    assert over_runs([0.2, 0.8]).low is None
    three = over_runs([0.1, 0.5, 0.9], 0.0, 1.0)
    assert (three.low, three.high) == (0.0, 1.0)


def test_a_tournament_without_a_fit_is_told_in_the_table(tmp_path):
    run = begin_run(tmp_path, ExperimentOptions.of("stories", "laptop"))
    write_votes(run, lambda _, one, other, __: float(one < other), np.random.default_rng(1))
    assert main(["report", str(tmp_path)]) == 0
    assert "never lost to any other" in (tmp_path / "table.md").read_text(encoding="utf-8")


def test_a_folder_that_is_none_is_an_error(tmp_path, capsys):
    assert main(["report", str(tmp_path)]) == 2
    assert "settings.json is missing" in capsys.readouterr().err
    (tmp_path / "settings.json").write_text('{"experiment": "stories"}')
    assert main(["report", str(tmp_path)]) == 2
    assert "is none of an experiment" in capsys.readouterr().err


def test_a_row_that_stands_there_twice_is_an_error(tmp_path, capsys):
    stories(tmp_path)
    path = tmp_path / "evaluation/votes.csv"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([*lines, lines[-1]]))
    assert main(["report", str(tmp_path)]) == 2
    assert "twice" in capsys.readouterr().err
