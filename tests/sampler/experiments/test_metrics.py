"""The tables' numbers, against computing them directly."""

import numpy as np
import pytest
from rdkit import Chem
from rdkit.Chem import QED
from sacrebleu import sentence_bleu, sentence_chrf, sentence_ter

from sampler import ExperimentInput, ExperimentOptions
from sampler.experiments.metrics import MEASURES, corpus_scores, strength_cells
from sampler.experiments.outputs import OutputError
from tests.support.campaigns import begin_run, write_record, write_scores

MOLECULES = ["CCO", "c1ccccc1O", "CC(=O)Nc1ccc(O)cc1", "CCN(CC)CC", "c1ccncc1", "CCO", "CC(C)Cc1ccc(cc1)C(C)C(=O)O"]


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
    return MOLECULES[(chain + 2 * seed) % len(MOLECULES)] if step == 2 else "CC"


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


def test_translations_are_averaged_over_states_and_then_over_sources(tmp_path):
    run = translation_run(tmp_path)
    cells = MEASURES["translation"](run)
    kept = (4, 6, 8)
    for name, metric in (("bleu", bleu), ("chrf", chrf), ("ter", ter)):
        by_source = [np.mean([metric(said(c, step), SENTENCES[c]) for step in kept]) for c in range(3)]
        assert cells["pref", f"{name}_de-en"].value == pytest.approx(np.mean(by_source), abs=1e-9)
    assert cells["pref", "xcomet_de-en"].value is None
    assert cells["pref", "bleu_de-en"].mark == ""
    assert cells["pointwise", "bleu_de-en"].mark == "‡"
    assert corpus_scores(run)["pref", "bleu_de-en"].count == 3


def bleu(text, reference):
    return sentence_bleu(text, [reference], use_effective_order=True).score


def chrf(text, reference):
    return sentence_chrf(text, [reference]).score


def ter(text, reference):
    return sentence_ter(text, [reference]).score


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
