"""Recordings, from their files; and tones that stand for them where there are none yet."""

from __future__ import annotations

import io
from functools import lru_cache

import numpy as np

from prefmh_web.objects import media
from prefmh_web.objects.kind import Media, Medium, ObjectKind, RenderOptions, StoredObject
from sampler.judges import ShownObject

RISING, FALLING = "a rising tone", "a falling tone"
_RATE, _SECONDS = 16_000, 1.0
_FROM_HZ, _TO_HZ = 220.0, 440.0
_LOUDNESS = 0.3


class Audio(ObjectKind):
    """Recordings; their content is the name of a file. People play them with the browser's own controls."""

    name = "audio"
    noun = "recording"
    nouns = "recordings"
    source = "file"
    samples = (StoredObject(RISING), StoredObject(FALLING))
    medium: Medium = "sound"
    # A press on the controls plays, and must not choose.
    is_a_button = False
    in_line = ("{seconds:.1f} s", "level {level:.0f} dB", "brightness {brightness:,.0f} Hz")

    def shown_object(self, shown: StoredObject, sees_pictures: bool) -> ShownObject:
        """Refuse: no prompt holds a recording.

        Raises:
            ValueError: always.
        """
        raise ValueError("a model hears no recordings")

    def media(self, shown: StoredObject, look: RenderOptions, other: StoredObject | None = None) -> Media:
        """Return the recording, whatever the look.

        Raises:
            OSError: its file cannot be read.
        """
        if not shown.picture:
            return Media(tone(shown.content), "audio/wav")
        return Media(media.stored(shown.picture), shown.media_type)

    def measured(self, shown: StoredObject) -> bytes:
        """Return the recording; raises as `media` does."""
        return self.media(shown, RenderOptions()).body


@lru_cache
def tone(content: str) -> bytes:
    """Return a tone as WAV.

    Raises:
        FileNotFoundError: there is no tone of this name.
    """
    if content not in (RISING, FALLING):
        raise FileNotFoundError(f"the recording {content[:80]!r} has no file")
    # Imported here: few processes make tones.
    import soundfile
    from scipy.signal import chirp

    time = np.arange(int(_RATE * _SECONDS)) / _RATE
    begin_hz, end_hz = (_FROM_HZ, _TO_HZ) if content == RISING else (_TO_HZ, _FROM_HZ)
    # Without the envelope a tone would begin and end with a click.
    envelope = np.sin(np.pi * time / _SECONDS) ** 2
    file = io.BytesIO()
    samples = _LOUDNESS * envelope * chirp(time, begin_hz, _SECONDS, end_hz, method="logarithmic")
    soundfile.write(file, samples, _RATE, format="WAV", subtype="PCM_16")
    return file.getvalue()
