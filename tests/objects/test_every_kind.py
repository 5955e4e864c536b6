"""What every kind of object offers, checked over the registry."""

import re
import zipfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from django.http import Http404
from django.template.loader import render_to_string
from django.test import RequestFactory
from PIL import Image

import sampler
from prefmh_web.campaigns.engine import leases
from prefmh_web.campaigns.models import Lease, Side
from prefmh_web.console.forms.setup_form import SAMPLES
from prefmh_web.console.preview import read, sample
from prefmh_web.objects import OBJECT_KINDS, StoredObject, media
from prefmh_web.objects.kind import RenderOptions
from sampler.objects import molecules as drawing
from tests.support import campaigns, process, records, uploads


class Noise:
    """Makes an image of noise, the same for the same seed."""

    def __init__(self, seed: int):
        self.seed = seed

    def __call__(self) -> np.ndarray:
        return np.random.default_rng(self.seed).integers(0, 256, (64, 64, 3), dtype=np.uint8)


# Two objects of each kind.
EXAMPLES = {
    "texts": (StoredObject("It was a dark night."), StoredObject("It was a cold <b>night</b>.")),
    "markdown": (StoredObject("It was a *dark* night."), StoredObject("# Night\n\nIt was <b>cold</b>.")),
    "molecules": (StoredObject("CCO"), StoredObject("c1ccccc1")),
    "images": (StoredObject("one", pixels=Noise(1)), StoredObject("two", pixels=Noise(2))),
    "audio": OBJECT_KINDS["audio"].samples,
}
every_kind = pytest.mark.parametrize("kind", OBJECT_KINDS.values(), ids=OBJECT_KINDS)


def test_the_kinds_that_configs_name_have_a_presenter_and_no_others():
    assert OBJECT_KINDS.keys() == sampler.OBJECT_KINDS.keys() == EXAMPLES.keys()


@every_kind
def test_both_templates_show_each_object_escaped(kind):
    left, right = EXAMPLES[kind.name]
    for shown, option in zip((left, right), kind.options(left.content, right.content), strict=True):
        chosen = render_to_string(f"objects/{kind.name}/option.html", {"option": option, "address": "/here/"})
        small = render_to_string(f"objects/{kind.name}/thumbnail.html", {"state": shown, "address": "/here/"})
        has_picture = kind.media(shown, RenderOptions()) is not None
        assert ("/here/" in chosen) == ("/here/" in small) == has_picture
        assert "<b>" not in chosen + small


@every_kind
@pytest.mark.parametrize("sees_pictures", [True, False])
def test_a_model_gets_words_or_a_picture_that_it_can_see(kind, sees_pictures):
    for shown in EXAMPLES[kind.name]:
        if kind.medium == "sound":
            with pytest.raises(ValueError, match="hears no recordings"):
                kind.shown_object(shown, sees_pictures)
            continue
        shown_object = kind.shown_object(shown, sees_pictures)
        assert shown_object.text or shown_object.picture
        assert (kind.medium == "picture") == (not shown_object.text)
        if shown_object.picture:
            assert sees_pictures or kind.medium == "picture"
            assert shown_object.picture.media_type == "image/png"


@every_kind
def test_what_is_measured_is_named_alike_and_stands_in_one_line(kind):
    first, second = (kind.measures(shown) for shown in EXAMPLES[kind.name])
    assert list(first) == list(second)
    line = kind.line(EXAMPLES[kind.name][0])
    assert line
    assert "\n" not in line


@every_kind
@pytest.mark.parametrize("query", ["", "?small", "?dark", "?marked&dark"])
def test_a_browser_gets_the_file_or_that_there_is_none(kind, query):
    shown, other = EXAMPLES[kind.name]
    request = RequestFactory().get(f"/{query}")
    if kind.media(shown, RenderOptions()) is None:
        with pytest.raises(Http404):
            media.response(request, kind, shown, other)
        return
    answer = media.response(request, kind, shown, other)
    assert answer["Content-Type"].startswith("audio/" if kind.medium == "sound" else "image/")
    assert answer.content


