"""Recordings, from their files."""

import logging
from dataclasses import asdict
from functools import lru_cache
from typing import Any

import sampler
from prefmh_web.objects import media
from prefmh_web.objects.audio.samples import FALLING, RISING, tone
from prefmh_web.objects.kind import Look, Measures, Media, Medium, StoredObject, in_one_line
from sampler.judges import Exhibit

logger = logging.getLogger(__name__)

_LINE = ("{seconds:.1f} s", "level {level:.0f} dB", "brightness {brightness:,.0f} Hz")


class Audio:
    """Recordings; their content is the name of a file. People play them with the browser's own controls."""

    name = "audio"
    noun = "recording"
    nouns = "recordings"
    source = "file"
    samples = (StoredObject(RISING), StoredObject(FALLING))
    has_differences = False
    medium: Medium = "sound"
    # A press on the controls plays, and must not choose.
    is_a_button = False

    def options(self, left: str, right: str) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return nothing: the recording, which has an address, is everything."""
        return {}, {}

    def excerpts(self, left: str, right: str) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return nothing: what differs is heard."""
        return {}, {}

    def exhibit(self, shown: StoredObject, sees_pictures: bool) -> Exhibit:
        """Refuse: no prompt holds a recording.

        Raises:
            ValueError: always.
        """
        raise ValueError("a model hears no recordings")

    def media(self, shown: StoredObject, look: Look, beside: StoredObject | None = None) -> Media:
        """Return the recording, whatever the look.

        Raises:
            OSError: its file cannot be read.
        """
        if not shown.picture:
            return Media(tone(shown.content), "audio/wav")
        return Media(media.stored(shown.picture), shown.media_type)

    def measures(self, shown: StoredObject) -> Measures:
        """Return what is measured of a recording.

        Raises:
            OSError: its file cannot be read.
        """
        return _measures(shown)

    def line(self, shown: StoredObject) -> str:
        """Return its length, level and brightness, or that it cannot be read."""
        try:
            return in_one_line(_LINE, self.measures(shown))
        except OSError:
            # A lost file is for whoever runs the server to mend, and no reason to show nothing of a whole campaign.
            logger.exception("the recording %s cannot be read", shown.picture)
            return "its recording cannot be read"


@lru_cache(maxsize=2048)
def _measures(shown: StoredObject) -> Measures:
    data = media.stored(shown.picture) if shown.picture else tone(shown.content)
    return asdict(sampler.describe_audio(data))
