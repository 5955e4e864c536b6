"""Tables and figures of a run's folder: the same bytes each time, their numbers against computing them directly."""

import json
import re
from functools import partial
from hashlib import sha256

import numpy as np
import pytest
from PIL import Image
from rdkit import Chem
from rdkit.Chem import QED
from sacrebleu import sentence_bleu, sentence_chrf, sentence_ter
from scipy.special import expit

from sampler import ExperimentInput, ExperimentOptions, outputs, shown_steps, tournament_schedule
from sampler.__main__ import main
from sampler.diagnostics.scores import bradley_terry_intervals
from sampler.experiments.metrics import MEASURES, corpus_scores, mark_of, strength_cells, tournament_choices
from sampler.experiments.outputs import OutputError
from sampler.experiments.report import write_report
from tests.support.runs import begin_run, write_record, write_scores, write_votes
from tests.support.sampling import rows_in_file

# `python -m sampler report`: tables and figures from files alone, the same bytes each time.


def stories(folder):
    options = ExperimentOptions.of("stories", steps=4, keep=4, prompts=16, matches=4)
    run = begin_run(folder, options)
    indices = {name: index for index, name in enumerate(options.methods)}
    write_scores(run, ["elevated", "gothic", "dialogue"], lambda _, state: 4 + (indices[state[0]] + state[4]) % 7)
    chance = {(one, other): float(expit(indices[one] - indices[other])) for one in indices for other in indices}
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


def test_a_folder_that_is_none_is_an_error(tmp_path, capsys):
    assert main(["report", str(tmp_path)]) == 2
    assert "settings.json is missing" in capsys.readouterr().err
    (tmp_path / "settings.json").write_text('{"experiment": "stories"}')
    assert main(["report", str(tmp_path)]) == 2
    assert "is none of an experiment" in capsys.readouterr().err
    run = begin_run(tmp_path, ExperimentOptions.of("stories"))
    (tmp_path / "settings.json").write_text(json.dumps(run.document | {"experiment": "novels"}))
    assert main(["report", str(tmp_path)]) == 2
    assert "experiment must be among images, molecules, stories, translation" in capsys.readouterr().err


def test_a_number_that_is_not_finite_is_an_error(tmp_path, capsys):
    run = begin_run(tmp_path, ExperimentOptions.of("stories", "laptop"))
    write_scores(run, ["gothic"], lambda *_: float("nan"))
    assert main(["report", str(tmp_path)]) == 2
    assert "evaluation/scores.csv: a value must be finite, not nan" in capsys.readouterr().err


def test_a_row_that_stands_there_twice_is_an_error(tmp_path, capsys):
    stories(tmp_path)
    path = tmp_path / "evaluation/votes.csv"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([*lines, lines[-1]]))
    assert main(["report", str(tmp_path)]) == 2
    assert "twice" in capsys.readouterr().err


# The tables' numbers, against computing them directly.


SMILES = ["CCO", "c1ccccc1O", "CC(=O)Nc1ccc(O)cc1", "CCN(CC)CC", "c1ccncc1", "CCO", "CC(C)Cc1ccc(cc1)C(C)C(=O)O"]


def test_molecules_are_averaged_in_each_run_and_then_over_runs(tmp_path):
    options = ExperimentOptions.of("molecules", methods=["mars-plain", "pref"], seeds=[0, 1, 2], steps=2, chains=4)
    run = begin_run(tmp_path, options)
    for seed in options.seeds:
        write_record(run, f"pref-s{seed}.zip", lambda chain, step, seed=seed: final(chain, step, seed), 4, 2)
    write_scores(run, ["molskill"], lambda _, state: float(state[2] * 10 + state[3]) if state[0] == "pref" else None)
    cells = MEASURES["molecules"](run)
    runs = [np.mean([QED.qed(Chem.MolFromSmiles(final(c, 2, seed))) for c in range(4)]) for seed in options.seeds]
    cell = cells["pref", "qed"]
    assert cell.value == pytest.approx(np.mean(runs), abs=1e-12)
    assert cell.spread == pytest.approx(np.std(runs, ddof=1) / np.sqrt(3), abs=1e-12)
    assert cell.low < cell.value < cell.high
    assert cells["pref", "molskill_mean"].value == pytest.approx(11.5)
    assert cells["pref", "molskill_median"].value == pytest.approx(11.5)
    assert cells["mars-plain", "qed"].value is None
    assert cells["mars-plain", "molskill_mean"].value is None


