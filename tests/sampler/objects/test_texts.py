"""Reading texts from CSV and comparing them."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sampler import OBJECT_KINDS, Catalog, CatalogError, Item
from sampler.objects.writing import TextDescription, compare_texts, describe_text
from tests.support.uploads import archive, read
from tests.support.uploads import spreadsheet as table


def texts(data):
    return [item.content for item in read("texts", data).items]


def refusals(data):
    return {refusal.source: refusal.reason for refusal in read("texts", data).refusals}


def neighbours(contents, count):
    return OBJECT_KINDS["texts"].neighbours([Item("", content) for content in contents], count)


@pytest.mark.parametrize(
    "data",
    [
        b"text\none\ntwo\n", b"text\r\none\r\ntwo\r\n", b"\xef\xbb\xbftext\none\ntwo", b"text;weight\none;1\ntwo;2\n",
        b"weight\ttext\n1\tone\n2\ttwo\n", b" Text , Weight\n one ,1\ntwo  ,2\n",
        b'id,"text",note\n1,"one",a\n2,two\n', b"text,note\n\n,\none,\n , \ntwo,\n\n",
        b"sep=;\r\ntext;note\r\none;a, b, c\r\ntwo;\r\n", b'\xef\xbb\xbf"sep=\t"\ntext\tnote\none\t\ntwo\t\n',
        b'"a; b; c",text\nx,one\ny,two\n',
    ],
    ids=[
        "plain", "crlf", "bom", "semicolons", "tabs", "spaces and capitals", "more columns", "empty rows",
        "as Excel says", "as Excel says in quotes", "another separator in a header",
    ],
)  # fmt: skip
def test_the_usual_ways_to_save_a_csv_are_read(data):
    reading = read("texts", data)
    assert [item.content for item in reading.items] == ["one", "two"]
    assert reading.refusals == ()


def test_rows_are_numbered_as_a_spreadsheet_shows_them():
    rows = [["text", "weight"], ["a poem\nof three\nlines", 1], [], ["", 2], ["b", 0], ["c", 1]]
    assert set(refusals(table(rows))) == {"row 4", "row 5"}
    assert [item.source for item in read("texts", table(rows)).items] == ["row 2", "row 6"]


@pytest.mark.parametrize("weight", ["0", "-1", "nan", "inf", "heavy", "1,500"])
def test_a_bad_weight_is_refused_with_its_row(weight):
    rows = [["text", "weight"], ["a", 1], ["b", weight], ["c", 3]]
    assert refusals(table(rows)) == {"row 3": f"the weight “{weight}” is not a positive number"}
    assert texts(table(rows)) == ["a", "c"]


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_a_decimal_comma_is_read(delimiter):
    rows = [["text", "weight"], ["a, b", "0,5"], ["c", " 12,25 "], ["d", "5,00E-04"], ["e", "1.5"], ["f", 2]]
    assert [item.weight for item in read("texts", table(rows, delimiter)).items] == [0.5, 12.25, 0.0005, 1.5, 2.0]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"text\na\nOh, well, yes\nb\n", "the row has 3 cells, the first row names 1"),
        (b"text,,\na\nOh, well, yes\nb,\n", "the row has 3 cells, the first row names 1"),
        (b"text,weight\na,1\nOh, well,1\nb,2,,\n", "the row has 3 cells, the first row names 2"),
        (b"text;weight\na;1\nOh; well;1\nb;2;;\n", "put a cell that holds “;” in quotes"),
        (b"text\tweight\na\t1\nOh\twell\t1\nb\t2\n", "put a cell that holds a tab in quotes"),
    ],
    ids=["one column", "padded by a spreadsheet", "two columns", "semicolons", "tabs"],
)
def test_a_row_with_more_cells_than_columns_is_refused_and_the_others_are_kept(data, reason):
    assert texts(data) == ["a", "b"]
    (found,) = refusals(data).items()
    assert found[0] == "row 3"
    assert reason in found[1]


def test_an_empty_an_endless_and_a_binary_text_are_refused_with_their_rows():
    rows = [
        ["text", "weight"], ["a", 1], [" ", 1], ["x" * 20_001, 1], ["N\x00L", 1], ["b", 1], ["\u2060\u3164\ufe0f", 1],
    ]  # fmt: skip
    told = {
        "row 3": "empty",
        "row 4": "20,001 characters",
        "row 5": "NUL",
        "row 7": "only characters that show nothing",
    }
    reasons = refusals(table(rows))
    assert reasons.keys() == told.keys()
    assert all(told[row] in reason for row, reason in reasons.items()), reasons


SHOWN_ALIKE = [
    ("caf\u00e9", "cafe\u0301", "cafe\u0301\u200b"),
    ("two\nlines", "two\r\nlines", "two\rlines", "\ufefftwo\nlines\n \n"),
    ("a b", "a b\u200b", "\u200b \ufeffa b", "  a b\ufeff \u2060"),
    ("a  b", "a \u200b b", "a \u2060\ufeff b"),
]
DIFFERENT = ["a\u200bb", "a\u200c b", "a \u200d b", "a\ufe0f", "\u200ea", "a\tb", "a  b", " a\nb", "a\nb", "ab"]


def test_texts_that_look_the_same_are_one_and_others_are_not():
    """Joiners between letters, those that shape them, selectors and marks of direction change what is seen."""
    for same in SHOWN_ALIKE:
        reading = read("texts", table([["text", "weight"], *([text, 2] for text in same), ["else", 1]]))
        assert [item.content.encode() for item in reading.items] == [same[0].encode(), b"else"]
        assert reading.items[0].weight == 2 * len(same)
        assert [each.reason for each in reading.refusals] == ["repeats row 2; their weights were added"] * (
            len(same) - 1
        )
    assert texts(table([["text"], *([text] for text in DIFFERENT)])) == DIFFERENT


NO_CATALOG = {
    "empty": (b"", "It has nothing"), "no column": (b"Sentence,weight\na,1\n", "It has “Sentence”, “weight”"),
    "latin-1": ("text\ncafé\nbar\n".encode("latin-1"), "not UTF-8"),
    "utf-16": ("text\na\nb\n".encode("utf-16"), "not UTF-8"), "header only": (b"text\n", "at least two"),
    "one text": (b"text\na\na\n", "the file gave 1"),
    "all refused": (b"text,weight\na,0\nb,-1\n", "row 2: the weight"),
    "joined to infinity": (b"text,weight\na,1e308\na,1e308\nb,1\n", "too large to be added"),
    "infinite together": (b"text,weight\na,1e308\nb,1e308\n", "too large to be added"),
    "too far apart": (b"text,weight\na,1e-300\nb,1e300\n", "too far apart"),
    "endless cell": (b"text\na\n" + b"x" * 200_000 + b"\n", "Row 3 .line 3.* more than 131,072 characters"),
    "a workbook": (
        archive({"xl/workbook.xml": b"<workbook/>"}),
        "looks like an Excel workbook or a ZIP.*Save it as “CSV UTF-8”",
    ),
    "text twice": (b"text,Text\na,b\n", "names the column “text” twice"),
    "weight twice": (b"text,weight,weight\na,1,1\n", "names the column “weight” twice"),
    "another twice": (b"text,source,SOURCE \na,1,1\n", "names the column “source” twice"),
    "a long name": (
        table([["text", "x" * 101], ["a", 1]]), "The name of the column “x{40}” has 101 characters; at most 100",
    ),
    "too many columns": (table([["text", *(f"c{n}" for n in range(51))]]), "names 51 further columns; at most 50"),
    "a long cell": (
        table([["text", "notes"], ["a", ""], ["b", "x" * 20_001]]),
        "Row 3: the cell of “notes” has 20,001 characters; at most 20,000 are kept.",
    ),
    "a cell that cannot be stored": (
        b"text,notes\na,\nb,a\x00b\n", r"Row 3: the cell of “notes” holds a NUL character \(U\+0000\); remove it",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("data", "reason"), NO_CATALOG.values(), ids=NO_CATALOG)
def test_a_file_that_gives_no_catalog_says_what_to_change(data, reason):
    with pytest.raises(CatalogError, match=reason):
        read("texts", data)


LINES = "".join(f"line {number}\n" for number in range(1200))


OPEN_QUOTATIONS = {
    "to the end": ('text\none\n"two\nthree\nfour\n', "Row 3 .line 3 "),
    "no line end": ('text\none\n"two', "Row 3 .line 3 "),
    "header": ('"text\none\ntwo\n', "Row 1 .line 1 "),
    # A mark further down closes it, and all between has become one cell.
    "up to the next": ('text,weight\none,1\n"two,2\nthree,3\n"four",4\n', "Row 3 .line 3 "),
    "after a poem": ('text\n"a poem\nof lines"\n"two\nthree\n', "Row 3 .line 4 "),
    "closed late": (f'text\none\n"two\n{LINES}three"\nfour\n', "row 3 runs over 1,202 lines"),
    "endless": (f'text\none\n"two\n{LINES * 20}', "Row 3 .line 3 "),
    "closed early": ('text\none\n"two" or three\n', "Row 3 .line 3 "),
}


@pytest.mark.parametrize(("data", "where"), OPEN_QUOTATIONS.values(), ids=OPEN_QUOTATIONS)
def test_a_quotation_mark_that_swallows_rows_is_refused_where_it_opens(data, where):
    with pytest.raises(CatalogError, match=where) as refusal:
        read("texts", data.encode())
    assert "needs one at its end" in str(refusal.value)
    assert "written twice" in str(refusal.value)


def test_more_objects_than_a_catalog_holds_are_refused_as_a_whole():
    rows = [["text"], *([f"text {number}"] for number in range(20_001))]
    assert len(texts(table(rows[:-1]))) == 20_000
    with pytest.raises(CatalogError, match="more than 20,000"):
        read("texts", table(rows))


def test_texts_about_the_same_thing_are_neighbours():
    sea = ["the ship sails the stormy sea", "a stormy sea and a ship", "the sea took the ship"]
    kitchen = ["bake the bread in butter", "butter on warm bread", "warm bread and butter bake"]
    for item, row in enumerate(neighbours(sea + kitchen, 1)):
        assert all((other < 3) == (item < 3) for other in row)


@pytest.mark.parametrize(
    "contents",
    [["a b c", "c b a", "b a c"], ["A", "a"], ["!", "?", "\N{SNOWMAN}"], ["読む", "書く", "話す"]],
    ids=["the same words", "the same word", "no words", "another script"],
)
def test_texts_with_little_to_compare_still_get_neighbours(contents):
    graph = neighbours(contents, 1)
    Catalog(np.ones(len(contents)), graph)
    assert all(graph)


# What is measured of a text, and where two texts differ.


def kinds(pieces):
    return [(piece.text, piece.kind) for piece in pieces]


def test_a_text_is_measured():
    found = describe_text("The cat sat. “Who is it?” she asked. The cat ran.")
    # 11 words, 9 of them different, of one syllable each, in 3 sentences: 206.835 - 1.015 · 11/3 - 84.6 = 118.51.
    assert found == TextDescription(
        words=11, sentences=3, readability=118.51, dialogue=round(12 / 49, 4), type_token_ratio=0.8182
    )


@pytest.mark.parametrize(
    ("text", "words", "sentences"),
    [
        ("He came. He saw", 4, 2), ("Don’t go — it’s well-known!", 4, 1), ("“Is it late?” she said.", 5, 1),
        ("“It is late!” She left.", 5, 2), ("Wait… what? No.", 3, 2),
        ("Über den Wolken. Dort oben ist es still.", 8, 2), ("今日は。明日も。", 2, 2), ("Кто там? Никого.", 3, 2),
    ],
)  # fmt: skip
def test_words_and_sentences_are_counted(text, words, sentences):
    found = describe_text(text)
    assert (found.words, found.sentences) == (words, sentences)


def test_common_beginning_same_and_changed_words():
    one, other = compare_texts("It was late when she came home.", "It was late when he at last came home.")
    assert kinds(one) == [("It was late when ", "common"), ("she ", "changed"), ("came home.", "same")]
    assert kinds(other) == [("It was late when ", "common"), ("he at last ", "changed"), ("came home.", "same")]


words = st.lists(st.sampled_from(["a", "b", "the", "end.", "“Oh!”", " ", "\n"]), max_size=30).map(" ".join)


@given(st.one_of(words, st.text(max_size=60)), st.one_of(words, st.text(max_size=60)))
def test_pieces_make_up_the_texts_and_sides_can_be_swapped(one, other):
    left, right = compare_texts(one, other)
    assert ("".join(piece.text for piece in left), "".join(piece.text for piece in right)) == (one, other)
    assert compare_texts(other, one) == (right, left)
    for pieces in (left, right):
        assert all(before.kind != after.kind for before, after in itertools.pairwise(pieces))
    assert [p.text for p in left if p.kind == "common"] == [p.text for p in right if p.kind == "common"]
    same = [[word for p in pieces if p.kind == "same" for word in p.text.split()] for pieces in (left, right)]
    assert same[0] == same[1]


@given(st.text())
def test_any_text_can_be_described(text):
    found = describe_text(text)
    assert 0 <= found.dialogue <= 1
    assert 0 <= found.type_token_ratio <= 1
    assert (found.sentences > 0) == (found.words > 0)


@pytest.mark.parametrize("words", [("x y " * 20_000, "y x " * 20_000), ("x x y " * 330, "y y x " * 330)])
def test_texts_that_take_too_long_to_match_are_still_cut_at_the_common_beginning(words):
    """The second pair, of a thousand words each, took seconds: each word is found again in hundreds of places."""
    left, right = compare_texts(*(f"same {rest}" for rest in words))
    assert [piece.kind for piece in left] == [piece.kind for piece in right] == ["common", "changed"]
