"""Uploads and texts meant to harm: bombs, lies about sizes, script, formulas.

Characters that no database keeps, in every place of an upload: the row and the column are named, the rest is read.

On PostgreSQL, which refuses a whole statement for one NUL, these tests say more than on SQLite:

    python -m tests.support.servers tests/security/test_hostile_uploads.py

No measure takes for ever.

Objects that few measures can be taken of: pages and tables show what is known of them, and leave the rest empty.
"""

import contextlib
import csv
import io
import os
import random
import socket
import struct
import subprocess
import sys
import zipfile
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import numpy as np
import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from PIL import Image

from prefmh_web.campaigns.models import Campaign, Catalog
from prefmh_web.campaigns.record import export, rows
from prefmh_web.campaigns.record.rows import Snapshot
from sampler import OBJECT_KINDS, CatalogError, read_record
from sampler.objects.items import MAX_CATALOG_ITEMS
from tests.console.test_pages import form
from tests.security.world import browser_of
from tests.support import uploads
from tests.support.campaigns import OF_PICTURES, PICTURES, create_draft, invitation_path, make_campaign, make_config
from tests.support.installations import wait_for
from tests.support.process import wait_until_idle
from tests.support.records import assert_replay_passes, export_to

GOOD = uploads.picture("red")


def lying_archive() -> bytes:
    """Return a ZIP whose directory says that a file of 40 MiB has 100 bytes."""
    data = bytearray(uploads.archive({"a.png": bytes(40 * 2**20)}))
    at = data.rindex(b"PK\x01\x02")
    data[at + 24 : at + 28] = struct.pack("<I", 100)
    return bytes(data)


def nested() -> bytes:
    inner = uploads.archive({f"{n}.png": bytes(2**20) for n in range(4)})
    return uploads.archive({f"{n}.zip": inner for n in range(4)})


