"""The settings this folder reads, with what holds where a project does not set them.

LOCAL_MODELS        language models that may be used, as "name=folder,name2=folder2"; default: none
LOCAL_IMAGE_MODELS  SDXL-Turbo and models built like it, as "name=folder,name2=folder2"; default: none
LOCAL_DEVICE        where models run: "cuda", "cuda:1", "cpu"; default: CUDA if there is any, else the CPU
LOCAL_MAX_ROWS      rows of one batch at most; default 256
LOCAL_MAX_TOKENS    rows of one batch times their longest length at most, which bounds the cache; default 131072

Models come from folders that the site's operator has filled. No researcher names a path, and nothing is downloaded.
"""

from pathlib import Path

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

DEFAULT_MAX_ROWS = 256
DEFAULT_MAX_TOKENS = 131_072


def model_folders() -> dict[str, Path]:
    """Return the folder of each language model that the site offers.

    Raises:
        ImproperlyConfigured: the setting cannot be read, or names a model twice.
    """
    return _folders("LOCAL_MODELS")


def image_model_folders() -> dict[str, Path]:
    """Return the folder of each image model that the site offers.

    Raises:
        ImproperlyConfigured: the setting cannot be read, or names a model twice.
    """
    return _folders("LOCAL_IMAGE_MODELS")


def _folders(setting: str) -> dict[str, Path]:
    folders: dict[str, Path] = {}
    for part in getattr(settings, setting, "").split(","):
        if not part.strip():
            continue
        name, equals, folder = (piece.strip() for piece in part.partition("="))
        if not (name and equals and folder):
            raise ImproperlyConfigured(f'{setting} must read "name=folder,name2=folder2"; it has {part.strip()!r}')
        if name in folders:
            raise ImproperlyConfigured(f"{setting} must not name a model twice; it does {name!r}")
        folders[name] = Path(folder)
    return folders


def device() -> str | None:
    return getattr(settings, "LOCAL_DEVICE", "").strip() or None


def max_rows() -> int:
    return _positive("LOCAL_MAX_ROWS", DEFAULT_MAX_ROWS)


def max_tokens() -> int:
    return _positive("LOCAL_MAX_TOKENS", DEFAULT_MAX_TOKENS)


def _positive(name: str, default: int) -> int:
    number = getattr(settings, name, default)
    if type(number) is not int or number < 1:
        raise ImproperlyConfigured(f"{name} must be a whole number above 0, not {number!r}")
    return number
