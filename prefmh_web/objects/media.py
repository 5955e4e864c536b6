"""Pictures and recordings of a campaign: where they lie, removing what no row names any more, and sending them to
browsers, whole or in part.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable
from hashlib import sha256

import numpy as np
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.http import Http404, HttpRequest, HttpResponse

from prefmh_web.objects.kind import ObjectKind, Pixels, RenderOptions, StoredObject

# A browser plays and seeks in recordings by asking for parts of them (RFC 9110, section 14).
_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")
# An object never changes once its campaign has started, so a browser may keep its picture.
_KEEP = "private, max-age=86400, immutable"
_PICTURES = "pictures"
# Beside the folders of a catalog's readings, which are numbers.
_RENDERED = "painted"
# Where the ending of a file's name is not the second half of its media type.
_ENDINGS = {"audio/mpeg": "mp3"}


def look_of(request: HttpRequest) -> RenderOptions:
    """Read the address's query: `dark`, `marked` and `small`, each present or not."""
    return RenderOptions(**{name: name in request.GET for name in ("dark", "marked", "small")})


def response(
    request: HttpRequest,
    kind: ObjectKind,
    shown: StoredObject,
    other: StoredObject | None = None,
    look: RenderOptions | None = None,
) -> HttpResponse:
    """Return an object's picture or recording, or the part of it that is asked for. Who may have it is the caller's to
    check.

    Args:
        look: how a picture is wanted; as the address says if None.

    Raises:
        Http404: the kind has none, or the file is lost.
    """
    try:
        found = kind.media(shown, look_of(request) if look is None else look, other)
    except FileNotFoundError as error:
        raise Http404("The file of this object is lost.") from error
    if found is None:
        raise Http404("This object has no picture and no recording.")
    headers = {"Cache-Control": _KEEP, "X-Content-Type-Options": "nosniff"}
    return _in_part(request, HttpResponse(found.body, content_type=found.media_type, headers=headers))


def ending_of(media_type: str) -> str:
    """Return the ending of the names of files of a media type, without the dot."""
    return _ENDINGS.get(media_type, media_type.rpartition("/")[2])


def picture_name(campaign_id: int, revision: int, index: int, ending: str) -> str:
    """Return the name of one object's picture, below the storage's folder of pictures."""
    return f"{campaign_id}/{revision}/{index}.{ending}"


def rendered_name(campaign_id: int, code: str) -> str:
    """Return the whole name of the picture that a model makes of a state: the same code, the same file."""
    return f"{_PICTURES}/{campaign_id}/{_RENDERED}/{sha256(code.encode()).hexdigest()[:32]}.png"


def store(name: str, data: bytes) -> None:
    """Store a file whose content follows from its name. What a crash left half written is replaced."""
    if default_storage.exists(name):
        with default_storage.open(name) as stored:
            if stored.read() == data:
                return
        default_storage.delete(name)
    stored_as = default_storage.save(name, ContentFile(data))
    if stored_as != name:
        # Somebody else has stored it in this very moment.
        default_storage.delete(stored_as)


def remove_rendered(names: Iterable[str]) -> None:
    """Remove pictures of these whole names."""
    for name in names:
        default_storage.delete(name)


def remove_rendered_but(campaign_id: int, keep: Container[str]) -> None:
    """Remove the pictures that a model has made for a campaign, but for those of these whole names."""
    folder = f"{_PICTURES}/{campaign_id}/{_RENDERED}"
    if default_storage.exists(folder):
        found = (f"{folder}/{name}" for name in default_storage.listdir(folder)[1])
        remove_rendered(name for name in found if name not in keep)


def remove_pictures(campaign_id: int, keep_revision: int | None = None) -> None:
    """Remove a campaign's pictures, but for those of one reading of its file."""
    folder = f"{_PICTURES}/{campaign_id}"
    if not default_storage.exists(folder):
        return
    for revision in default_storage.listdir(folder)[0]:
        if revision != str(keep_revision):
            _remove_folder(f"{folder}/{revision}")


def stored(name: str) -> bytes:
    """Return a stored file."""
    with default_storage.open(name) as file:
        body: bytes = file.read()
        return body


def pixels_in(name: str) -> Pixels:
    """Return a stored picture, sRGB, shape (height, width, 3), uint8."""
    # Imported here: few processes look into pictures.
    from PIL import Image

    with default_storage.open(name) as file, Image.open(file) as picture:
        return np.asarray(picture.convert("RGB"))


def remove_upload(name: str) -> None:
    """Remove an uploaded file."""
    default_storage.delete(name)


def _remove_folder(folder: str) -> None:
    for name in default_storage.listdir(folder)[1]:
        default_storage.delete(f"{folder}/{name}")
    default_storage.delete(folder)


def _in_part(request: HttpRequest, whole: HttpResponse) -> HttpResponse:
    """Return the part of a response's body that a request asks for; all of it where it asks for none, or for several.

    What the body is of an address never changes, so `If-Range` needs no look.
    """
    whole["Accept-Ranges"] = "bytes"
    found = _RANGE.fullmatch(request.headers.get("Range", "").strip())
    # A part is defined for GET alone: whoever asks by HEAD learns how large the whole is.
    if request.method != "GET" or found is None or not _is_valid(found[1], found[2]):
        return whole
    first, last, size = found[1], found[2], len(whole.content)
    # Without a first place, so many of the last bytes are asked for.
    begin = int(first) if first else max(size - int(last), 0)
    part = whole.content[begin : int(last) + 1 if first and last else size]
    if not part:
        return _changed(whole, b"", 416, f"bytes */{size}")
    return _changed(whole, part, 206, f"bytes {begin}-{begin + len(part) - 1}/{size}")


def _is_valid(first: str, last: str) -> bool:
    return int(first) <= int(last) if first and last else bool(first or last)


def _changed(whole: HttpResponse, content: bytes, status: int, content_range: str) -> HttpResponse:
    part = HttpResponse(content, status=status, headers=dict(whole.headers))
    part["Content-Range"] = content_range
    return part
