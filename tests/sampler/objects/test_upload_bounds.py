"""Uploads larger than anybody means: refused with what to change, after no more was read than it took to see that."""

import io
import subprocess
import sys
import zipfile

import pytest
from PIL import Image

from sampler import OBJECT_KINDS, CatalogError
from sampler.objects import tables
from tests.support import campaigns

MIB = 2**20


class Endless(io.RawIOBase):
    """A file of a gibibyte: a beginning, then the same piece again and again. Tells how much of it was read."""

    def __init__(self, begin: bytes, piece: bytes) -> None:
        self._begin, self._piece, self._at, self.most_read = begin, piece, 0, 0

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
        self.most_read = max(self.most_read, self._at)
        # A reader that wants it all at once has shown so by now, and the test need not wait for the rest.
        if self.most_read > 300 * MIB:
            raise EverythingWantedError
        return len(data)


class EverythingWantedError(CatalogError):
    def __init__(self) -> None:
        super().__init__("everything was read")


@pytest.mark.parametrize(
    ("begin", "piece", "told", "most_mib"),
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
def test_a_table_without_end_is_refused_as_soon_as_that_can_be_seen(begin, piece, told, most_mib, monkeypatch):
    monkeypatch.setattr(tables, "MAX_ROWS", 100_000)
    file = Endless(begin, piece)
    with pytest.raises(CatalogError) as refusal:
        OBJECT_KINDS["texts"].read(io.BufferedReader(file), lambda done, total: None)
    assert str(refusal.value) != "everything was read"
    assert [part for part in told.split("|") if part in str(refusal.value)]
    assert file.most_read < most_mib * MIB


def test_texts_of_more_characters_than_a_catalog_may_have_are_refused_at_their_row():
    rows = b"".join(b"%d %s\n" % (number, b"x" * 15_000) for number in range(4_000))
    with pytest.raises(CatalogError, match=r"50,000,000 characters in all, at row 33\d\d"):
        campaigns.read("texts", b"text\n" + rows)


# Read and compared by a process of its own, which tells the most memory that it ever held (`ru_maxrss` begins with
# what the tests' process held).
MEASURE = """
import io, sys
from sampler import OBJECT_KINDS
kind = OBJECT_KINDS["texts"]
read = lambda data: kind.read(io.BytesIO(data), lambda done, total: None)
peak = lambda: int(open("/proc/self/status").read().split("VmHWM:")[1].split()[0]) // 1024
kind.neighbours(read(b"text\\n" + b"".join(b"word %d\\n" % number for number in range(99))).items, 8)
before = peak()
words = [b" ".join(b"%xq" % (10**7 + 999 * row + each) for each in range(999)) for row in range(150)]
graph = kind.neighbours(read(b"text\\n" + b"\\n".join(words)).items, 8)
assert len(graph) == 150
print(peak() - before)
"""


def test_words_that_are_all_different_take_no_memory_of_their_own():
    """150,000 different words, 1.5 MB, took 300 MiB: some 2 KiB of dictionary and of latent dimensions for each."""
    done = subprocess.run([sys.executable, "-c", MEASURE], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 400


def test_an_archive_with_a_list_of_files_beyond_any_use_is_refused_before_it_is_taken_apart():
    names = (f"{number:06}{'x' * 250}.png" for number in range(60_000))
    long_list = campaigns.archive(dict.fromkeys(names, b""), zipfile.ZIP_STORED)
    with pytest.raises(CatalogError, match="list of files takes more than 16 MiB"):
        campaigns.read("images", long_list)


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
        # Of these, zipfile unpacks all that it has read at once.
        (zipfile.ZIP_BZIP2, "pack the archive again with Deflate"),
        (zipfile.ZIP_LZMA, "pack the archive again with Deflate"),
    ],
)
def test_a_bomb_is_unpacked_to_what_a_picture_may_have_and_no_further(packing, reason):
    command = [sys.executable, "-c", UNPACK, str(packing), reason]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert int(done.stdout) < 80


@pytest.mark.parametrize("packing", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_pictures_are_read_packed_or_not(packing):
    """The negative control: what is refused above is refused for its size."""
    noise = campaigns.saved(Image.effect_noise((700, 500), 90).convert("RGB"))
    reading = campaigns.read("images", campaigns.archive({"a.png": campaigns.picture("red"), "b.png": noise}, packing))
    assert [item.content for item in reading.items] == ["a.png", "b.png"]
    assert reading.refusals == ()


def test_a_picture_that_is_not_packed_may_be_larger_than_a_list_of_files():
    large = campaigns.picture("red", size=(2450, 2450), kind="BMP")
    assert len(large) > 17 * 2**20
    reading = campaigns.read(
        "images", campaigns.archive({"a.bmp": large, "b.png": campaigns.picture("blue")}, zipfile.ZIP_STORED)
    )
    assert [item.content for item in reading.items] == ["a.bmp", "b.png"]
