"""The editor of MARS's learned proposal, on a small space: exact whatever its weights, and it learns."""

from functools import cache

import numpy as np
import pytest

from sampler import Purpose, stream
from sampler.__main__ import main
from sampler.experiments.mars import LockstepRecord, MarsSettings, replay_file, replay_lockstep, run_mars, score_of
from sampler.kernels.editor import ImprovingEdit, LearningSettings, TorchEditor
from sampler.kernels.learned_fragments import LearnedFragments
from sampler.spaces.molecules.edits import Addition
from sampler.spaces.molecules.space import MoleculesConfig
from sampler.spaces.molecules.vocabulary import Vocabulary
from tests.support.sampling import (
    SMALL_SPACES,
    check_balance,
    check_rows,
    claimed_ratios,
    learned,
    q_matrix,
    size_log_p0,
)

FRAGMENTS = ("*C", "*CC", "*O", "*F", "*N", "*c1ccccc1", "*C(N)=O", "*C#N", "*Cl", "*OC")
SPACE = MoleculesConfig(size_log_weights=(0.0,) * 14, vocabulary=FRAGMENTS)
# Small batches, so that a pass through few edits makes many updates.
SETTINGS = LearningSettings(batch_atoms=250)
ROUNDS = 12


@cache
def trained(name, device) -> TorchEditor:
    """Return an editor that has learnt something, in a small space."""
    space = SMALL_SPACES[name]
    settings = LearningSettings(rate=0.01, batch_atoms=20)
    editor = TorchEditor(Vocabulary(space.fragments), seed=3, settings=settings, device=device)
    editor.learn(
        [ImprovingEdit(space.start, Addition(0, fragment)) for fragment in (0, 1, 1)], stream(3, 0, 1, Purpose.EDITOR)
    )
    return editor


@pytest.mark.parametrize("name", ["symmetric", "duplicates"])
def test_a_trained_editor_keeps_detailed_balance(name, device):
    space = SMALL_SPACES[name]
    kernel, states = learned(space, trained(name, device)), space.reachable()
    q = q_matrix(kernel, states)
    check_rows(q)
    check_balance(size_log_p0(space.distribution(), states), q, claimed_ratios(kernel, states, q))
    assert not np.allclose(q, q_matrix(learned(space, TorchEditor(Vocabulary(space.fragments), 3)), states))


def test_a_new_editor_proposes_what_the_plain_kernel_does(device):
    space = SMALL_SPACES["imidazole"]
    kernel = learned(space, TorchEditor(Vocabulary(space.fragments), seed=1, device=device))
    for state in space.reachable()[:10]:
        plain = {reached: chance for reached, chance in space.kernel().distribution(state).items() if chance}
        assert {each: chance for each, chance in kernel.distribution(state).items() if chance} == pytest.approx(
            plain, abs=1e-6
        )


def test_equivalent_atoms_get_the_same_numbers_and_a_batch_the_same_as_single_calls(device):
    editor = trained("symmetric", device)
    (alone,), (_, beside) = editor.read(["Cc1ccccc1"]), editor.read(["c1ccccc1", "Cc1ccccc1"])
    assert alone.atoms == pytest.approx(beside.atoms, abs=1e-5)
    assert alone.fragments == pytest.approx(beside.fragments, abs=1e-5)
    assert alone.cuts == pytest.approx(beside.cuts, abs=1e-5)
    # Ortho, meta and para of toluene, as its SMILES names the atoms.
    assert alone.atoms[2] == pytest.approx(alone.atoms[6], abs=1e-5)
    assert alone.atoms[3] == pytest.approx(alone.atoms[5], abs=1e-5)
    assert abs(alone.atoms[2] - alone.atoms[4]) > 1e-5


def test_single_atoms_and_molecules_without_cuts_can_be_read(device):
    methane, benzene = trained("symmetric", device).read(["C", "c1ccccc1"])
    assert (methane.atoms.shape, methane.cuts.shape, benzene.cuts.shape) == ((1,), (0,), (0,))