def test_an_uploaded_image_is_sent_as_it_is_and_a_models_is_made_smaller():
    kind = OBJECT_KINDS["images"]
    media.store("pictures/test-every-kind.png", body := sampler.png(Noise(3)()))
    uploaded = StoredObject("an image", picture="pictures/test-every-kind.png", media_type="image/png")
    assert kind.media(uploaded, RenderOptions(small=True)).body == body
    assert kind.media(replace(uploaded, is_rendered=True), RenderOptions(small=True)).media_type == "image/webp"
    assert kind.media(replace(uploaded, is_rendered=True), RenderOptions()).body == body


def test_a_lost_file_is_no_page_and_says_so_in_the_line():
    for name, told in {"images": "its picture cannot be read", "audio": "its recording cannot be read"}.items():
        kind, lost = OBJECT_KINDS[name], StoredObject("an object", picture="pictures/lost.png", media_type="image/png")
        assert kind.line(lost) == told
        with pytest.raises(Http404):
            media.response(RequestFactory().get("/"), kind, lost)


def test_all_drawings_of_a_pair_of_molecules_come_of_one_computation():
    kind, pair = OBJECT_KINDS["molecules"], (StoredObject("CCCNc1ccccc1"), StoredObject("CCCOc1ccncc1"))
    before = drawing._laid_out.cache_info().misses
    looks = [
        (*each, RenderOptions(dark=dark, marked=marked))
        for each in (pair, pair[::-1])
        for dark in (0, 1)
        for marked in (0, 1)
    ]
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda asked: kind.media(asked[0], asked[2], asked[1]), looks * 4))
    assert drawing._laid_out.cache_info().misses == before + 1


def part_of(asked: str | None, method: str = "GET"):
    headers, kind = {} if asked is None else {"Range": asked}, OBJECT_KINDS["audio"]
    return media.response(RequestFactory().generic(method, "/", headers=headers), kind, kind.samples[0])


ALL, NONE = slice(None), slice(0)


@pytest.mark.parametrize(
    ("asked", "status", "part"),
    [
        ("bytes=0-", 206, ALL), ("bytes=0-1", 206, slice(0, 2)), ("bytes=100-199", 206, slice(100, 200)),
        ("bytes=100-999999999", 206, slice(100, None)), ("bytes=-50", 206, slice(-50, None)),
        ("bytes=-999999999", 206, ALL),
        # No single part is asked for.
        *((asked, 200, ALL) for asked in ("", "bytes=-", "bytes=9-2", "bytes=0-1,5-9", "lines=0-4", "bytes=x-y")),
        # It lies beyond the end.
        ("bytes=999999999-", 416, NONE), ("bytes=-0", 416, NONE),
    ],
)  # fmt: skip
def test_a_player_gets_the_part_that_it_asks_for(asked, status, part):
    """Without this, Safari plays nothing, and no browser winds on."""
    whole, answer = part_of(None).content, part_of(asked)
    assert whole
    assert (answer.status_code, answer.content) == (status, whole[part])
    first = range(len(whole))[part].start
    ranges = {206: f"bytes {first}-{first + len(answer.content) - 1}/{len(whole)}", 416: f"bytes */{len(whole)}"}
    assert answer.get("Content-Range") == ranges.get(status)
    assert (answer["Content-Type"], answer["Accept-Ranges"]) == ("audio/wav", "bytes")


@pytest.mark.parametrize("asked", ["bytes=0-1", "bytes=999999999-"])
def test_who_asks_by_head_is_told_of_the_whole_file(asked):
    answer = part_of(asked, "HEAD")
    assert (answer.status_code, answer.get("Content-Range")) == (200, None)
    assert len(answer.content) == len(part_of(None).content)


