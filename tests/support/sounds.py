"""Recordings as a researcher would send them, built in memory."""

from __future__ import annotations

import io

import numpy as np
import soundfile


def tone(
    hertz: float = 440.0, seconds: float = 0.5, rate: int = 16_000, channels: int = 1, loudness: float = 0.5
) -> np.ndarray:
    """Return the samples of a tone, shape (frames, channels)."""
    time = np.arange(round(seconds * rate)) / rate
    return np.tile((loudness * np.sin(2 * np.pi * hertz * time))[:, None], channels)


def recorded(samples: np.ndarray, rate: int = 16_000, kind: str = "WAV", subtype: str | None = None) -> bytes:
    """Return samples as the bytes of a file."""
    file = io.BytesIO()
    soundfile.write(file, samples, rate, format=kind, subtype=subtype)
    return file.getvalue()


def recording(hertz: float = 440.0, kind: str = "WAV", subtype: str | None = None, **of_tone: float) -> bytes:
    """Return a tone as the bytes of a file."""
    samples = tone(hertz, **of_tone)
    return recorded(samples, int(of_tone.get("rate", 16_000)), kind, subtype)
