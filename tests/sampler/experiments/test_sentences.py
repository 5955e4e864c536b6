"""Files of sentences: read as they stand, and refused with the line and the column where they are wrong."""

import pytest

from sampler import ExperimentInput, OptionError, own_sentences, read_sentences

HEADER = "direction\tsource\treference\n"
GOOD = f"{HEADER}de-en\tGuten Tag.\tHello.\nen-de\tHello.\tGuten Tag.\n"


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("source\treference\nGuten Tag.\tHello.\n", "line 1, column direction"),
        (f"{HEADER}de-fr\tGuten Tag.\tBonjour.\n", "line 2, column direction of data.tsv must be de-en or en-de"),
        (f"{GOOD}de-en\t\tHello.\n", "line 4, column source of data.tsv must not be empty"),
        (f"{GOOD}de-en\tGuten Tag.\tGood day.\n", "line 4, column source of data.tsv is that of line 2"),
        (f"{GOOD}de-en\tGute Nacht.\t\n", "line 4, column reference of data.tsv must be there for all"),
        (f"{GOOD}de-en\tGute Nacht.\n", "2 cells in line 4"),
        (f"{GOOD}de-en\t{'a' * 3_501}\tb\n", "line 4, column source of data.tsv has 3,501 characters"),
        (f"{HEADER}de-en\tGuten Tag.\tHello.\n", "must hold a sentence of direction en-de"),
        (GOOD.encode() + b"de-en\t\xff\tx\n", "line 4 of data.tsv is not"),
    ],
)
def test_a_wrong_file_is_refused_where_it_is_wrong(content, told):
    with pytest.raises(OptionError) as error:
        read_sentences(content if isinstance(content, bytes) else content.encode(), "data.tsv")
    assert error.value.option == "--data"
    assert told in str(error.value)


def test_a_file_is_read_as_it_stands():
    quoted = '"Ja", sagte er. {source}'
    found = read_sentences(f"\ufeffsource\tdirection\r\n{quoted}\tde-en\r\nYes\ten-de\r\n".encode(), "x.tsv")
    assert found["de-en"] == [ExperimentInput(quoted)]
    assert [len(sentences) for sentences in own_sentences().values()] == [6, 6]