def final(chain, step, seed):
    return SMILES[(chain + 2 * seed) % len(SMILES)] if step == 2 else "CC"


def test_stories_are_rated_over_all_kept_samples(tmp_path):
    options = ExperimentOptions.of("stories", steps=5, keep=5, prompts=20, matches=0)
    run = begin_run(tmp_path, options)
    write_scores(run, ["gothic", "overall"], lambda name, state: rating(name, state))
    cells = MEASURES["stories"](run)
    values = [rating("gothic", ("pref-sep", "", 0, chain, step)) / 10 for chain in range(20) for step in range(1, 6)]
    cell = cells["pref-sep", "gothic"]
    assert cell.value == pytest.approx(np.mean(values))
    assert cell.spread == pytest.approx(np.std(values, ddof=1))
    assert cell.count == 100
    assert cell.low < cell.value < cell.high
    assert cells["pref-sep", "elevated"].value is None
    assert strength_cells(run)["pref-sep", "bt_gothic"].note == "there is no vote"


def rating(name, state):
    return 1 + (state[3] + state[4] + len(name) + len(state[0])) % 10


def test_an_image_counts_only_where_all_three_objects_are_seen(tmp_path):
    run = begin_run(tmp_path, ExperimentOptions.of("images", methods=["base", "pref"], steps=40))
    write_scores(
        run,
        ["salamander", "butterfly", "mushroom", "aesthetic"],
        lambda name, state: 6.5 if name == "aesthetic" else float(name != "mushroom" or state[4] % 4 == 0),
    )
    cells = MEASURES["images"](run)
    assert cells["pref", "all_three"].value == pytest.approx(0.25)
    assert cells["pref", "all_three_second_half"].count == 20
    assert cells["pref", "aesthetic"].value == pytest.approx(6.5)
    # States of one chain follow each other: no interval is honest. Draws are independent.
    assert cells["pref", "all_three"].low is None
    assert cells["base", "all_three"].low < 0.25 < cells["base", "all_three"].high


SENTENCES = ["The house stands at the lake.", "He has never seen the sea.", "We begin tomorrow."]
WORSE = ["The house is at a lake.", "He never has the sea seen.", "Tomorrow begin we."]


def translation_run(folder):
    options = ExperimentOptions.of("translation", "laptop", methods=["pointwise", "pref"])
    inputs = {name: [ExperimentInput(f"Satz {n}.", text) for n, text in enumerate(SENTENCES)] for name in PAIRS}
    run = begin_run(folder, options, inputs)
    for direction in PAIRS:
        write_record(run, f"pref-{direction}-s0.zip", said, 3, 8)
        write_record(run, f"pointwise-{direction}-s0.zip", lambda chain, step: WORSE[chain], 3, 8)
    return run


PAIRS = ("de-en", "en-de")


def said(chain, step):
    return SENTENCES[chain] if step % 2 else WORSE[chain]


METRICS = {"bleu": partial(sentence_bleu, use_effective_order=True), "chrf": sentence_chrf, "ter": sentence_ter}


def test_translations_are_averaged_over_states_and_then_over_sources(tmp_path):
    run = translation_run(tmp_path)
    cells = MEASURES["translation"](run)
    kept = (4, 6, 8)
    for name, metric in METRICS.items():
        by_source = [np.mean([metric(said(c, step), [SENTENCES[c]]).score for step in kept]) for c in range(3)]
        assert cells["pref", f"{name}_de-en"].value == pytest.approx(np.mean(by_source), abs=1e-9)
    assert cells["pref", "xcomet_de-en"].value is None
    # So few sources are not tested.
    assert cells["pointwise", "bleu_de-en"].mark == ""
    assert corpus_scores(run)["pref", "bleu_de-en"].count == 3


