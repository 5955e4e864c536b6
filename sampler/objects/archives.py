"""ZIP archives of strangers: no list of files and no entry takes more memory than is said here, whatever it claims."""

from __future__ import annotations

import bz2
import lzma
import struct
import zipfile
import zlib
from collections.abc import Iterator
from typing import BinaryIO

from sampler.objects.bounded import BoundedFile
from sampler.objects.tables import CatalogError

MAX_FILE_BYTES = 20 * 2**20
# Of the list of its files at an archive's end: room for 20,000 with long names, and as many that are clutter.
MAX_DIRECTORY_BYTES = 16 * 2**20
# What a decoder of LZMA may take; nobody packs pictures with a larger dictionary.
_DECODER_BYTES = 128 * 2**20
_PIECE = 2**16
# What zipfile raises for an archive that is damaged.
_BROKEN = (zipfile.BadZipFile, NotImplementedError, ValueError, OverflowError, EOFError, OSError, struct.error)
# And for an entry that is, or that is packed in a way it does not know; RuntimeError is encryption.
_UNPACKABLE = (*_BROKEN, zlib.error, lzma.LZMAError, RuntimeError)
_LOCAL_HEADER = struct.Struct("<4s22xHH")


def _too_long() -> CatalogError:
    return CatalogError(
        f"The archive's list of files takes more than {MAX_DIRECTORY_BYTES // 2**20} MiB. "
        "Split the archive, or shorten the names of its files."
    )


class Archive:
    """A ZIP archive.

    Raises:
        CatalogError: the file is none, or its list of files is longer than anybody needs.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        try:
            self._zip = zipfile.ZipFile(BoundedFile(file, MAX_DIRECTORY_BYTES, _too_long))
        except CatalogError:
            raise
        except UnicodeDecodeError as error:
            raise CatalogError(
                f"The archive names a file in a way that cannot be read: {bytes(error.object)[:60]!r}. "
                "Rename it, and pack the files again."
            ) from error
        except _BROKEN as error:
            raise CatalogError("The file is not a ZIP archive. Put your files in one and upload that.") from error

    @property
    def entries(self) -> list[zipfile.ZipInfo]:
        """What the archive lists, in its order."""
        return self._zip.infolist()

    def extract(self, entry: zipfile.ZipInfo) -> bytes:
        """Return an entry's content.

        Raises:
            ValueError: it is damaged, encrypted, packed in an unknown way, or larger than a file may be.
        """
        try:
            data = self._unpacked(entry)
        except _UNPACKABLE as error:
            raise ValueError(f"the archive's entry cannot be unpacked: {error}") from error
        if len(data) > MAX_FILE_BYTES:
            raise ValueError(f"the file is larger than {MAX_FILE_BYTES // 2**20} MiB")
        return data

    def _unpacked(self, entry: zipfile.ZipInfo) -> bytes:
        """Return an entry's content, or a byte more than it may have: the size that an archive states may be a lie."""
        if entry.compress_type in (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
            return self._unpacked_here(entry)
        data = bytearray()
        # In pieces: of what is not packed, zipfile asks the file for all at once, and `_Bounded` gives no more.
        with self._zip.open(entry) as stream:
            while len(data) <= MAX_FILE_BYTES and (piece := stream.read(_PIECE)):
                data += piece
        return bytes(data)

    def _unpacked_here(self, entry: zipfile.ZipInfo) -> bytes:
        """Return the same for the packings of which zipfile unpacks all that it has read: a kilobyte fills a memory."""
        if entry.flag_bits & 1:
            raise RuntimeError("it is encrypted")
        packed = self._packed(entry)
        decoder: bz2.BZ2Decompressor | lzma.LZMADecompressor
        if entry.compress_type == zipfile.ZIP_BZIP2:
            decoder = bz2.BZ2Decompressor()
        else:
            decoder = lzma.LZMADecompressor(format=lzma.FORMAT_ALONE, memlimit=_DECODER_BYTES)
            packed = _as_lzma_file(packed)
        data = bytearray()
        for piece in packed:
            data += decoder.decompress(piece, MAX_FILE_BYTES + 1 - len(data))
            while not (decoder.needs_input or decoder.eof or len(data) > MAX_FILE_BYTES):
                data += decoder.decompress(b"", MAX_FILE_BYTES + 1 - len(data))
            if decoder.eof or len(data) > MAX_FILE_BYTES:
                break
        if len(data) <= MAX_FILE_BYTES and zlib.crc32(data) != entry.CRC:
            raise zipfile.BadZipFile("its checksum is another one")
        return bytes(data)

    def _packed(self, entry: zipfile.ZipInfo) -> Iterator[bytes]:
        """Yield an entry's packed bytes: after its local header, which may say another length than the list does."""
        self._file.seek(entry.header_offset)
        signature, name, extra = _LOCAL_HEADER.unpack(self._file.read(_LOCAL_HEADER.size))
        if signature != b"PK\x03\x04":
            raise zipfile.BadZipFile("it does not begin where the archive says")
        at, end = self._file.tell() + name + extra, self._file.tell() + name + extra + entry.compress_size
        while at < end:
            self._file.seek(at)
            piece = self._file.read(min(_PIECE, end - at))
            if not piece:
                raise EOFError("the archive ends in it")
            at += len(piece)
            yield piece


def _as_lzma_file(packed: Iterator[bytes]) -> Iterator[bytes]:
    """Turn what ZIP stores (APPNOTE 5.8.8: version, length of the properties, properties, data) into an .lzma file,
    which has the properties, the size (here: not known) and the data.
    """
    first = next(packed, b"")
    if first[2:4] != b"\x05\x00":
        raise zipfile.BadZipFile("its LZMA properties are not five bytes")
    yield first[4:9] + b"\xff" * 8 + first[9:]
    yield from packed
