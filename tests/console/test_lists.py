"""A list in the setup's form: pasted or in files, what the answer says of it, and that nothing of a bad one stays."""

import io
import re

import pytest
from django.core.files.storage import default_storage
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse
from PIL import Image

from prefmh_web.campaigns import catalogs
from prefmh_web.campaigns.models import Campaign
from tests.console.test_pages import form
from tests.sampler.objects.test_lists import SHEET

FILE, PASTE = "space.catalog.file", "space.catalog.paste"
OF_IMAGES = {"space.catalog.objects": "images", FILE: ""}


@pytest.fixture(autouse=True)
def nothing_kept():
    for name in catalogs.all_names():
        default_storage.delete(name)


def picture(colour: str) -> SimpleUploadedFile:
    file = io.BytesIO()
    Image.new("RGB", (8, 8), colour).save(file, "PNG")
    return SimpleUploadedFile(f"{colour}.png", file.getvalue())


def reply(client, **changes) -> str:
    answer = client.post(reverse("console:list"), form(**{"name": ""} | changes))
    assert answer.status_code == 200
    return answer.content.decode()


def create(client, **changes):
    return client.post(reverse("console:create"), form(**changes))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({FILE: SimpleUploadedFile("a.xlsx", SHEET[:900])}, "The file is no Excel workbook"),
        ({FILE: SimpleUploadedFile("a.csv", b"one\ntwo\n"), PASTE: "three\nfour"}, "Empty one of them"),
        ({FILE: [SimpleUploadedFile(f"{n}.csv", b"one\ntwo\n") for n in "ab"]}, "Choose one file"),
        (OF_IMAGES | {PASTE: "one\ntwo"}, "cannot be pasted"),
    ],
)
def test_a_broken_list_says_why_and_nothing_of_it_is_saved_or_kept(signed_in, changes, message):
    for files in changes.values():
        for each in files if isinstance(files, list) else [files]:
            if isinstance(each, SimpleUploadedFile):
                each.seek(0)
    answer = create(signed_in, **changes)
    assert message in answer.content.decode()
    # What was typed can be mended.
    assert answer.context["form"][PASTE].value() == changes.get(PASTE, None)
    assert not Campaign.objects.exists()
    assert catalogs.all_names() == []


def choices_in(page: str) -> dict[str, list[str]]:
    """Return what may be chosen of a list, by the fields' names."""
    found = re.findall(r'<select name="space\.catalog\.(\w+)">(.*?)</select>', page)
    return {name: re.findall(r"<option[^>]*>([^<]*)", options) for name, options in found}


def test_a_list_that_was_taken_for_the_wrong_thing_is_put_right_with_the_same_file(signed_in):
    def sent(**chosen) -> str:
        return reply(signed_in, **{FILE: SimpleUploadedFile("a.csv", b"id,sequence\n1,one\n2,two\n")} | chosen)

    assert "no first row says which column" in sent()
    seen = {"space.catalog.seen": "a.csv", "space.catalog.header": "yes"}
    page = sent(**seen)
    assert "must say which column" in page
    assert choices_in(page)["column"] == ["choose one", "id", "sequence"]
    assert "<strong>2</strong> rows, 2 texts." in sent(**seen, **{"space.catalog.column": "sequence"})
    # Of another file nothing was said.
    assert "no first row says which column" in sent(**seen | {"space.catalog.seen": "b.csv"})


def test_several_pictures_need_no_zip(signed_in, idle_tasks):
    page = reply(signed_in, **OF_IMAGES | {FILE: [picture("red"), picture("blue")]})
    assert "<strong>2</strong> files, 2 images." in page
    assert page.count("data:image/png;base64,") == 2
    (kept,) = catalogs.all_names()
    ticket = re.search(r'name="kept-space\.catalog\.file" value="([^"]+)"', page)[1]
    create(signed_in, **OF_IMAGES | {"kept-space.catalog.file": ticket})
    idle_tasks()
    found = Campaign.objects.get().states.order_by("place").values_list("content", flat=True)
    assert list(found) == ["blue.png", "red.png"]
    assert not default_storage.exists(kept)
