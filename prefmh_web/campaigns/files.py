"""The files of a campaign: where pictures lie, and removing what no row names any more."""

from django.core.files.storage import default_storage

_PICTURES = "pictures"


def picture_name(campaign_id: int, revision: int, place: int, ending: str) -> str:
    """Return the name of one object's picture, below the storage's folder of pictures."""
    return f"{campaign_id}/{revision}/{place}.{ending}"


def remove_pictures(campaign_id: int, keep_revision: int | None = None) -> None:
    """Remove a campaign's pictures, but for those of one reading of its file."""
    folder = f"{_PICTURES}/{campaign_id}"
    if not default_storage.exists(folder):
        return
    for revision in default_storage.listdir(folder)[0]:
        if revision != str(keep_revision):
            _remove_folder(f"{folder}/{revision}")


def remove_upload(name: str) -> None:
    """Remove an uploaded file."""
    default_storage.delete(name)


def _remove_folder(folder: str) -> None:
    for name in default_storage.listdir(folder)[1]:
        default_storage.delete(f"{folder}/{name}")
    default_storage.delete(folder)
