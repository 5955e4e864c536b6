"""A setup as a file: `campaign.yaml` alone, or a ZIP of it with the uploaded file under its hash.

The same setup is always the same bytes: a ZIP has no dates in it.
"""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import PurePath
from tempfile import TemporaryFile
from typing import IO, BinaryIO, Final

from django.conf import settings
from django.contrib.auth.models import User

import sampler
from prefmh_web.campaigns.models import Campaign, Catalog
from prefmh_web.config import CampaignConfig, UploadedFile
from prefmh_web.setup import export
from prefmh_web.setup.problems import Problem, SetupError, refused
from prefmh_web.setup.reading import Tell, config_in
from prefmh_web.transport.disk import is_no_room

NAME: Final = "campaign.yaml"
MAX_YAML_BYTES: Final = 8 * 2**20
MAX_FILE_BYTES: Final = 512 * 2**20
_Read = Callable[[bytes], CampaignConfig]
BROKEN = sampler.BROKEN_ARCHIVE
"""What zipfile raises for an archive that is damaged or encrypted."""
_MOST_MEMBERS = 1000
_MAX_DIRECTORY_BYTES = 2**20
_FOLDER = "files"
_MAGIC = b"PK"
_PIECE = 2**20
# The first moment that a ZIP can name.
_DATE = (1980, 1, 1, 0, 0, 0)


def write(campaign: Campaign) -> tuple[str, Iterator[bytes]]:
    """Return the ending of a campaign's file, “.yaml” or “.zip”, and its bytes, a piece at a time.

    Raises:
        NotPossible: as `export.config_of` does.
    """
    setup = export.config_of(campaign)
    text = export.text_of(setup).encode()
    if setup.file is None:
        return ".yaml", iter([text])
    return ".zip", _archive(text, setup.file, campaign.catalog)


def _archive(text: bytes, uploaded: UploadedFile, catalog: Catalog) -> Iterator[bytes]:
    with TemporaryFile(dir=settings.FILE_UPLOAD_TEMP_DIR) as made:
        with zipfile.ZipFile(made, "w") as archive:
            archive.writestr(_entry(NAME), text)
            with archive.open(_entry(_stored_as(uploaded)), "w", force_zip64=True) as member:
                for piece in export.file_of(catalog):
                    member.write(piece)
        made.seek(0)
        while piece := made.read(_PIECE):
            yield piece


def _entry(name: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, _DATE)
    info.compress_type = zipfile.ZIP_DEFLATED
    info.external_attr = 0o600 << 16
    return info


def _stored_as(uploaded: UploadedFile) -> str:
    return f"{_FOLDER}/{uploaded.sha256}{PurePath(uploaded.name).suffix.lower()}"


@contextmanager
def opened(
    file: BinaryIO,
    beside: PurePath | None = None,
    tell: Tell | None = None,
    owner: User | None = None,
    kept: UploadedFile | None = None,
) -> Iterator[tuple[CampaignConfig, IO[bytes] | None]]:
    """Yield the setup of a file, and the file of its objects if it has one, at its beginning.

    Args:
        file: `campaign.yaml`, or a ZIP with it.
        beside: where the file of the objects lies if it is not in a ZIP; None if it is nowhere else.
        tell, owner: as `reading.config_in` has them.
        kept: the file that the campaign has already, which need not be sent again.

    Raises:
        SetupError: with every problem found.
    """
    begin = file.read(len(_MAGIC))
    file.seek(0)
    with TemporaryFile(dir=settings.FILE_UPLOAD_TEMP_DIR) as copy:
        read = partial(config_in, tell=tell, owner=owner)
        if begin == _MAGIC:
            config = _unpacked(file, copy, read)
        else:
            config = read(_limited(file, MAX_YAML_BYTES, NAME))
            if config.file is not None and config.file == kept:
                yield config, None
                return
            _keep_neighbour(config, copy, beside)
        copy.seek(0)
        yield config, None if config.file is None else copy


def _keep_neighbour(config: CampaignConfig, kept: IO[bytes], beside: PurePath | None) -> None:
    if config.file is None:
        return
    if beside is None:
        message = f"is not here: send a ZIP with {NAME} and “{config.file.name}”"
        raise SetupError([Problem(message, "file")])
    try:
        with open(beside / config.file.name, "rb") as source:
            _keep(source, kept, config.file)
    except OSError as error:
        message = f"“{config.file.name}” cannot be read beside {NAME} ({error.strerror}); put it there, or use a ZIP"
        raise SetupError([Problem(message, "file.name")]) from error


def _unpacked(file: BinaryIO, kept: IO[bytes], read: _Read) -> CampaignConfig:
    try:
        with _archive_in(file) as archive:
            if NAME not in archive.namelist():
                raise refused(f"The ZIP has no {NAME}. Put it at the top, not in a folder.")
            with archive.open(NAME) as member:
                setup = read(_limited(member, MAX_YAML_BYTES, NAME))
            if setup.file is not None:
                with archive.open(_member_of(archive, setup.file)) as member:
                    _keep(member, kept, setup.file)
            return setup
    except SetupError:
        raise
    except BROKEN as error:
        if isinstance(error, OSError) and is_no_room(error):
            raise
        raise refused("The ZIP is broken or encrypted. Pack it again.") from error


def _member_of(archive: zipfile.ZipFile, uploaded: UploadedFile) -> str:
    wanted = [_stored_as(uploaded)] if uploaded.sha256 else []
    for name in (*wanted, uploaded.name):
        if name in archive.namelist():
            return name
    message = f"is not in the ZIP; put it in as {' or '.join(f'“{name}”' for name in (*wanted, uploaded.name))}"
    raise SetupError([Problem(message, "file")])


def _keep(source: IO[bytes], kept: IO[bytes], uploaded: UploadedFile) -> None:
    """Copy a file, and check that it is the one that is meant."""
    digest, size = hashlib.sha256(), 0
    while piece := source.read(_PIECE):
        size += len(piece)
        if size > MAX_FILE_BYTES:
            raise SetupError([Problem(f"must be at most {MAX_FILE_BYTES // 2**20} MiB large; split it", "file")])
        digest.update(piece)
        kept.write(piece)
    if uploaded.sha256 not in (None, digest.hexdigest()):
        message = f"is of another file: “{uploaded.name}” has {digest.hexdigest()}; correct it, or leave it out"
        raise SetupError([Problem(message, "file.sha256")])


def _limited(file: IO[bytes] | BinaryIO, limit: int, name: str) -> bytes:
    content = io.BytesIO()
    while piece := file.read(_PIECE):
        content.write(piece)
        if content.tell() > limit:
            raise refused(f"{name} is larger than {limit // 2**20} MiB. Was another file meant?")
    return content.getvalue()


def _archive_in(file: BinaryIO) -> zipfile.ZipFile:
    """Return the archive that a file is. Its members are only listed: the size that it states of one may be a lie.

    Raises:
        SetupError: it has too many members, or one that a setup has no use for.
        BROKEN: it is no archive.
    """
    try:
        return sampler.archive_in(file, _MOST_MEMBERS, _MAX_DIRECTORY_BYTES)
    except sampler.TooLargeError as error:
        raise refused(
            f"The ZIP has more than {_MOST_MEMBERS} files, or very long names. It holds campaign.yaml and one more."
        ) from error
    except sampler.ArchiveError as error:
        raise refused(str(error)) from error