@pytest.mark.parametrize(
    ("sentences", "others", "notes"),
    [
        (15, 15, ["no mark worse"]),
        (3, 3, ["No method is tested against Pref-MH: "]),
        (15, 3, ["no mark worse", "No method is tested against Pref-MH in BLEU en-de, chrF en-de, TER en-de: "]),
    ],
)
def test_the_table_says_whether_methods_were_tested(tmp_path, sentences, others, notes):
    options = ExperimentOptions.of("translation", "laptop", prompts=sentences, methods=["pointwise", "pref"])
    inputs = {name: [ExperimentInput(f"Satz {n}.", f"This is text {n}.") for n in range(sentences)] for name in PAIRS}
    run = begin_run(tmp_path, options, inputs)
    for direction, chains in zip(PAIRS, (sentences, others), strict=True):
        write_record(run, f"pref-{direction}-s0.zip", lambda chain, step: f"This is text {chain}.", chains, 8)
        write_record(run, f"pointwise-{direction}-s0.zip", lambda chain, step: "Worse!", chains, 8)
    write_report(tmp_path)
    assert re.findall("no mark worse|No method.*: ", (tmp_path / "table.md").read_text()) == notes


def test_where_no_method_is_tested_no_table_speaks_of_it(tmp_path):
    begin_run(tmp_path, ExperimentOptions.of("stories"))
    write_report(tmp_path)
    assert "tested" not in (tmp_path / "table.md").read_text()


def test_a_missing_reference_is_named(tmp_path):
    run = translation_run(tmp_path)
    run.document["inputs"]["de-en"][1]["reference"] = ""
    with pytest.raises(OutputError, match="empty reference for sentence 1 of de-en"):
        MEASURES["translation"](run)


def test_without_any_reference_only_the_cells_that_need_one_are_empty(tmp_path):
    run = translation_run(tmp_path)
    for given in run.document["inputs"]["de-en"]:
        given["reference"] = ""
    write_scores(run, ["xcomet"], lambda *_: 0.5)
    cells = MEASURES["translation"](run)
    assert (cells["pref", "bleu_de-en"].value, cells["pref", "bleu_de-en"].note) == (None, "no references")
    assert cells["pref", "xcomet_de-en"].value == 0.5
    assert cells["pref", "bleu_en-de"].value is not None
    assert {name for _, name in corpus_scores(run)} == {"bleu_en-de", "chrf_en-de", "ter_en-de"}


# What the evaluation finds where the truth is planted.


STRENGTHS = np.array([-0.6, -0.3, -0.2, 0.3, 0.8])
PLAYERS = ("base", "pointwise-sep", "pointwise-joint", "pref-joint", "pref-sep")


def test_a_tournament_of_files_gives_the_planted_strengths(tmp_path):
    """Natural log-odds, mean 0: 50 prompts x 10 pairs x 10 matches x 2 orders; the error of a score is about .05."""
    planted = dict(zip(PLAYERS, STRENGTHS, strict=True))
    run = begin_run(tmp_path, ExperimentOptions.of("stories"))
    write_votes(run, lambda _, one, other, __: float(expit(planted[one] - planted[other])), np.random.default_rng(4))
    for votes in tournament_choices(run).values():
        assert votes.votes == 10_000
        assert len(votes.clusters) == 50
        found = bradley_terry_intervals(votes)
        assert found.estimate.sum() == pytest.approx(0, abs=1e-9)
        for method, value in zip(found.items, found.estimate, strict=True):
            assert value == pytest.approx(planted[method], abs=0.2)


def test_marks_are_the_paper_s():
    rng = np.random.default_rng(3)
    reference = {source: float(value) for source, value in enumerate(rng.normal(40, 10, 60))}
    higher = {source: value + 3 for source, value in reference.items()}
    assert mark_of(higher, reference, higher_is_better=True) == "†"
    assert mark_of(higher, reference, higher_is_better=False) == ""
    assert mark_of(reference, reference, higher_is_better=True) == "‡"


def test_every_match_meets_in_both_orders_and_the_schedule_is_a_function_of_the_seed():
    options = ExperimentOptions.of("stories", prompts=3, matches=4)
    slots = tournament_schedule(options)
    assert slots == tournament_schedule(options)
    assert slots != tournament_schedule(ExperimentOptions.of("stories", prompts=3, matches=4, seeds=[1]))
    assert len({slot.key for slot in slots}) == len(slots) == 10 * 3 * 4 * 3 * 2
    for first, second in zip(slots[::2], slots[1::2], strict=True):
        assert first.key[:2] == second.key[:2]
        assert (first.one_first, second.one_first) == (True, False)
    steps = {slot.match.other.step for slot in slots if slot.match.other.method == "pref-sep"}
    assert steps == {262, 275, 287, 300}