BOMBS = {
    "claims a billion pixels": lambda: uploads.archive({"a.png": uploads.png_that_claims(40_000, 40_000)}),
    "claims more than an int": lambda: uploads.archive({"a.png": uploads.png_that_claims(2**31 - 1, 2**31 - 1)}),
    "a thousandfold pixels": lambda: uploads.archive({"a.png": uploads.png_that_claims(8, 6, 40 * 2**20)}),
    "a huge entry": lambda: uploads.archive({"a.png": bytes(40 * 2**20)}),
    "lies about its size": lying_archive,
    "nested archives": nested,
    "too many files": lambda: uploads.archive({f"{number}.png": b"" for number in range(MAX_CATALOG_ITEMS + 1)}),
    "no archive": lambda: b"PK\x03\x04" + bytes(100),
    "empty": lambda: b"",
    "half an archive": lambda: uploads.archive({"a.png": GOOD})[:-30],
    "no picture": lambda: uploads.archive({"a.png": b"<svg onload='alert(1)'/>"}),
    "an SVG": lambda: uploads.archive(
        {"a.svg": b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>"}
    ),
    "paths upwards": lambda: uploads.archive({"../../../../secret-key": b"x", "/etc/passwd": b"y"}),
}


SCRIPT = "<script>alert(1)</script><img src=x onerror=alert(2)>'\"&{{7*7}}{% debug %}"
MARKS = ("<script>alert", "<img src=x", "49{%")


def uploaded(owner, kind: str, content: bytes) -> Campaign:
    """Return a draft whose file has been read, and whose page shows nothing that could not be kept."""
    config = make_config(space={"kind": "catalog", "objects": kind, "neighbours": 1})
    file = SimpleUploadedFile("a.csv", content)
    draft = create_draft(owner=owner, file=file, filename="a.csv", name="A", config=config)
    wait_until_idle()
    draft.catalog.refresh_from_db()
    page = browser_of(owner).get(draft.get_absolute_url())
    assert page.status_code == 200
    assert not [mark for mark in ("\x00", *MARKS, "<svg/onload") if mark in page.content.decode()]
    return draft


@pytest.mark.parametrize("objects", ["images", "audio"])
@pytest.mark.parametrize("bomb", BOMBS)
def test_an_archive_meant_to_harm_is_refused_with_a_reason(researcher, idle_tasks, tmp_path, bomb, objects):
    draft = uploaded(researcher, objects, BOMBS[bomb]())
    assert draft.catalog.status == Catalog.Status.REFUSED
    assert draft.catalog.error
    assert not draft.states.exists()
    # What lies on the disk is the upload itself.
    assert [path.parent.name for path in tmp_path.rglob("*") if path.is_file()] in (["uploads"], [])


def test_a_good_picture_beside_a_bomb_is_read(researcher, idle_tasks):
    """The negative control: what is refused above is refused for what is wrong with it."""
    files = {"a.png": GOOD, "b.png": uploads.picture("blue"), "c.png": uploads.png_that_claims(40_000, 40_000)}
    draft = uploaded(researcher, "images", uploads.archive(files))
    assert draft.states.count() == 2
    assert [source for source, _ in draft.catalog.refusals] == ["c.png"]


def post_setup(site, browser, size: int) -> int:
    """Send a setup form with a file of this size through the real server, and return the status."""
    cookies = {name: morsel.value for name, morsel in browser.cookies.items()}
    files = {"space.catalog.file": ("t.csv", b"x" * size)}
    return httpx.post(f"{site.url}/campaigns/new/", cookies=cookies, files=files, timeout=60).status_code


def test_a_stranger_uploads_nothing_large(live_site, researcher):
    assert post_setup(live_site, browser_of(None), 3 * 2**20) == 413
    forged = Client()
    forged.cookies["prefmh_session"] = "A" * 32
    assert post_setup(live_site, forged, 3 * 2**20) == 413
    # The negative control: read to its end, and refused for its form's missing token only.
    assert post_setup(live_site, browser_of(researcher), 3 * 2**20) == 403


def test_what_arrives_waits_in_the_folder_of_uploads_and_not_in_memory(live_site, researcher, settings):
    folder, address = settings.FILE_UPLOAD_TEMP_DIR, urlsplit(live_site.url)
    head = f"POST /campaigns/new/ HTTP/1.1\r\nHost: {address.netloc}\r\nContent-Length: {8 * 2**20}\r\n"
    head += f"Cookie: prefmh_session={browser_of(researcher).cookies['prefmh_session'].value}\r\n\r\n"
    assert not open_files_in(folder)
    with socket.create_connection((address.hostname, address.port), timeout=10) as connection:
        connection.sendall(head.encode() + b"x" * 4 * 2**20)
        wait_for(lambda: open_files_in(folder), "the half of the upload lies in the folder")
    wait_for(lambda: not open_files_in(folder), "nothing of it is left once its sender has gone")


def open_files_in(folder: Path) -> list[str]:
    """Return this process's open files there, those without a name included."""
    links = []
    for descriptor in Path("/proc/self/fd").iterdir():
        # Others come and go meanwhile.
        with contextlib.suppress(OSError):
            links.append(os.readlink(descriptor))
    return [link for link in links if link.startswith(f"{folder}/")]


def test_script_in_every_text_comes_back_escaped(researcher, idle_tasks, client):
    texts = f'text\n"{SCRIPT.replace(chr(34), chr(34) * 2)}"\nfine\n=1+1\nalso fine\n'
    judges = [{"question": SCRIPT, "votes": 1}]
    campaign = make_campaign(
        researcher, file=texts, filename=f"{SCRIPT}.csv", name=SCRIPT[:120], instructions=SCRIPT,
        config=make_config(judges=judges, space={"kind": "catalog", "objects": "texts", "neighbours": 1}),
    )  # fmt: skip
    owner = browser_of(researcher)
    pages = [owner.get("/"), owner.get(campaign.get_absolute_url()), client.get(invitation_path(campaign))]
    client.post(invitation_path(campaign))
    pages.append(client.get(f"{invitation_path(campaign)}vote/"))
    for page in pages:
        text = page.content.decode()
        assert not [mark for mark in MARKS if mark in text]
    assert "&lt;script&gt;alert(1)" in pages[1].content.decode()


@pytest.mark.parametrize("address", ["/campaigns/new/", "/campaigns/new/list/"])
@pytest.mark.parametrize("objects", ["", "no such kind"])
def test_a_list_of_objects_of_no_kind_is_refused_at_the_choice(researcher, idle_tasks, address, objects):
    sent = form() | {"space.catalog.objects": objects, "space.catalog.file": SimpleUploadedFile("a.png", GOOD)}
    answer = browser_of(researcher).post(address, sent)
    assert answer.status_code == 200
    assert not Campaign.objects.exists()
    if address == "/campaigns/new/":
        assert answer.context["form"]["space.catalog.objects"].errors


def test_script_in_a_form_that_is_refused_comes_back_escaped(researcher, idle_tasks):
    fields = dict.fromkeys(("name", "instructions", "seed", "steps", "judges.0.question", "space.kind"), SCRIPT)
    page = browser_of(researcher).post("/campaigns/new/", form(**fields))
    assert page.status_code == 200
    assert not [mark for mark in MARKS if mark in page.content.decode()]
    assert not Campaign.objects.exists()


@pytest.mark.parametrize(
    "smiles", [SCRIPT, "C" * 100_000, "C1CC", "[" * 5000, "<svg/onload=alert(1)>", "*" * 50, "$&%"]
)
def test_smiles_meant_to_harm_are_refused_row_by_row(researcher, idle_tasks, smiles):
    draft = uploaded(researcher, "molecules", uploads.spreadsheet([["smiles"], ["CCO"], ["CCN"], [smiles]]))
    assert sorted(draft.states.values_list("content", flat=True)) == ["CCN", "CCO"]


FORMULAS = ["=1+1", "+1", "-1+1", "@SUM(A1)", "=HYPERLINK(1)", "'=1", "\t=1", "\r=1", " =1", "=cmd|' /C calc'!A0"]


def test_no_cell_of_the_export_runs_as_a_formula(researcher, idle_tasks):
    content = uploads.spreadsheet([["text"], *([formula] for formula in FORMULAS)])
    judges = [{"question": "=1+1", "votes": 1}]
    config = make_config(judges=judges, chains=1)
    campaign = make_campaign(researcher, file=content, config=config)
    wait_until_idle()
    for name in export.TABLES:
        rows = list(
            csv.reader(io.StringIO("".join(export.as_csv(export.TABLES[name](Snapshot.now(campaign)))), newline=""))
        )
        shown = [rows[0].index(column) for column in ("content", "question") if column in rows[0]]
        texts = [row[at] for row in rows[1:] for at in shown]
        assert not [text for text in texts if text.strip().startswith(("=", "+", "-", "@"))]


def test_every_other_character_is_kept_as_it_came(researcher, idle_tasks, tmp_path):
    """Controls, line ends of every kind, what is no character, both ends of Unicode: into the record and back."""
    odd = [
        "\x01\x02\x1b[31m", "\x7f\x80\x85\x9fa", "a\x0bb\x0cc", "a\x1c\x1d\x1e\x1fb", "a\u2028b\u2029c",
        "\ufffe\uffff",
    ]  # fmt: skip
    odd += ["\U0010ffff\ue000", "a\rb\r\nc\nd", "\u202eabc", "\u200bb", "\ufeffa", "a\u0300\u0301", "\ufdd0", "x\x1a"]
    kept = [text.strip() for text in odd]
    campaign = make_campaign(researcher, file=uploads.spreadsheet([["text"], *([text] for text in odd)]))
    assert campaign.catalog.refusals == []
    assert list(campaign.states.values_list("content", flat=True)) == kept
    path = export_to(campaign, tmp_path)
    assert [row["content"] for row in read_record(path)["states"]] == kept
    assert_replay_passes(path)


def random_table(rng: random.Random) -> bytes:
    pieces = [
        b'"', b",", b";", b"\t", b"\n", b"\r", b"\r\n", b"\x00", b"text", b"weight", b"smiles", b"\xef\xbb\xbf",
        b"CCO",
    ]  # fmt: skip
    pieces += [
        b"\xff", b"\xed\xa0\x80", b"1e999", b"-1", b"nan", b"'", b"=", b" ", b"\xc2\x85", b"x" * 300, b"\x1a", b"1",
    ]  # fmt: skip
    header = rng.choice([b"text,weight\n", b"text\n", b"smiles;weight\n", b"smiles\n", b""])
    return header + b"".join(rng.choices(pieces, k=rng.randrange(60)))


def random_archive(rng: random.Random) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", rng.choice([0, 8, 12, 14])) as archive:
        for name in ("a.png", "b/c.jpg", "weights.csv", "d.gif"):
            picture = uploads.picture(rng.choice(["red", "blue"]), (rng.randrange(1, 9), rng.randrange(1, 9)))
            archive.writestr(name, b"file,weight\na.png,1\nd.gif,2\n" if name == "weights.csv" else picture)
    content = bytearray(data.getvalue())
    for _ in range(rng.randrange(1, 6)):
        at = rng.randrange(len(content))
        if rng.random() < 0.2:
            content[at : at + 4] = struct.pack("<I", rng.choice([0, 1, 2**31, 2**32 - 1]))
        else:
            content[at] = rng.randrange(256)
    return bytes(content)


@pytest.mark.parametrize("kind", ["texts", "molecules", "images"])
def test_whatever_is_uploaded_is_read_or_refused_in_words(kind):
    """A thousand files of nonsense: no other error, and nothing in what is kept that no database takes."""
    rng = random.Random(20261122)
    for _ in range(1000 if kind != "images" else 400):
        content = random_archive(rng) if kind == "images" else random_table(rng)
        try:
            reading = OBJECT_KINDS[kind].read(io.BytesIO(content), lambda done, total: None)
        except CatalogError as error:
            told = [str(error)]
        else:
            told = [text for refusal in reading.refusals for text in (refusal.source, refusal.reason)]
            told += [item.content for item in reading.items]
        for text in told:
            assert "\x00" not in text
            text.encode()


def test_a_lost_picture_hides_no_campaign(researcher, idle_tasks):
    config = make_config(space=OF_PICTURES)
    campaign = make_campaign(researcher, file=PICTURES, filename="pictures.zip", config=config)
    head = campaign.chains.first().head
    head.picture.storage.delete(head.picture.name)
    browser = browser_of(researcher)
    assert "its picture cannot be read" in browser.get(campaign.get_absolute_url()).content.decode()
    assert browser.get(f"/campaigns/pictures/{head.pk}/").status_code == 404


@pytest.mark.parametrize("text", ["'.' * 400_000 + 'a'", "'.' * 100_000 + chr(34) * 300_000 + 'a'", "'?!' * 200_000"])
def test_a_text_of_marks_is_measured_before_anybody_gives_up(text):
    """Steps in proportion to its square, as there once were, would take half an hour."""
    command = [sys.executable, "-c", f"import sampler; print(sampler.describe_text({text}).words)"]
    try:
        words = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    except subprocess.TimeoutExpired:
        words = "still counting"
    assert words in ("1\n", "0\n")


RNG = np.random.default_rng(20261122)


def noise(width: int, height: int, kind: str = "PNG", **saving) -> bytes:
    pixels = RNG.integers(0, 256, (height, width, 3), dtype=np.uint8)
    return uploads.saved(Image.fromarray(pixels), kind, **saving)


def animated(kind: str) -> bytes:
    frames = [Image.fromarray(RNG.integers(0, 256, (1, 5, 3), dtype=np.uint8)) for _ in range(3)]
    return uploads.saved(frames[0], kind, save_all=True, append_images=frames[1:])


ODD_PICTURES = {
    "one pixel.png": noise(1, 1), "a row.jpg": noise(7, 1, "JPEG"), "a column.webp": noise(1, 7, "WEBP"),
    "a long row.png": noise(9000, 2), "a long column.gif": noise(1, 3000, "GIF"),
    "clear.png": uploads.saved(Image.new("RGBA", (6, 1), (10, 20, 30, 9))),
    "bits.png": uploads.saved(Image.fromarray(RNG.integers(0, 2, (1, 9)).astype(bool))),
    "palette.png": uploads.saved(Image.fromarray(RNG.integers(0, 256, (1, 9, 3), dtype=np.uint8)).quantize(5)),
    "deep.png": uploads.saved(Image.fromarray(RNG.integers(0, 2**16, (1, 9), dtype=np.uint16))),
    "inks.jpg": uploads.saved(Image.new("CMYK", (1, 9), (3, 100, 2, 0)), "JPEG"), "moving.gif": animated("GIF"),
    "moving.png": animated("PNG"), "moving.webp": animated("WEBP"),
    "flat.bmp": uploads.picture("red", (1, 4), "BMP"), "square.png": noise(8, 8),
}  # fmt: skip
MOLECULES = ["[Na+].[Cl-]", "C.C", "[CH3]", "C[CH2]", "[Cu+2]", "CC*", "[2H]O[2H]", "[Si]", "[U]", "CCO"]


def properties_of(campaign) -> dict[str, dict[str, str]]:
    text = "".join(export.as_csv(rows.properties(Snapshot.now(campaign))))
    assert "nan" not in text.lower()
    return {row["content"]: row for row in csv.DictReader(io.StringIO(text, newline=""))}


def page_for(owner, path: str):
    """Return what a browser would be shown; a failure is a page with status 500."""
    browser = browser_of(owner)
    browser.raise_request_exception = False
    return browser.get(path)


def odd_campaign(owner, kind: str, content: bytes, count: int):
    config = make_config(space={"kind": "catalog", "objects": kind, "neighbours": 2}, chains=100)
    campaign = make_campaign(owner, file=content, filename=f"odd.{kind}", config=config)
    wait_until_idle()
    assert [source for source, _ in campaign.catalog.refusals if not source.startswith("moving")] == []
    assert campaign.states.count() == count
    return campaign


def test_pictures_of_any_shape_show_on_the_page_and_in_the_table(researcher, idle_tasks):
    campaign = odd_campaign(researcher, "images", uploads.archive(ODD_PICTURES), len(ODD_PICTURES))
    page = page_for(researcher, campaign.get_absolute_url())
    assert page.status_code == 200
    assert "colourfulness" in page.content.decode()
    found = properties_of(campaign)
    assert found.keys() == ODD_PICTURES.keys()
    assert found["a row.jpg"]["edge_density"] == ""
    assert found["a row.jpg"]["colourfulness"] != ""
    assert found["square.png"]["edge_density"] != ""


def test_salts_radicals_and_dummies_show_on_the_page_and_in_the_table(researcher, idle_tasks):
    campaign = odd_campaign(
        researcher, "molecules", uploads.spreadsheet([["smiles"], *([s] for s in MOLECULES)]), len(MOLECULES)
    )
    page = page_for(researcher, campaign.get_absolute_url())
    assert page.status_code == 200
    found = properties_of(campaign)
    assert float(found["[Cl-].[Na+]"]["weight"]) == pytest.approx(58.44, abs=0.01)
    assert float(found["CCO"]["qed"]) == pytest.approx(0.407, abs=0.002)
