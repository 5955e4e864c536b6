"""Real votes: medicinal chemists on pairs of molecules (MolSkill, MIT; molecules from ChEMBL, CC BY-SA).

The files are not part of this project. Where they lie beside the checkout, in ../shared/data, these tests read them.
"""

from __future__ import annotations

import csv
import itertools
from pathlib import Path

import numpy as np
import pytest

from sampler.diagnostics import Comparisons, cohen_kappa, fleiss_kappa, fleiss_kappa_interval, side_lean

VOTES = Path(__file__).parents[4] / "shared" / "data" / "chemist_votes"
pytestmark = pytest.mark.skipif(
    not VOTES.exists(), reason="the chemists' votes are not in ../shared/data/chemist_votes"
)


def rows(name):
    with (VOTES / name).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def pilot(name):
    """Return the pairs of a pilot round and its raters' answers, 1 for molecule j, shape (pairs, raters)."""
    table = rows(name)
    raters = [column for column in table[0] if column.startswith("rater")]
    answers = np.array([[int(float(row[rater])) for rater in raters] for row in table])
    return [(row["smiles_i"], row["smiles_j"]) for row in table], answers


def test_five_thousand_votes_on_ten_thousand_molecules_cannot_be_fitted():
    comparisons = Comparisons.of(
        (row["smiles_j"], row["smiles_i"]) if row["label"] == "1" else (row["smiles_i"], row["smiles_j"])
        for row in rows("production_public.csv")
    )
    assert comparisons.votes == 5_276
    assert "never compared with each other" in comparisons.refusal()
    assert max(map(len, comparisons.fittable_parts())) == 2


def test_the_chemists_did_not_lean():
    labels = [row["label"] for row in rows("production_public.csv")]
    lean = side_lean(labels.count("0"), len(labels))
    assert lean.low < 0 < lean.high
    # 5,276 votes are enough to see a lean of 0.08.
    assert lean.high - lean.low < 0.16


@pytest.mark.parametrize("name", ["pre_r1.csv", "pre_r2.csv"])
def test_fleiss_kappa_is_near_the_mean_of_cohens_over_pairs_of_raters(name):
    _, answers = pilot(name)
    yes = answers.sum(axis=1)
    counts = np.stack([yes, answers.shape[1] - yes], axis=1)
    kappa = fleiss_kappa(counts)
    low, high = fleiss_kappa_interval(counts, np.random.default_rng(1))
    pairs = itertools.combinations(answers.T.tolist(), 2)
    # Their chance agreements differ by the variance of the raters' shares of j, at most 0.04^2 here.
    assert kappa == pytest.approx(np.mean([cohen_kappa(one, other) for one, other in pairs]), abs=0.005)
    assert 0.2 < low < kappa < high < 0.5


@pytest.mark.parametrize("name", ["pre_r1.csv", "pre_r2.csv"])
def test_a_chemist_agrees_with_himself_more_than_with_others(name):
    pairs, answers = pilot(name)
    first, again = {}, []
    for place, pair in enumerate(pairs):
        again += zip(answers[first[pair]], answers[place], strict=True) if pair in first else ()
        first.setdefault(pair, place)
    before, after = zip(*again, strict=True)
    yes = answers.sum(axis=1)
    assert cohen_kappa(before, after) > fleiss_kappa(np.stack([yes, answers.shape[1] - yes], axis=1)) + 0.1
