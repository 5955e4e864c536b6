"""The MARS run: chains of molecules driven by computed properties."""

import math

import numpy as np
import pytest

from sampler.cli import main
from sampler.experiments.mars import MarsSettings, run_mars, score_of
from sampler.spaces.molecules.graph import canonical_state, heavy_atoms
from tests.support.sampling import rows_in_file

RUN = MarsSettings(seed=3, chains=4, steps=60, convention="paper")


@pytest.fixture(scope="module")
def ended():
    return run_mars(RUN)


def test_final_molecules_are_states(ended):
    for final in ended:
        assert canonical_state(final.smiles) == final.smiles
        assert 0 <= final.moved <= final.proposed <= RUN.steps
        assert heavy_atoms(final.smiles) <= 40


def test_chains_climb_towards_a_high_score(ended):
    # From 0.54 at CC; the highest there is, is 0.7.
    assert np.mean([score_of(final.smiles) for final in ended]) > score_of("CC") + 0.03


def test_conventions_differ(ended):
    assert run_mars(RUN.model_copy(update={"convention": "exact"})) != ended


def test_the_command_writes_the_molecules(tmp_path, capsys):
    out = tmp_path / "mars.csv"
    arguments = ["mars", "--chains", "2", "--steps", "20", "--seed", "1", "--seeds", "2"]
    assert main([*arguments, "--out", str(out)]) == 0
    assert "diversity" in capsys.readouterr().out
    rows = rows_in_file(out)
    assert [(row["seed"], row["chain"]) for row in rows] == [("1", "0"), ("1", "1"), ("2", "0"), ("2", "1")]
    first = run_mars(MarsSettings(seed=1, chains=2, steps=20, convention="exact"))
    assert [row["smiles"] for row in rows[:2]] == [final.smiles for final in first]
    assert all(math.isfinite(float(row["qed"])) for row in rows)


def test_options_of_the_learned_proposal_are_refused_with_the_plain_one(tmp_path, capsys):
    assert main(["mars", "--record", str(tmp_path), "--out", str(tmp_path / "mars.csv")]) == 2
    assert "--record" in capsys.readouterr().err
