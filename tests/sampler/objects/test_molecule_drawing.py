"""Two molecules drawn side by side: the same orientation, whichever is the proposal, on light and dark ground."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from sampler.objects.molecules.drawing import draw_molecule, draw_pair

PAIRS = {
    "an arm added": ("CC(=O)Nc1ccc(O)cc1", "CC(=O)Nc1ccc(O)c(-c2ccc(S(N)(=O)=O)cc2)c1"),
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
    one, other = PAIRS["an arm added"]
    plain, marked = (draw_pair(one, other, marked=on, dark=dark) for on in (False, True))
    assert plain[0] == marked[0]
    assert plain[1] != marked[1]
    assert [bool(MARKS.search(svg)) for svg in (*plain, *marked)] == [False, False, False, True]


def test_both_are_marked_where_neither_holds_the_other():
    assert all(MARKS.search(svg) for svg in draw_pair(*PAIRS["neither holds the other"], marked=True))


def luminance(colour):
    """Return the relative luminance of a colour #rrggbb, by WCAG 2.2."""
    parts = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


@pytest.mark.parametrize(("dark", "ground"), [(False, "#FFFFFF"), (True, "#1E1E29")])
def test_every_element_stands_out_from_the_ground(dark, ground):
    # 3 is what WCAG 2.2 asks of graphics.
    for smiles in ("CCO", "CN", "CF", "CCl", "CBr", "CI", "CS", "CP", "C[N+](=O)[O-]", "CB(O)O", "C[Si](C)(C)C"):
        colours = set(re.findall(r"#[0-9A-Fa-f]{6}", draw_molecule(smiles, dark=dark)))
        for colour in colours:
            lights = sorted((luminance(colour), luminance(ground)))
            assert (lights[1] + 0.05) / (lights[0] + 0.05) >= 3.0, (smiles, colour)
