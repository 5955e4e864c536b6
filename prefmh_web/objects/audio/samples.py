"""Tones that stand for recordings where there are none yet: one rises, the other one falls."""

from __future__ import annotations

import io
import wave
from functools import lru_cache

import numpy as np

RISING, FALLING = "a rising tone", "a falling tone"
_RATE, _SECONDS = 16_000, 1.0
_FROM_HZ, _TO_HZ = 220.0, 440.0
_LOUDNESS = 0.3


@lru_cache
def tone(content: str) -> bytes:
    """Return a tone as WAV.

    Raises:
        FileNotFoundError: there is no tone of this name.
    """
    if content not in (RISING, FALLING):
        raise FileNotFoundError(f"the recording {content[:80]!r} has no file")
    time = np.arange(int(_RATE * _SECONDS)) / _RATE
    ends = (_FROM_HZ, _TO_HZ) if content == RISING else (_TO_HZ, _FROM_HZ)
    phase = 2 * np.pi * np.cumsum(np.geomspace(*ends, len(time))) / _RATE
    # Without the envelope a tone would begin and end with a click.
    envelope = np.sin(np.pi * time / _SECONDS) ** 2
    samples = (32767 * _LOUDNESS * envelope * np.sin(phase)).astype("<i2")
    file = io.BytesIO()
    with wave.open(file, "wb") as written:
        written.setnchannels(1)
        written.setsampwidth(2)
        written.setframerate(_RATE)
        written.writeframes(samples.tobytes())
    return file.getvalue()
