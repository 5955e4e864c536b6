"""The MARS run: chains of molecules driven by computed properties."""

import math

import numpy as np
import pytest

from sampler.commands import main
from sampler.experiments.mars import MarsRun, run_chain, run_chains
from sampler.objects.molecules.measures import describe_molecule
from sampler.rules.scored import mars_score
from sampler.spaces.molecules.graph import canonical_state, heavy_atoms
from tests.support.sampling import rows_in_file

RUN = MarsRun(seed=3, steps=60, convention="paper")


@pytest.fixture(scope="module")
def ended():
    return run_chains(RUN, chains=4)


def test_where_chains_end_does_not_depend_on_the_number_of_processes(ended):
    done = []
    assert run_chains(RUN, chains=4, processes=2, progress=done.append) == ended
    assert sum(done) == 4


def test_final_molecules_are_states_with_their_own_properties(ended):
    for final in ended:
        described = describe_molecule(final.smiles)
        assert canonical_state(final.smiles) == final.smiles
        assert (final.qed, final.sa) == (described.qed, described.synthetic_accessibility)
        assert 0 <= final.moved <= final.proposed <= RUN.steps
        assert heavy_atoms(final.smiles) <= 40


def test_chains_climb_towards_a_high_score(ended):
    # From 0.54 at CC; the highest there is, is 0.7.
    start = float(mars_score(*_rated("CC")))
    assert np.mean([final.score for final in ended]) > start + 0.03


def test_conventions_differ():
    assert run_chain(RUN, 0) != run_chain(MarsRun(3, 60, "exact"), 0)


def test_the_command_writes_the_molecules(tmp_path, capsys):
    out = tmp_path / "mars.csv"
    arguments = ["mars", "--chains", "2", "--steps", "20", "--seed", "1", "--processes", "1", "--out", str(out)]
    assert main(arguments) == 0
    assert "diversity" in capsys.readouterr().out
    rows = rows_in_file(out)
    assert [row["chain"] for row in rows] == ["0", "1"]
    assert [row["smiles"] for row in rows] == [final.smiles for final in run_chains(MarsRun(1, 20), 2)]
    assert all(math.isfinite(float(row["qed"])) for row in rows)


def _rated(smiles):
    described = describe_molecule(smiles)
    return described.qed, described.synthetic_accessibility