# What a file, a page or an export could change on its way.
WRITTEN = [
    "=1+1", "'quoted\tand  spaced", "    First,\r\n\tsecond,\rthird", "cafe\u0301 \u05d0\u200f!", "a\u200c b <br>",
]  # fmt: skip
STEREO = ["C/C=C/C", "C/C=C\\C", "CC=CC", "C[C@H](F)Cl", "C[C@@H](F)Cl", "[Na+].[Cl-]"]
MODES = [Image.fromarray(Noise(index)()).convert("RGBA").rotate(9 * index) for index in range(1, 5)]
SOUNDS = {220: "WAV", 440: "MP3", 880: "OGG"}
ODD = {
    "texts": uploads.spreadsheet([["text"], *([text] for text in WRITTEN)]),
    "markdown": uploads.spreadsheet([["text"], *([text] for text in WRITTEN)]),
    "molecules": uploads.spreadsheet([["smiles"], *([smiles] for smiles in STEREO)]),
    "images": uploads.archive(
        {mode: uploads.saved(each.convert(mode)) for each, mode in zip(MODES, ("RGBA", "LA", "RGB", "P"), strict=True)}
    ),
    "audio": uploads.archive({kind: uploads.recording(hertz, kind) for hertz, kind in SOUNDS.items()}),
}
ADDRESS = re.compile(r'(?:src|srcset)="(/[^"]*/(?:first|second)/[^"]*)"')


@every_kind
def test_what_is_exported_drawn_again_is_what_the_voter_saw(kind, researcher, idle_tasks, client, tmp_path):
    space = {"kind": "catalog", "objects": kind.name, "neighbours": 0}
    config = campaigns.make_config(space=space, kernel={"kind": "independent"}, chains=2, steps=9)
    campaign = campaigns.make_campaign(researcher, file=ODD[kind.name], filename="odd", config=config)
    client.post(campaigns.invitation_path(campaign))
    seen = {}
    for _ in range(6):
        page = client.get(f"{campaigns.invitation_path(campaign)}vote/").content.decode()
        lease = Lease.objects.get(ended_at=None)
        found = [client.get(address).content for address in ADDRESS.findall(page)]
        seen[lease.first.index, lease.second.index] = page, found
        leases.answer(lease.key, lease.voter, Side.FIRST, 0)
        process.wait_until_idle()
    path = records.export_to(campaign, tmp_path)
    contents = {int(row["state_index"]): row["content"] for row in sampler.read_record(path)["states"]}
    with zipfile.ZipFile(path) as archive:
        files = {name.split("/")[1].split(".")[0]: archive.read(name) for name in archive.namelist() if "/" in name}
    for indices, (page, found) in seen.items():
        left, right = (contents[index] for index in indices)
        for option in kind.options(left, right):
            assert option.get("html", "") in page
        if kind.name == "molecules":
            drawn = {draw for dark in (True, False) for draw in sampler.draw_pair(left, right, dark=dark)}
            assert {each.decode() for each in found} == drawn
        else:
            assert set(found) == {files[str(index)] for index in indices if files}
        assert bool(found) == (kind.medium != "words" or kind.name == "molecules")


# Each kind of object, and each kind of space, brings a picture of itself to the page of a setup.


SMALL = RequestFactory().get("/?small")


@every_kind
def test_a_kind_has_two_samples_that_can_be_told_apart(kind):
    first, second = kind.samples
    assert first.content != second.content
    assert (first.picture, second.picture) == ("", "")
    for number, stored in enumerate(kind.samples):
        address = sample(kind.name, number).address
        shown = render_to_string(f"objects/{kind.name}/thumbnail.html", {"state": stored, "address": address})
        if kind.media(stored, RenderOptions()) is None:
            # A kind without a picture is shown by its words.
            assert stored.content.split()[0].strip("#*") in shown
        else:
            assert address in shown
            assert media.response(SMALL, kind, stored).content
    if kind.media(first, RenderOptions()) is not None:
        assert kind.media(first, RenderOptions()).body != kind.media(second, RenderOptions()).body


@pytest.mark.parametrize("samples", SAMPLES.values(), ids=SAMPLES)
def test_a_space_has_a_picture_for_its_card(samples):
    assert samples
    for each in samples:
        kind = OBJECT_KINDS[each.kind]
        if kind.media(each.stored, RenderOptions()) is None:
            assert each.content
        else:
            signed = each.address.rstrip("/").rpartition("/")[2]
            assert media.response(SMALL, kind, read(signed).stored).content
