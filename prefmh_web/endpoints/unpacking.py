"""Replies that come compressed although they were asked for as they are: unpacked once, and to a bounded length.

A few bytes can hold gigabytes, and a packed reply can be packed again; so one layer is read, of the two kinds that the
standard library knows, and never more than fits.
"""

import zlib

# Of zlib: a gzip header or zlib's own, whichever is there; and no header at all, which some servers call deflate too.
_WITH_HEADER, _WITHOUT = 32 + zlib.MAX_WBITS, -zlib.MAX_WBITS


def unpacked(content: bytes, encoding: str, most: int) -> bytes:
    """Return what a reply holds.

    Args:
        content: as it came over the wire.
        encoding: its Content-Encoding header; empty if there is none.
        most: bytes that may come of it.

    Raises:
        OverflowError: more would come of it.
        ValueError: it is compressed in another way, or more than once, or is not what its header says.
    """
    encoding = encoding.strip().lower()
    if encoding in ("", "identity"):
        return content
    if encoding not in ("gzip", "x-gzip", "deflate"):
        raise ValueError(f"the reply is compressed as {encoding!r:.60}; it was asked for as it is")
    # A deflate without its header cannot begin like one with it.
    is_bare = encoding == "deflate" and not _has_zlib_header(content)
    packed = zlib.decompressobj(_WITHOUT if is_bare else _WITH_HEADER)
    try:
        found = packed.decompress(content, most + 1)
    except zlib.error:
        raise ValueError("the reply is not compressed as it says") from None
    if len(found) > most:
        raise OverflowError("the reply is too long")
    if not packed.eof:
        raise ValueError("the reply is not compressed as it says")
    return found


def _has_zlib_header(content: bytes) -> bool:
    return len(content) > 1 and content[0] & 0x0F == zlib.DEFLATED and int.from_bytes(content[:2]) % 31 == 0