def test_weights_follow_from_the_seed_and_the_updates():
    vocabulary = Vocabulary([("*C", 1.0), ("*O", 1.0)])
    one, same, other = (TorchEditor(vocabulary, seed) for seed in (1, 1, 2))
    assert one.fingerprint == same.fingerprint != other.fingerprint
    first = one.fingerprint
    edits = [ImprovingEdit("CC", Addition(0, 1))]
    for editor in (one, same):
        assert editor.learn(edits, stream(1, 0, 1, Purpose.EDITOR)).updates == 1
    assert one.fingerprint == same.fingerprint != first
    assert log_likelihood(one, edits) > log_likelihood(other, edits)


@cache
def drawn():
    """Return edits, possible or not, drawn plainly along a walk, and whether each raised the score."""
    space = SPACE.build()
    kernel = LearnedFragments(
        space.vocabulary, space.distribution, TorchEditor(space.vocabulary, 0), convention="paper"
    )
    state, edits, raised = "CC", [], []
    for step in range(1_500):
        proposal = kernel.propose(stream(6, 0, step, Purpose.PROPOSAL), state)
        if proposal.edit is not None:
            edits.append(ImprovingEdit(state, proposal.edit))
            raised.append(proposal.state != state and score_of(proposal.state) > score_of(state))
        state = proposal.state
    return edits, np.array(raised)


def gain(labels) -> float:
    """Return how much the mean log-chance of improving edits at molecules not learned from rises.

    Args:
        labels: which edits the editor is told have raised the score, shape (n,).
    """
    edits, raised = drawn()
    is_held_out = np.array([hash_of(each.state) % 3 == 0 for each in edits])
    held_out = [edits[index] for index in np.flatnonzero(raised & is_held_out)]
    editor = TorchEditor(SPACE.build().vocabulary, seed=5, settings=SETTINGS)
    before = log_likelihood(editor, held_out)
    new = [edits[index] for index in np.flatnonzero(labels & ~is_held_out)]
    for step in range(1, ROUNDS + 1):
        editor.learn(new, stream(5, 0, step, Purpose.EDITOR))
        new = []
    return log_likelihood(editor, held_out) - before


def log_likelihood(editor: TorchEditor, edits) -> float:
    """Return the mean log-chance of these edits, given that each is an addition or a deletion; it learns nothing."""
    with editor._computing(), editor._torch.no_grad():
        return float(editor._log_chances(edits).mean())


def hash_of(state: str) -> int:
    return sum(map(ord, state))


def check_learned(labels) -> None:
    """Check that the gain is more than 0.1. It is 0 in the mean, less what is overfitted, where labels tell nothing."""
    found = gain(labels)
    assert found > 0.1, f"the gain is {found:.3f}"


def test_the_likelihood_of_improving_edits_at_new_molecules_rises():
    check_learned(drawn()[1])


def test_it_does_not_where_the_labels_are_shuffled():
    """Then the edits have the distribution that the editor starts with, and there is nothing to learn."""
    with pytest.raises(AssertionError, match="the gain is"):
        check_learned(np.random.default_rng(1).permutation(drawn()[1]))


def test_a_run_is_repeated_to_the_last_bit_and_its_record_replays():
    space, records = SPACE.build(), []
    for _ in range(2):
        editor = TorchEditor(space.vocabulary, seed=2, settings=SETTINGS)
        settings = MarsSettings(seed=2, chains=4, steps=8, convention="exact", space=SPACE, editor=editor.about)
        record = LockstepRecord(settings)
        ended = run_mars(settings, editor, record.write)
        records.append(record.files())
    assert records[0] == records[1]
    found = replay_lockstep(records[0])
    assert found.final == ended
    assert found.updates > 0


def test_the_command_records_each_seed(tmp_path, capsys):
    arguments = ["mars", "--proposal", "learned", "--chains", "2", "--steps", "3", "--seeds", "2"]
    assert main([*arguments, "--record", str(tmp_path), "--out", str(tmp_path / "mars.csv")]) == 0
    assert "over 2 seeds" in capsys.readouterr().out
    for seed in (0, 1):
        assert not replay_file(tmp_path / f"mars-s{seed}.zip").differences
