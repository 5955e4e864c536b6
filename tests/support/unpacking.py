"""Archives of tar's, unpacked on every Python that `prefmh` runs on."""

from __future__ import annotations

import tarfile
from pathlib import Path


def unpack(archive: tarfile.TarFile, folder: Path) -> None:
    """Write what an archive of our own holds into a folder.

    Nothing is written outside of it from Python 3.11.4 on; earlier ones, as Debian 12 has, know no filters.
    """
    archive.extraction_filter = getattr(tarfile, "data_filter", lambda member, _: member)
    archive.extractall(folder)
