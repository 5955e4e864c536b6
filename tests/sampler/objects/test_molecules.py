"""Reading molecules, comparing and drawing them."""

from __future__ import annotations

import itertools
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from sampler import OBJECT_KINDS, Catalog, CatalogError, Item, draw_molecule
from tests.support.files import archive, read, table


def column(*smiles):
    return table([["smiles"], ["C"], ["N"], *([each] for each in smiles)])


def refusals(data):
    return {refusal.source: refusal.reason for refusal in read("molecules", data).refusals}


def test_ways_to_write_one_molecule_become_one_item():
    data = table([["smiles", "weight"], ["OCC", 1], ["CCO", 2], ["C(O)C", 4], ["c1ccccc1", 1], ["C1=CC=CC=C1", 1]])
    reading = read("molecules", data)
    assert [(item.source, item.content, item.weight) for item in reading.items] == [
        ("row 2", "CCO", 7.0),
        ("row 5", "c1ccccc1", 2.0),
    ]
    assert [refusal.source for refusal in reading.refusals] == ["row 3", "row 4", "row 6"]


def test_mirror_images_stay_two_molecules_and_false_stereo_marks_vanish():
    contents = [item.content for item in read("molecules", column("C[C@H](F)Cl", "C[C@@H](F)Cl", "C[C@H](C)O")).items]
    assert len(contents) == 5
    assert contents[-1] == "CC(C)O"


@pytest.mark.parametrize(
    ("smiles", "reason"),
    [
        ("CN(C)(C)(C)C", "valence"),
        ("C1CC", "is not a SMILES"),
        ("hello", "is not a SMILES"),
        ("[Xx]", "is not a SMILES"),
        ("c1cccc1", "kekulize"),
        ("[H][H]", "0 heavy atoms"),
        ("C" * 151, "151 heavy atoms"),
        ("C" * 1_001, "1,001 characters"),
        (" ", "empty"),
    ],
)
def test_what_is_no_molecule_is_refused_with_its_row_in_silence(smiles, reason, capfd):
    found = refusals(table([["smiles", "weight"], ["C", 1], ["N", 1], [smiles, 1]]))
    assert set(found) == {"row 4"}
    assert reason in found["row 4"]
    assert capfd.readouterr() == ("", "")


def test_a_bad_weight_is_refused_with_its_row():
    assert set(refusals(table([["smiles", "weight"], ["C", 1], ["N", 1], ["CO", -1]]))) == {"row 4"}


def test_a_workbook_is_not_taken_for_a_csv():
    with pytest.raises(CatalogError, match="looks like an Excel workbook"):
        read("molecules", archive({"xl/workbook.xml": b"<workbook/>"}))


def test_a_file_without_the_column_is_refused():
    with pytest.raises(CatalogError, match="“smiles”"):
        read("molecules", b"molecule\nC\nN\n")


def test_more_molecules_than_a_catalog_holds_are_refused_as_a_whole():
    isotopes = [f"[{mass}C]" for mass in range(1, 20_000)]
    assert len(read("molecules", column(*isotopes[:-1])).items) == 20_000
    with pytest.raises(CatalogError, match="more than 20,000"):
        read("molecules", column(*isotopes))


def test_similar_molecules_are_neighbours():
    alcohols, rings = ["CCCO", "CCCCO", "CCCCCO"], ["c1ccccc1C", "c1ccccc1CC", "c1ccccc1CCC"]
    graph = OBJECT_KINDS["molecules"].neighbours([Item("", smiles) for smiles in alcohols + rings], 1)
    for item, row in enumerate(graph):
        assert row
        assert all((other < 3) == (item < 3) for other in row)


@pytest.mark.parametrize("count", [1, 2, 9])
def test_a_small_catalog_gets_the_neighbours_it_can(count):
    graph = OBJECT_KINDS["molecules"].neighbours([Item("", smiles) for smiles in ("C", "CO", "CN")], count)
    Catalog(np.ones(3), graph)
    assert all(len(row) >= min(count, 2) for row in graph)


def test_fifteen_hundred_molecules_can_be_read_and_linked():
    pieces = ["N", "O", "CC", "C(=O)", "C(F)", "c1ccc(cc1)", "S", "C(Cl)"]
    rows = [["smiles"], *(["C" + "".join(chosen) + "C"] for chosen in itertools.product(pieces, repeat=4))]
    items = read("molecules", table(rows)).items[:1_500]
    graph = OBJECT_KINDS["molecules"].neighbours(items, 5)
    assert len(Catalog(np.ones(len(items)), graph)) == 1_500
    assert min(len(row) for row in graph) >= 5


def test_a_molecule_is_drawn_as_svg_of_the_size_asked():
    drawing = ET.fromstring(draw_molecule("c1ccccc1O", width=200, height=100))
    assert (drawing.get("width"), drawing.get("height")) == ("200px", "100px")


@pytest.mark.parametrize("smiles", ["C1CC", "CN(C)(C)(C)C", "c1cccc1", "hello"])
def test_what_is_no_molecule_is_not_drawn_in_silence(smiles, capfd):
    with pytest.raises(ValueError, match="not a molecule"):
        draw_molecule(smiles)
    assert capfd.readouterr() == ("", "")
