"""Texts side by side, as HTML."""

from prefmh_web.objects.kind import StoredObject
from prefmh_web.objects.texts.presenter import Texts


def test_a_text_keeps_its_lines_and_its_marks():
    left, right = Texts().options('One <b>\r\ntwo & "three"', "One <b>\r\nsix\nseven")
    common = '<span class="common">One &lt;b&gt;<br></span>'
    assert left["html"] == f'{common}<span class="changed">two &amp; &quot;three&quot;</span>'
    assert right["html"] == f'{common}<span class="changed">six<br>seven</span>'


def test_one_word_is_no_plural():
    assert [Texts().line(StoredObject(each))[:7] for each in ("Sea", "The sea")] == ["1 word ", "2 words"]
