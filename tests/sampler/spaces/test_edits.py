"""Edits by their numbers: all ways between two molecules, against trying every atom, arm and cut."""

import os

import pytest

from sampler import Purpose, stream
from sampler.kernels.fragments import FragmentMoves
from sampler.spaces.molecules.edits import Addition, Deletion, Edits
from sampler.spaces.molecules.space import MoleculeLaw
from sampler.spaces.molecules.vocabulary import Vocabulary, default_vocabulary
from tests.support.enumerated import every_edit

# More in a release: EDIT_MOVES=5000 python -m pytest tests/sampler/spaces/test_edits.py
FUZZ_MOVES = int(os.environ.get("EDIT_MOVES", "60"))
LAW = MoleculeLaw((0.0,) * 40)


def tried(edits: Edits, low: str, high: str):
    """Return every addition and every deletion between two molecules, by trying all that have the right size."""
    small, large = edits.read(low), edits.read(high)
    sizes = [arm.size for arm in edits.vocabulary]
    additions = [
        edit
        for edit in every_edit(edits, small)
        if isinstance(edit, Addition) and sizes[edit.arm] == large.size - small.size and edits.made(small, edit) == high
    ]
    deletions = [
        edit for edit in every_edit(edits, large) if isinstance(edit, Deletion) and edits.made(large, edit) == low
    ]
    return tuple(sorted(additions)), tuple(sorted(deletions))


def test_all_ways_are_found_between_molecules_of_the_default_vocabulary():
    vocabulary = default_vocabulary()
    edits, kernel = Edits(vocabulary, LAW), FragmentMoves(vocabulary, LAW)
    state, moves, several = "CC", 0, 0
    for step in range(FUZZ_MOVES):
        proposal = kernel.propose(stream(11, 0, step, Purpose.PROPOSAL), state)
        if proposal.state == state:
            continue
        low, high = sorted((state, proposal.state), key=lambda each: edits.read(each).size)
        ways = edits.ways(low, high)
        assert (ways.additions, ways.deletions) == tried(edits, low, high)
        moves += 1
        several += len(ways.additions) > 1 or len(ways.deletions) > 1
        state = proposal.state
    assert moves > FUZZ_MOVES / 6
    assert several > 0


@pytest.mark.parametrize(
    ("low", "high", "additions", "deletions"),
    [
        ("c1ccccc1", "Cc1ccccc1", 6, 1), ("Cc1ccccc1", "Cc1ccc(C)cc1", 1, 2), ("CC", "CCO", 2, 1),
        ("CC", "CCCO", 0, 0),
    ],
)  # fmt: skip
def test_ways_can_be_counted_by_hand(low, high, additions, deletions):
    ways = Edits(Vocabulary([("*C", 1.0), ("*O", 1.0)]), LAW).ways(low, high)
    assert (len(ways.additions), len(ways.deletions)) == (additions, deletions)
