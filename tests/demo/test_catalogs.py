"""The demo's catalogs: readable by the sampler, the same at every writing, and scored on a useful scale."""

import functools
import io
import re
import statistics

import numpy as np
import pytest
from PIL import Image
from rdkit import Chem

from prefmh_web.demo.catalogs import DEMO_CATALOGS, DemoCatalog, texts
from prefmh_web.demo.catalogs.text_openings import OPENINGS, STYLES
from sampler import OBJECT_KINDS, Reading

SIZES = {"texts": 60, "molecules": 120, "images": 48}
CATALOGS = pytest.mark.parametrize("catalog", DEMO_CATALOGS, ids=lambda catalog: catalog.objects)
BY_OBJECTS = {catalog.objects: catalog for catalog in DEMO_CATALOGS}
ALL_OPENINGS = pytest.mark.parametrize("opening", [opening for row in OPENINGS.values() for opening in row])


@functools.cache
def written(catalog: DemoCatalog) -> bytes:
    return catalog.write()


@functools.cache
def read(catalog: DemoCatalog) -> Reading:
    return OBJECT_KINDS[catalog.objects].read(io.BytesIO(written(catalog)), lambda done, total: None)


def test_there_is_one_catalog_of_every_kind() -> None:
    assert set(BY_OBJECTS) == set(OBJECT_KINDS)


@CATALOGS
def test_reads_whole(catalog: DemoCatalog) -> None:
    reading = read(catalog)
    assert reading.refusals == ()
    assert len(reading.items) == SIZES[catalog.objects]


@CATALOGS
def test_writes_the_same_bytes_again(catalog: DemoCatalog) -> None:
    assert catalog.write() == written(catalog)


@CATALOGS
def test_scores_are_finite_and_spread(catalog: DemoCatalog) -> None:
    for score in catalog.scores:
        scores = [score(item.content) for item in read(catalog).items]
        assert np.all(np.abs(scores) < 3)
        assert 0.5 <= statistics.pstdev(scores) <= 2
        assert abs(statistics.fmean(scores)) < 1


@CATALOGS
def test_neighbours_can_be_computed(catalog: DemoCatalog) -> None:
    graph = OBJECT_KINDS[catalog.objects].neighbours(read(catalog).items, 5)
    assert all(len(row) >= 5 for row in graph)


@ALL_OPENINGS
def test_an_opening_is_two_to_four_sentences(opening: str) -> None:
    assert 2 <= len(texts.sentences(opening)) <= 4
    assert 40 <= len(opening.split()) <= 80


@ALL_OPENINGS
def test_an_opening_is_clean_english(opening: str) -> None:
    assert not re.search(r"\b(\w+) \1\b", opening, re.IGNORECASE)
    # A silent h is the only consonant that takes "an" here; no opening has a "union" or a "one-eyed" after its article.
    assert not re.search(r"\b(a [aeiou]|an (?!hour)[^aeiou])", opening, re.IGNORECASE)
    assert not re.search(r"""["']|  |\s[.,;?]""", opening)
    assert opening.count("“") == opening.count("”")
    assert re.search(r"[.?]”?$", opening)


def test_every_scenario_is_told_in_every_style() -> None:
    assert {len(openings) for openings in OPENINGS.values()} == {len(STYLES)}


def test_weights_of_texts_differ_mildly() -> None:
    assert {item.weight for item in read(BY_OBJECTS["texts"]).items} == {1, 2, 3}


def test_gothic_styles_score_higher() -> None:
    by_style = {
        style: statistics.fmean(texts.gothic_mood(row[place]) for row in OPENINGS.values())
        for place, style in enumerate(STYLES)
    }
    assert max(by_style["plain"], by_style["cheerful"]) < by_style["uneasy"]
    assert by_style["uneasy"] < min(by_style["gothic"], by_style["haunted"])


def test_molecules_are_of_drug_size() -> None:
    sizes = [Chem.MolFromSmiles(item.content).GetNumHeavyAtoms() for item in read(BY_OBJECTS["molecules"]).items]
    assert min(sizes) >= 8
    assert max(sizes) <= 45


def test_images_are_small_squares() -> None:
    assert len(written(BY_OBJECTS["images"])) < 8 * 2**20
    for item in read(BY_OBJECTS["images"]).items:
        with Image.open(io.BytesIO(item.picture)) as picture:
            assert picture.size == (384, 384)


@pytest.mark.parametrize(("objects", "content"), [("molecules", "not a molecule"), ("images", "absent.png")])
def test_an_unknown_object_has_no_score(objects: str, content: str) -> None:
    with pytest.raises(ValueError, match="not"):
        BY_OBJECTS[objects].scores[0](content)
