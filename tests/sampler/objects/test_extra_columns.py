"""Further columns of a list: kept by name with each object, within bounds that are told with row and column."""

import io

import pytest

from sampler import CatalogError, extra_columns_of
from sampler.objects.tables import MAX_CELL_CHARACTERS, MAX_COLUMNS
from tests.support import campaigns


def test_further_columns_stay_with_their_object():
    table = [
        ["Prompt", "text", "weight", "quality"], ["  a sea poem ", "Waves.", "2", "0.7"], ["a wood", "Trees.", "1"],
    ]  # fmt: skip
    reading = campaigns.read("texts", campaigns.spreadsheet(table))
    assert reading.extra_columns == ("prompt", "quality")
    assert [dict(item.extra) for item in reading.items] == [
        {"prompt": "a sea poem", "quality": "0.7"},
        {"prompt": "a wood", "quality": ""},
    ]


@pytest.mark.parametrize("weights", [("1", "2"), ()])
def test_those_of_images_stand_in_their_table_with_weights_or_without(weights):
    pictures = {"a.png": campaigns.picture("red"), "b.png": campaigns.picture("blue")}
    columns = [("file", "a.png", "b.png"), ("prompt", "a fire", "a lake"), *([("weight", *weights)] if weights else [])]
    table = campaigns.spreadsheet(list(zip(*columns, strict=True)))
    found = [
        (item.weight, item.extra["prompt"])
        for item in campaigns.read("images", campaigns.archive(pictures | {"weights.csv": table})).items
    ]
    assert found == [(1, "a fire"), (2 if weights else 1, "a lake")]


@pytest.mark.parametrize(
    ("header", "told"),
    [
        (["text", "Text"], "names the column “text” twice"),
        (["text", "weight", "weight"], "names the column “weight” twice"),
        (["text", "source", "SOURCE "], "names the column “source” twice"),
        (["text", "x" * 101], "The name of the column “x{40}” has 101 characters; at most 100"),
        (["text", *(f"c{n}" for n in range(MAX_COLUMNS + 1))], "names 51 further columns; at most 50"),
    ],
    ids=["the objects", "the weight", "another", "a long name", "too many"],
)
def test_a_header_that_cannot_be_kept_is_refused(header, told):
    with pytest.raises(CatalogError, match=told):
        campaigns.read("texts", campaigns.spreadsheet([header, ["one", "1", "1"], ["two", "1", "1"]]))


@pytest.mark.parametrize(
    ("cell", "told"),
    [
        ("x" * (MAX_CELL_CHARACTERS + 1), "Row 3: the cell of “notes” has 20,001 characters; at most 20,000 are kept."),
        ("a\x00b", r"Row 3: the cell of “notes” holds a NUL character \(U\+0000\); remove it"),
    ],
    ids=["too long", "unstorable"],
)
def test_a_cell_that_cannot_be_kept_is_named_and_no_object_is_lost_for_it(cell, told):
    with pytest.raises(CatalogError, match=told):
        campaigns.read(
            "texts", campaigns.spreadsheet([["text", "notes"], ["one", "fine"], ["two", cell], ["three", ""]])
        )


def test_further_cells_count_among_the_characters_of_a_catalog():
    rows = b"".join(b"%d,%s\n" % (number, b"x" * 15_000) for number in range(4_000))
    with pytest.raises(CatalogError, match=r"50,000,000 characters in all, at row 33\d\d. Remove columns"):
        campaigns.read("texts", b"text,notes\n" + rows)


def test_rows_that_disagree_on_one_object_are_refused_and_name_each_other():
    table = [["text", "prompt"], ["one", "a"], ["two", "b"], ["one", "c"], ["two", "b"], ["one", "a"], ["three", ""]]
    reading = campaigns.read("texts", campaigns.spreadsheet(table))
    assert [item.content for item in reading.items] == ["two", "three"]
    why = "row 2 and row 4 are the same object and differ in “prompt”; make them equal, or remove one of them"
    assert [(refusal.source, refusal.reason) for refusal in reading.refusals] == [
        ("row 2", why), ("row 4", why), ("row 5", "repeats row 3; their weights were added"), ("row 6", why),
    ]  # fmt: skip


def test_the_names_are_known_from_the_first_row_alone():
    file = io.BytesIO(b"text;Prompt;weight\nrow without end")
    assert extra_columns_of(file, "text") == ("prompt",)
    with pytest.raises(CatalogError, match="must name the columns"):
        extra_columns_of(io.BytesIO(b"words\none\n"), "text")
