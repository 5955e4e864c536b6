"""Characters that no database keeps, in every place of an upload: the row and the column are named, the rest is read.

On PostgreSQL, which refuses a whole statement for one NUL, these tests say more than on SQLite:

    python -m tests.support.servers tests/security/test_unstorable_uploads.py
"""

import io
import random
import struct
import zipfile

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from prefmh_web.campaigns.models import Campaign, Catalog
from sampler import OBJECT_KINDS, CatalogError, read_record
from tests.security.world import browser_of
from tests.support import campaigns
from tests.support.campaigns import (
    assert_replay_passes,
    create_draft,
    export_to,
    make_campaign,
    make_config,
    wait_until_idle,
)


def uploaded(owner, kind: str, content: bytes) -> Campaign:
    config = make_config(space={"kind": "catalog", "objects": kind, "neighbours": 1})
    file = SimpleUploadedFile("a.csv", content)
    draft = create_draft(owner=owner, file=file, filename="a.csv", name="A", config=config)
    wait_until_idle()
    draft.catalog.refresh_from_db()
    page = browser_of(owner).get(draft.get_absolute_url())
    assert page.status_code == 200
    assert "\x00" not in page.content.decode()
    return draft


HEADERS = {
    "the column": (b"te\x00xt,weight\na,1\nb,1\n", "column 1"),
    "the weight": (b"text,wei\x00ght\na,1\nb,1\n", "column 2"),
    "a note": (b"text,weight,\x00\na,1,\nb,1,\n", "column 3"),
    "nothing else": (b"\x00\x00\x00\n", "column 1"),
}


@pytest.mark.parametrize("header", HEADERS)
def test_a_header_that_cannot_be_kept_is_refused_by_its_place(researcher, idle_tasks, header):
    content, place = HEADERS[header]
    draft = uploaded(researcher, "texts", content)
    assert draft.catalog.status == Catalog.Status.REFUSED
    assert f"Row 1, {place}" in draft.catalog.error
    assert "NUL" in draft.catalog.error


@pytest.mark.parametrize(
    ("kind", "table", "where", "column", "kept"),
    [
        ("texts", b"text\none\nt\x00wo\nthree\n", "row 3", "text", 2),
        ("texts", b"text,weight\none,1\ntwo,1\x00\nthree,1\n", "row 3", "weight", 2),
        ("texts", b"text;weight\none;1\n\x00;2\nthree;1\n", "row 3", "text", 2),
        ("molecules", b"smiles\nCCO\nCC\x00N\nCCC\n", "row 3", "smiles", 2),
        ("molecules", b"smiles\nCCO\nCCN\x00\nCCC\n", "row 3", "smiles", 2),
        ("molecules", b"smiles,weight\nCCO,1\nCCN,\x00\nCCC,2\n", "row 3", "weight", 2),
        ("molecules", b"smiles\nCCO\nCCN\n\x00\n", "row 4", "smiles", 2),
    ],
)
def test_a_row_that_cannot_be_kept_is_refused_by_row_and_column(
    researcher, idle_tasks, kind, table, where, column, kept
):
    draft = uploaded(researcher, kind, table)
    assert draft.catalog.status == Catalog.Status.READY
    assert draft.states.count() == kept
    [(source, reason)] = draft.catalog.refusals
    assert source == where
    assert f"“{column}”" in reason
    assert "NUL" in reason


def test_every_other_character_is_kept_as_it_came(researcher, idle_tasks, tmp_path):
    """Controls, line ends of every kind, what is no character, both ends of Unicode: into the record and back."""
    odd = [
        "\x01\x02\x1b[31m", "\x7f\x80\x85\x9fa", "a\x0bb\x0cc", "a\x1c\x1d\x1e\x1fb", "a\u2028b\u2029c",
        "\ufffe\uffff",
    ]  # fmt: skip
    odd += ["\U0010ffff\ue000", "a\rb\r\nc\nd", "\u202eabc", "\u200bb", "\ufeffa", "a\u0300\u0301", "\ufdd0", "x\x1a"]
    kept = [text.strip() for text in odd]
    campaign = make_campaign(researcher, file=campaigns.spreadsheet([["text"], *([text] for text in odd)]))
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
            picture = campaigns.picture(rng.choice(["red", "blue"]), (rng.randrange(1, 9), rng.randrange(1, 9)))
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
