"""A part of a file, where a browser asks for one: it plays and seeks in recordings that way (RFC 9110, section 14)."""

from __future__ import annotations

import re

from django.http import HttpRequest, HttpResponse

_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")


def in_part(request: HttpRequest, whole: HttpResponse) -> HttpResponse:
    """Return the part of a response's body that a request asks for; all of it where it asks for none, or for several.

    What the body is of an address never changes, so `If-Range` needs no look.
    """
    whole["Accept-Ranges"] = "bytes"
    found = _RANGE.fullmatch(request.headers.get("Range", "").strip())
    if found is None or not _is_valid(found[1], found[2]):
        return whole
    size = len(whole.content)
    first, last = _bounds(found[1], found[2], size)
    if first > last:
        return _changed(whole, b"", 416, f"bytes */{size}")
    return _changed(whole, whole.content[first : last + 1], 206, f"bytes {first}-{last}/{size}")


def _is_valid(first: str, last: str) -> bool:
    return int(first) <= int(last) if first and last else bool(first or last)


def _bounds(first: str, last: str, size: int) -> tuple[int, int]:
    """Return the places of the first and the last byte; where there is no such part, the first comes after the last."""
    if not first:
        return max(size - int(last), 0) if int(last) else size, size - 1
    return int(first), min(int(last), size - 1) if last else size - 1


def _changed(whole: HttpResponse, content: bytes, status: int, content_range: str) -> HttpResponse:
    part = HttpResponse(content, status=status, headers=dict(whole.headers))
    part["Content-Range"] = content_range
    return part
