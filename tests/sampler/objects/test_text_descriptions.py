"""What is measured of a text, and where two texts differ."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sampler.objects.writing import TextDescription, compare_texts, describe_text


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
