"""ZIPs of setups that strangers send: looked at before anything is unpacked."""

from __future__ import annotations

import zipfile
from typing import BinaryIO

import sampler
from prefmh_web.setup.problems import refused

BROKEN = sampler.BROKEN_ARCHIVE
"""What zipfile raises for an archive that is damaged or encrypted."""
_MOST_MEMBERS = 1000
_MAX_DIRECTORY_BYTES = 2**20


def archive_in(file: BinaryIO) -> zipfile.ZipFile:
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
