"""The files of a campaign: where pictures lie, and removing what no row names any more."""

from collections.abc import Container, Iterable
from hashlib import sha256

import numpy as np
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from PIL import Image

_PICTURES = "pictures"
# Beside the folders of a catalog's readings, which are numbers.
_PAINTED = "painted"


def picture_name(campaign_id: int, revision: int, place: int, ending: str) -> str:
    """Return the name of one object's picture, below the storage's folder of pictures."""
    return f"{campaign_id}/{revision}/{place}.{ending}"


def painted_name(campaign_id: int, code: str) -> str:
    """Return the whole name of the picture that a model makes of a state: the same code, the same file."""
    return f"{_PICTURES}/{campaign_id}/{_PAINTED}/{sha256(code.encode()).hexdigest()[:32]}.png"


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


def remove_painted(names: Iterable[str]) -> None:
    """Remove pictures of these whole names."""
    for name in names:
        default_storage.delete(name)


def remove_painted_but(campaign_id: int, keep: Container[str]) -> None:
    """Remove the pictures that a model has made for a campaign, but for those of these whole names."""
    folder = f"{_PICTURES}/{campaign_id}/{_PAINTED}"
    if default_storage.exists(folder):
        found = (f"{folder}/{name}" for name in default_storage.listdir(folder)[1])
        remove_painted(name for name in found if name not in keep)


def remove_pictures(campaign_id: int, keep_revision: int | None = None) -> None:
    """Remove a campaign's pictures, but for those of one reading of its file."""
    folder = f"{_PICTURES}/{campaign_id}"
    if not default_storage.exists(folder):
        return
    for revision in default_storage.listdir(folder)[0]:
        if revision != str(keep_revision):
            _remove_folder(f"{folder}/{revision}")


def pixels_in(name: str) -> np.ndarray:
    """Return a stored picture, sRGB, shape (height, width, 3), uint8."""
    with default_storage.open(name) as file, Image.open(file) as picture:
        return np.asarray(picture.convert("RGB"))


def remove_upload(name: str) -> None:
    """Remove an uploaded file."""
    default_storage.delete(name)


def _remove_folder(folder: str) -> None:
    for name in default_storage.listdir(folder)[1]:
        default_storage.delete(f"{folder}/{name}")
    default_storage.delete(folder)
