"""Tables of objects: further columns, how large an upload may be, and which objects are neighbours."""

import io
import subprocess
import sys
import zipfile

import numpy as np
import pytest

from sampler import OBJECT_KINDS, CatalogError, extra_columns_of
from sampler.objects import tables
from sampler.objects.items import nearest_by_distance
from tests.support import uploads

# Further columns of a list: kept by name with each object, within bounds that are told with row and column.


def test_further_columns_stay_with_their_object():
    table = [
        ["Prompt", "text", "weight", "quality"], ["  a sea poem ", "Waves.", "2", "0.7"], ["a wood", "Trees.", "1"],
    ]  # fmt: skip
    reading = uploads.read("texts", uploads.spreadsheet(table))
    assert reading.extra_columns == ("prompt", "quality")
    assert [dict(item.extra) for item in reading.items] == [
        {"prompt": "a sea poem", "quality": "0.7"},
        {"prompt": "a wood", "quality": ""},
    ]


@pytest.mark.parametrize("weights", [("1", "2"), ()])
def test_those_of_images_stand_in_their_table_with_weights_or_without(weights):
    pictures = {"a.png": uploads.picture("red"), "b.png": uploads.picture("blue")}
    columns = [("file", "a.png", "b.png"), ("prompt", "a fire", "a lake"), *([("weight", *weights)] if weights else [])]
    table = uploads.spreadsheet(list(zip(*columns, strict=True)))
    found = [
        (item.weight, item.extra["prompt"])
        for item in uploads.read("images", uploads.archive(pictures | {"weights.csv": table})).items
    ]
    assert found == [(1, "a fire"), (2 if weights else 1, "a lake")]


def test_further_cells_count_among_the_characters_of_a_catalog():
    rows = b"".join(b"%d,%s\n" % (number, b"x" * 15_000) for number in range(4_000))
    with pytest.raises(CatalogError, match=r"50,000,000 characters in all, at row 33\d\d. Remove columns"):
        uploads.read("texts", b"text,notes\n" + rows)


def test_rows_that_disagree_on_one_object_are_refused_and_name_each_other():
    table = [["text", "prompt"], ["one", "a"], ["two", "b"], ["one", "c"], ["two", "b"], ["one", "a"], ["three", ""]]
    reading = uploads.read("texts", uploads.spreadsheet(table))
    assert [item.content for item in reading.items] == ["two", "three"]
    why = "row 2 and row 4 are the same object and differ in “prompt”; make them equal, or remove one of them"
    assert [(refusal.source, refusal.reason) for refusal in reading.refusals] == [
        ("row 2", why), ("row 4", why), ("row 5", "repeats row 3; their weights were added"), ("row 6", why),
    ]  # fmt: skip


def test_the_names_are_known_from_the_first_row_alone():
    file = io.BytesIO(b"text;Prompt;weight\nrow without end")
    assert extra_columns_of(file, "text") == ("prompt",)
    with pytest.raises(CatalogError, match="must name the columns"):
        extra_columns_of(io.BytesIO(b"words\none\n"), "text")


# Uploads larger than anybody means: refused with what to change, after no more was read than it took to see that.


MIB = 2**20


