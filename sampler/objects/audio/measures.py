"""What can be measured of a recording without knowing what is said or played in it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sampler.objects.audio.coding import mono_pieces

_Values = npt.NDArray[np.float64]
_WINDOW_S = 0.05
# Below the loudest window: what a listener takes for a pause at any setting of the volume.
_PAUSE_DB = -40.0
_QUIETEST = 1e-10
_BANDS = 24
_LOWEST_HZ = 60.0
# So that distances between timbres are near 1.
_TIMBRE_DB = 100.0


@dataclass(frozen=True)
class AudioDescription:
    """Measures of one recording, of the mean of its channels.

    Args:
        seconds: how long it is.
        level: root mean square in decibels of full scale, 0 at most; None for silence.
        brightness: spectral centroid in hertz: the mean frequency, each weighted by its power; None for silence.
        pauses: the share of windows of 50 ms that are more than 40 decibels below the loudest one, 0 to 1; None for
            silence.
    """

    seconds: float
    level: float | None
    brightness: float | None
    pauses: float | None


def describe_audio(data: bytes) -> AudioDescription:
    """Measure a recording.

    Args:
        data: its file, in one of the formats that a list may have.

    Raises:
        ValueError: it cannot be decoded.
    """
    windows, seconds, rate = _windows(data)
    powers: list[_Values] = []
    spectrum: _Values = np.zeros(1)
    for block in windows:
        powers.append(np.mean(block * block, axis=1))
        spectrum = spectrum + _spectra(block).sum(axis=0)
    power = np.concatenate(powers)
    if power.max() <= _QUIETEST:
        return AudioDescription(seconds, None, None, None)
    frequencies = np.fft.rfftfreq(_length(rate), 1 / rate)
    return AudioDescription(
        seconds=seconds,
        level=float(10 * np.log10(power.mean())),
        brightness=float(frequencies @ spectrum / spectrum.sum()),
        pauses=float(np.mean(power < power.max() * 10 ** (_PAUSE_DB / 10))),
    )


def timbre(data: bytes) -> _Values:
    """Return how a recording sounds, whatever its length: mean and standard deviation over time of its level in 24
    bands that are equally wide in octaves, in units of 100 decibels, shape (48,).

    Raises:
        ValueError: it cannot be decoded.
    """
    windows, _, rate = _windows(data)
    edges = np.geomspace(_LOWEST_HZ, rate / 2, _BANDS + 1)
    band = np.clip(np.searchsorted(edges, np.fft.rfftfreq(_length(rate), 1 / rate)) - 1, 0, _BANDS - 1)
    members = (band[:, None] == np.arange(_BANDS)).astype(np.float64)
    levels = np.concatenate([10 * np.log10(_spectra(block) @ members + _QUIETEST) for block in windows])
    return np.asarray(np.concatenate([levels.mean(axis=0), levels.std(axis=0)]) / _TIMBRE_DB, dtype=np.float64)


def _windows(data: bytes) -> tuple[Iterator[_Values], float, int]:
    """Return the windows of 50 ms, in blocks of shape (windows, samples), the seconds and the rate.

    The last window is filled up with silence, so that a short recording has one.
    """
    pieces, rate = mono_pieces(data)
    samples = np.concatenate(list(pieces))
    length = _length(rate)
    padded = np.pad(samples, (0, -len(samples) % length)).reshape(-1, length)
    # Whole minutes of spectra at once would take gigabytes.
    blocks = (padded[first : first + 200].astype(np.float64) for first in range(0, len(padded), 200))
    return blocks, len(samples) / rate, rate


def _length(rate: int) -> int:
    return round(rate * _WINDOW_S)


def _spectra(block: _Values) -> _Values:
    """Return the power of each window at each frequency, shape (windows, frequencies)."""
    shape = np.hanning(block.shape[1])
    return np.asarray(np.abs(np.fft.rfft(block * shape, axis=1)) ** 2 / np.sum(shape**2), dtype=np.float64)
