"""Two molecules drawn side by side: the same orientation, whichever is the proposal, on light and dark ground."""

import itertools
import re
import time
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from sampler.objects.molecules import canonical_smiles, draw_molecule, draw_pair, molecule_png

PAIRS = {
    "a fragment added": ("CC(=O)Nc1ccc(O)cc1", "CC(=O)Nc1ccc(O)c(-c2ccc(S(N)(=O)=O)cc2)c1"),
    "a hydrogen of a ring lost": ("c1cc[nH]c1", "Cn1cccc1"),
    "neither holds the other": ("CCOC(=O)c1ccc(NC(=S)N2CCOCC2)cc1", "CCOC(=O)c1cccnc1NC(=O)C1CCCCC1"),
    "nothing in common": ("O", "[Na+]"),
    "the same": ("CCO", "CCO"),
}
every_pair = pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
BOND = re.compile(r"class='bond-(\d+) atom-(\d+) atom-(\d+)' d='M ([\d.-]+),([\d.-]+) L ([\d.-]+),([\d.-]+)'")
MARKS = re.compile("#FFD866|#72540C")


def directions(svg):
    """Return the directions of the bonds of carbon with carbon, degrees from 0 to 180."""
    return [
        float(np.degrees(np.arctan2(float(y2) - float(y1), float(x2) - float(x1))) % 180)
        for _, _, _, x1, y1, x2, y2 in BOND.findall(svg)
    ]


@every_pair
@pytest.mark.parametrize("marked", [False, True])
@pytest.mark.parametrize("dark", [False, True])
def test_swapping_the_molecules_swaps_the_drawings_and_nothing_else(pair, marked, dark):
    one, other = pair
    assert draw_pair(one, other, marked=marked, dark=dark) == draw_pair(other, one, marked=marked, dark=dark)[::-1]


@every_pair
def test_drawings_have_the_size_asked_and_no_ground_of_their_own(pair):
    for svg in draw_pair(*pair, width=300, height=200):
        drawing = ET.fromstring(svg)
        assert (drawing.get("width"), drawing.get("height")) == ("300px", "200px")
        assert "<rect" not in svg


def test_what_both_have_lies_in_the_same_direction():
    small, large = draw_pair("CCCc1ccccc1", "CCCc1ccc(Cl)cc1")
    turned = {round(angle) for angle in directions(large)}
    assert len(directions(small)) > 8
    assert all(min(abs(angle - each) for each in turned) <= 1 for angle in directions(small))


@pytest.mark.parametrize("dark", [False, True])
def test_only_what_one_alone_has_is_marked_and_only_on_demand(dark):
    one, other = PAIRS["a fragment added"]
    plain, marked = (draw_pair(one, other, marked=on, dark=dark) for on in (False, True))
    assert plain[0] == marked[0]
    assert plain[1] != marked[1]
    assert [bool(MARKS.search(svg)) for svg in (*plain, *marked)] == [False, False, False, True]


HARD = {
    "equal ends": [
        *(f"FC(F)(F){'C(F)(F)' * n}{end}" for n in range(3, 48) for end in ("C(F)(F)F", "C(=O)O")),
        *("CC(C)(C)" * n + "C" for n in range(2, 36)),
        *("C" + "[Si](C)(C)O" * n + "[Si](C)(C)C" for n in range(2, 36)),
    ],
    "long rings": [
        "C1" + unit * n + "C1"
        for unit, most in {"C": 148, "COC": 49, "C=CC": 49, "C(F)(F)": 49}.items() for n in range(5, most, most // 16)
    ],
}  # fmt: skip


def seconds(work, *given):
    """Return what a call gives, and the processor time that it takes."""
    before = time.process_time()
    return work(*given), time.process_time() - before


def is_accepted(smiles):
    try:
        return bool(canonical_smiles(smiles))
    except ValueError:
        return False


@pytest.mark.parametrize("family", HARD)
def test_any_molecule_that_is_accepted_and_any_pair_of_such_is_drawn_in_a_second_of_processor_time(family):
    accepted = [smiles for smiles in HARD[family] if is_accepted(smiles)]
    assert len(accepted) > 30
    for one, other in itertools.pairwise(dict.fromkeys(accepted)):
        (drawn, took), (pair, took_together) = seconds(draw_molecule, one), seconds(draw_pair, one, other)
        assert ("<svg" in drawn) == ("<svg" in pair[0]) == ("<svg" in pair[1])
        assert max(took, took_together) < 1, (one, other)


def test_those_that_would_take_too_long_to_compare_are_drawn_each_by_itself():
    one, other = (f"FC(F)(F){'C(F)(F)' * n}C(F)(F)F" for n in (21, 22))
    assert draw_pair(one, other) == (draw_molecule(one), draw_molecule(other))


def test_a_charged_dummy_atom_is_drawn_wherever_it_is_shown_and_no_drawing_holds_the_smiles():
    one, other = map(canonical_smiles, ("[*+]C/C=C/C", "[*+]C/C=C/CC"))
    assert all("<svg" in svg for svg in draw_pair(one, other))
    assert b"SMILES" not in molecule_png(one)
