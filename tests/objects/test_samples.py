"""Each kind of object, and each kind of space, brings a picture of itself to the page of a setup."""

import pytest
from django.template.loader import render_to_string
from django.test import RequestFactory

from prefmh_web.console.forms.setup_form import SAMPLES
from prefmh_web.console.unstored import Sample, read
from prefmh_web.objects import OBJECT_KINDS, media
from prefmh_web.objects.kind import Look

SMALL = RequestFactory().get("/?small")


@pytest.mark.parametrize("kind", OBJECT_KINDS.values(), ids=OBJECT_KINDS)
def test_a_kind_has_two_samples_that_can_be_told_apart(kind):
    first, second = kind.samples
    assert first.content != second.content
    assert not first.picture
    assert not second.picture
    for number, sample in enumerate(kind.samples):
        address = Sample(kind.name, number).address
        shown = render_to_string(f"objects/{kind.name}/thumbnail.html", {"state": sample, "address": address})
        if kind.media(sample, Look()) is None:
            # A kind without a picture is shown by its words.
            assert sample.content.split()[0].strip("#*") in shown
        else:
            assert address in shown
            assert media.response(SMALL, kind, sample).content
    if kind.media(first, Look()) is not None:
        assert kind.media(first, Look()).body != kind.media(second, Look()).body


@pytest.mark.parametrize("samples", SAMPLES.values(), ids=SAMPLES)
def test_a_space_has_a_picture_for_its_card(samples):
    assert samples
    for sample in samples:
        kind = OBJECT_KINDS[sample.kind]
        if kind.media(sample.stored, Look()) is None:
            assert sample.content
        else:
            signed = sample.address.rstrip("/").rpartition("/")[2]
            assert media.response(SMALL, kind, read(signed).stored).content
