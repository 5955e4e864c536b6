"""Texts side by side, as HTML."""

from prefmh_web.objects.texts.presenter import Texts


def test_a_text_keeps_its_lines_and_its_marks():
    left, right = Texts().options('One <b>\r\ntwo & "three"', "One <b>\r\nsix\nseven")
    common = '<span class="common">One &lt;b&gt;<br></span>'
    assert left["html"] == f'{common}<span class="changed">two &amp; &quot;three&quot;</span>'
    assert right["html"] == f'{common}<span class="changed">six<br>seven</span>'


def test_words_that_both_texts_have_later_on_are_not_marked_as_changed():
    left, right = Texts().options("the red fox sleeps", "the blue fox sleeps")
    assert left["html"] == (
        '<span class="common">the </span><span class="changed">red </span><span class="same">fox sleeps</span>'
    )
    assert '<span class="changed">blue </span>' in right["html"]
