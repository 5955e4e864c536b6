"""Pictures of records, on their way into a campaign of pairs, or to a model: read once, and named by what they hold."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from django.conf import settings

import sampler
from prefmh_web.campaigns.models import Campaign
from prefmh_web.objects import media


@dataclass(frozen=True)
class GivenPictures:
    """The pictures of one comparison.

    Args:
        folder: where they lie until they are stored.
        names: what each object's picture is called, by its record, as in "r1", and its number there.
    """

    folder: Path
    names: Mapping[tuple[str, str], str]

    def read(self, record: str, state: str) -> bytes:
        """Return the picture of an object, by its record and its number there."""
        return (self.folder / self.names[record, state]).read_bytes()

    def store(self, campaign: Campaign) -> None:
        """Store them for a campaign, each once.

        Raises:
            OSError: there is no room for one.
        """
        for name in sorted(set(self.names.values())):
            media.store(media.given_name(campaign.pk, name), (self.folder / name).read_bytes())


@contextmanager
def given_pictures(records: sampler.ComparedRecords) -> Iterator[GivenPictures]:
    """Read the pictures of all objects that meet; none of other objects than images.

    They wait on the disk of uploads until all are read: in memory they would be gigabytes.

    Raises:
        RecordError: a record has no pictures, or one that cannot be used.
        OSError: a record cannot be read.
    """
    with tempfile.TemporaryDirectory(dir=settings.FILE_UPLOAD_TEMP_DIR) as folder:
        names: dict[tuple[str, str], str] = {}
        for met in sampler.met_pictures(records) if records.kind == "images" else ():
            name = names[met.record, met.state] = f"{sha256(met.png).hexdigest()}.png"
            (Path(folder) / name).write_bytes(met.png)
        yield GivenPictures(Path(folder), names)
