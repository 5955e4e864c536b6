"""Each kind of object, and each kind of space, brings a picture of itself to the page of a setup."""

import pytest
from django.template.loader import render_to_string
from django.test import RequestFactory

from prefmh_web.console.forms.setup_form import SAMPLES
from prefmh_web.console.unstored import read, sample
from prefmh_web.objects import OBJECT_KINDS, media
from prefmh_web.objects.kind import Look

SMALL = RequestFactory().get("/?small")


@pytest.mark.parametrize("kind", OBJECT_KINDS.values(), ids=OBJECT_KINDS)
def test_a_kind_has_two_samples_that_can_be_told_apart(kind):
    first, second = kind.samples
    assert first.content != second.content
    assert not first.picture
    assert not second.picture
    for number, stored in enumerate(kind.samples):
        address = sample(kind.name, number).address
        shown = render_to_string(f"objects/{kind.name}/thumbnail.html", {"state": stored, "address": address})
        if kind.media(stored, Look()) is None:
            # A kind without a picture is shown by its words.
            assert stored.content.split()[0].strip("#*") in shown
        else:
            assert address in shown
            assert media.response(SMALL, kind, stored).content
    if kind.media(first, Look()) is not None:
        assert kind.media(first, Look()).body != kind.media(second, Look()).body


@pytest.mark.parametrize("samples", SAMPLES.values(), ids=SAMPLES)
def test_a_space_has_a_picture_for_its_card(samples):
    assert samples
    for each in samples:
        kind = OBJECT_KINDS[each.kind]
        if kind.media(each.stored, Look()) is None:
            assert each.content
        else:
            signed = each.address.rstrip("/").rpartition("/")[2]
            assert media.response(SMALL, kind, read(signed).stored).content