class Endless(io.RawIOBase):
    """A file of a gibibyte: a beginning, then the same piece again and again. Tells how much of it was read."""

    def __init__(self, begin: bytes, piece: bytes) -> None:
        self._begin, self._piece, self._at, self.max_read = begin, piece, 0, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset
        return offset

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer) -> int:
        size = min(len(buffer), 2**30 - self._at)
        skipped = self._at - len(self._begin)
        if skipped < 0:
            data = self._begin[self._at :][:size]
        else:
            shift = skipped % len(self._piece)
            data = (self._piece[shift:] + self._piece * (size // len(self._piece) + 1))[:size]
        buffer[: len(data)] = data
        self._at += len(data)
        self.max_read = max(self.max_read, self._at)
        # A reader that wants it all at once has shown so by now, and the test need not wait for the rest.
        if self.max_read > 300 * MIB:
            raise EverythingWantedError
        return len(data)


class EverythingWantedError(CatalogError):
    def __init__(self) -> None:
        super().__init__("everything was read")


@pytest.mark.parametrize(
    ("begin", "piece", "told", "max_mib"),
    [
        (b"text\none\ntwo\n", b"one\n", "more than 100,000 rows", 2),
        (b"text\n", b"x" * 999, "more than 1,000,000 characters", 2),
        (b'text\n"', b"x" * 99 + b"\n", "larger|quotation mark", 2),
        (b'text\n"', b'a\n","', "1,000,000 characters|quotation mark|lines", 4),
        (b"text\n", b"\xff\xfe\n", "near line 2", 1),
        (b"PK\x03\x04", b"x", "Excel", 1),
    ],
    ids=["rows", "a line", "a cell", "cells of a row", "no UTF-8", "an archive"],
)
def test_a_table_without_end_is_refused_as_soon_as_that_can_be_seen(begin, piece, told, max_mib, monkeypatch):
    monkeypatch.setattr(tables, "MAX_ROWS", 100_000)
    file = Endless(begin, piece)
    with pytest.raises(CatalogError) as refusal:
        OBJECT_KINDS["texts"].read(io.BufferedReader(file), lambda done, total: None)
    assert str(refusal.value) != "everything was read"
    assert [part for part in told.split("|") if part in str(refusal.value)]
    assert file.max_read < max_mib * MIB


def test_an_archive_with_a_list_of_files_beyond_any_use_is_refused_before_it_is_taken_apart():
    names = (f"{number:06}{'x' * 250}.png" for number in range(60_000))
    long_list = uploads.archive(dict.fromkeys(names, b""), zipfile.ZIP_STORED)
    with pytest.raises(CatalogError, match="list of files takes more than 16 MiB"):
        uploads.read("images", long_list)


UNPACK = """
import io, sys, zipfile
from sampler import OBJECT_KINDS, CatalogError
data = io.BytesIO()
with zipfile.ZipFile(data, "w", int(sys.argv[1])) as archive:
    with archive.open("a.png", "w") as entry:
        for _ in range(120):
            entry.write(bytes(2**20))
peak = lambda: int(open("/proc/self/status").read().split("VmHWM:")[1].split()[0]) // 1024
before = peak()
try:
    OBJECT_KINDS["images"].read(io.BytesIO(data.getvalue()), lambda done, total: None)
except CatalogError as error:
    assert sys.argv[2] in str(error), error
print(peak() - before)
"""


@pytest.mark.parametrize(
    ("packing", "reason"),
    [
        (zipfile.ZIP_DEFLATED, "larger than 20 MiB"),
        # Of this one, as of LZMA, zipfile unpacks all that it has read at once.
        (zipfile.ZIP_BZIP2, "pack the archive again with Deflate"),
    ],
)
def test_a_bomb_is_unpacked_to_what_a_picture_may_have_and_no_further(packing, reason):
    command = [sys.executable, "-c", UNPACK, str(packing), reason]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert int(done.stdout) < 80


def test_a_picture_that_is_not_packed_may_be_larger_than_a_list_of_files():
    large = uploads.picture("red", size=(2450, 2450), kind="BMP")
    assert len(large) > 17 * 2**20
    reading = uploads.read(
        "images", uploads.archive({"a.bmp": large, "b.png": uploads.picture("blue")}, zipfile.ZIP_STORED)
    )
    assert [item.content for item in reading.items] == ["a.bmp", "b.png"]


# Nearest-neighbour graphs.


def test_two_items_are_linked_when_either_is_among_the_others_nearest():
    vectors = np.random.default_rng(5).normal(size=(60, 3))
    distances = np.linalg.norm(vectors[:, None] - vectors[None], axis=-1)
    np.fill_diagonal(distances, np.inf)
    nearest = [set(row[:4].tolist()) for row in np.argsort(distances, axis=1)]
    expected = tuple(
        tuple(other for other in range(60) if other in nearest[item] or item in nearest[other]) for item in range(60)
    )
    assert nearest_by_distance(vectors, 4, "euclidean") == expected


def test_identical_items_are_never_their_own_neighbours():
    graph = nearest_by_distance(np.zeros((6, 2)), 2, "euclidean")
    assert all(item not in row and len(row) >= 2 for item, row in enumerate(graph))


def test_how_a_machine_rounds_does_not_choose_among_neighbours_at_one_distance():
    corners = np.array([[x, y, z] for x in (0.0, 1.0) for y in (0.0, 1.0) for z in (0.0, 1.0)])
    rng = np.random.default_rng(7)
    graphs = {
        nearest_by_distance(corners + rng.normal(scale=1e-9, size=corners.shape), 2, "euclidean") for _ in range(9)
    }
    assert len(graphs) == 1
