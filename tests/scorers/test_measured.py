"""What this program measures itself, as scorers."""

import numpy as np
import pytest

from prefmh_web.objects import OBJECT_KINDS, StoredObject
from prefmh_web.scorers import ScorerError, clashing_names, found_again, offered

NAMES = ("contrast", "edge_density")


def test_molecules_are_scored_by_rdkit_and_its_version_is_kept():
    qed = offered("molecules")["qed"]
    [aspirin] = qed.scores(OBJECT_KINDS["molecules"], [StoredObject("CC(=O)Oc1ccccc1C(=O)O")])
    assert aspirin == pytest.approx(0.55, abs=0.01)
    assert qed.description()["library"].startswith("rdkit 20")


def test_each_kind_of_object_has_its_own_measures_and_texts_have_words():
    assert "qed" not in offered("texts")
    assert offered("texts")["words"].scores(OBJECT_KINDS["texts"], [StoredObject("two words")]) == [2]
    assert {"synthetic_accessibility", "log_p", "weight"} <= set(offered("molecules"))


def test_a_picture_without_the_measure_has_no_score():
    narrow = StoredObject("one pixel high", pixels=lambda: np.zeros((1, 9, 3), dtype=np.uint8))
    contrast, edges = (offered("images")[name].scores(OBJECT_KINDS["images"], [narrow])[0] for name in NAMES)
    assert contrast == 0
    assert "no edge_density" in edges.reason


def test_a_command_that_has_changed_is_not_the_one_of_the_start(declare, settings):
    declare("print(1, flush=True)")
    frozen = offered("texts")["length"].description()
    assert found_again("texts", frozen).name == "length"
    settings.SCORERS = {"length": ("other", "command")}
    with pytest.raises(ScorerError, match="no longer the one"):
        found_again("texts", frozen)
    settings.SCORERS = {}
    with pytest.raises(ScorerError, match="Declare it in SCORERS"):
        found_again("texts", frozen)


def test_a_name_that_is_measured_already_is_told(settings):
    settings.SCORERS = {"qed": ("a",), "mine": ("b",)}
    assert clashing_names() == ["qed"]
