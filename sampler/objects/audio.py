"""Audio: a ZIP of recordings, with a `weights.csv` (columns file, weight, and others) inside if wanted.

Every recording is decoded in pieces of bounded size and encoded again, so nothing but samples passes: no tags, no
pictures, no names, and no bytes that another program could read otherwise. How loud it is stays as it was. What is
measured of it needs no knowledge of what is said or played in it.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from sampler.objects.items import Encoded

Samples: TypeAlias = npt.NDArray[np.float32] | npt.NDArray[np.int32]

MAX_SECONDS: Final = 300
MAX_CHANNELS: Final = 2
RATES: Final = (8_000, 48_000)
"""The fewest and the most samples a second: what every browser plays."""
FORMATS: Final = ("WAV", "FLAC", "MP3", "Ogg Vorbis", "Ogg Opus", "AIFF")
_LOSSY = ("MPEG_LAYER_I", "MPEG_LAYER_II", "MPEG_LAYER_III", "VORBIS", "OPUS")
_FLOATING = ("FLOAT", "DOUBLE")
_FINE = ("PCM_24", "PCM_32", *_FLOATING)
_COARSE = ("PCM_16", "PCM_S8", "PCM_U8", "ULAW", "ALAW")
# Of MPEG 1, 2 and 2.5. Other rates are kept as FLAC.
_MP3_RATES = (8_000, 11_025, 12_000, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000)
_PIECE = 2**16


def encoded(data: bytes) -> Encoded:
    """Decode a recording and encode its samples again as FLAC, or as MP3 where the original was lossy already.

    Recordings of the same samples, to 24 bits, are alike.

    Raises:
        ValueError: it is no recording in one of `FORMATS`, is damaged or empty, or has more seconds, channels or
            samples a second than may be.
    """
    import soundfile

    with _opened(data) as original:
        is_mp3 = original.subtype in _LOSSY and original.samplerate in _MP3_RATES
        # 24 bits hold all that is in a sample of a lossless file, or more than anybody hears.
        subtype = "MPEG_LAYER_III" if is_mp3 else "PCM_24" if original.subtype in _FINE else "PCM_16"
        dtype = _dtype_of(original)
        file, heard = io.BytesIO(), hashlib.sha256(f"{original.samplerate} {original.channels}".encode())
        with soundfile.SoundFile(
            file, "w", original.samplerate, original.channels, subtype, format="MP3" if is_mp3 else "FLAC"
        ) as copy:
            for piece in _pieces(original, dtype):
                copy.write(piece)
                # Of both types of samples the first 24 bits.
                scale = 2.0**-8 if piece.dtype == np.int32 else 2.0**23
                heard.update(np.clip(np.rint(piece * scale), -(2**23), 2**23 - 1).astype("<i4").tobytes())
    return Encoded(file.getvalue(), "audio/mpeg" if is_mp3 else "audio/flac", heard.hexdigest())


def _opened(data: bytes) -> Any:
    """Return the file opened by libsndfile, once its first bytes say that it is of one of the formats."""
    # Imported here: few processes hear recordings, and the library is loaded with it.
    import soundfile

    if not _is_of_a_format(data):
        raise ValueError(f"not a recording; accepted are {', '.join(FORMATS)}")
    try:
        original = soundfile.SoundFile(io.BytesIO(data))
    except (soundfile.LibsndfileError, ValueError) as error:
        raise ValueError(f"the recording cannot be read: {_reason(error)}") from error
    if original.subtype not in (*_LOSSY, *_FINE, *_COARSE):
        raise ValueError(f"the recording is coded as {original.subtype}; save it as WAV, FLAC or MP3")
    if not 1 <= original.channels <= MAX_CHANNELS:
        raise ValueError(f"the recording has {original.channels} channels; at most {MAX_CHANNELS} are allowed")
    if not RATES[0] <= original.samplerate <= RATES[1]:
        raise ValueError(
            f"the recording has {original.samplerate:,} samples a second; {RATES[0]:,} to {RATES[1]:,} are allowed"
        )
    return original


def _is_of_a_format(data: bytes) -> bool:
    """True where the first bytes are those of a format in `FORMATS`. libsndfile would open many more."""
    if data[:4] in (b"RIFF", b"FORM"):
        return data[8:12] in (b"WAVE", b"AIFF", b"AIFC")
    is_mpeg_frame = data[:1] == b"\xff" and len(data) > 1 and data[1] & 0xE0 == 0xE0
    return data[:4] in (b"fLaC", b"OggS") or data[:3] == b"ID3" or is_mpeg_frame


def _dtype_of(original: Any) -> Literal["float32", "int32"]:
    """Return the type that holds the samples as they are: whole numbers stay whole."""
    return "float32" if original.subtype in (*_LOSSY, *_FLOATING) else "int32"


def _pieces(original: Any, dtype: Literal["float32", "int32"]) -> Iterator[Samples]:
    """Yield the samples, shape (at most 65,536, channels). How many there are is counted: a header may lie."""
    import soundfile

    most, taken = MAX_SECONDS * original.samplerate, 0
    while True:
        try:
            piece = original.read(_PIECE, dtype=dtype, always_2d=True)
        except (soundfile.LibsndfileError, ValueError) as error:
            raise ValueError(f"the recording is broken: {_reason(error)}") from error
        if not len(piece):
            break
        taken += len(piece)
        if taken > most:
            raise ValueError(f"the recording is longer than {MAX_SECONDS // 60} minutes")
        yield _playable(piece) if dtype == "float32" else piece
    if not taken:
        raise ValueError("the recording is empty")


def _playable(piece: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    if not np.isfinite(piece).all():
        raise ValueError("the recording has samples that are no numbers")
    return np.clip(piece, -1, 1)


def _reason(error: Exception) -> str:
    return str(error).removeprefix("Error opening ").rpartition(">: ")[2].rstrip(".")


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
    original = _opened(data)
    samples = np.concatenate([piece.mean(axis=1, dtype=np.float32) for piece in _pieces(original, "float32")])
    rate, length = original.samplerate, _length(original.samplerate)
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
