"""Reading recordings from a ZIP: what is kept, what is dropped, what is refused; and what is measured of one."""

import io
import struct
from functools import partial

import numpy as np
import pytest
import soundfile

import sampler
from tests.support.uploads import archive, picture, read, recorded, recording, refused, tone

TWO = {"a.wav": recording(220), "b.wav": recording(880)}


def recordings(files):
    return {item.content: item for item in read("audio", archive(files)).items}


def decoded(item):
    return soundfile.read(io.BytesIO(item.picture), dtype="float64", always_2d=True)


reason = partial(refused, "audio", TWO)


@pytest.mark.parametrize(
    ("kind", "subtype", "media_type", "tolerance"),
    [
        ("WAV", "PCM_16", "audio/flac", 0), ("WAV", "PCM_24", "audio/flac", 0), ("WAV", "PCM_U8", "audio/flac", 0),
        ("WAV", "FLOAT", "audio/flac", 2**-22), ("FLAC", "PCM_16", "audio/flac", 0),
        ("AIFF", "PCM_16", "audio/flac", 0),
    ],
)  # fmt: skip
def test_lossless_recordings_keep_every_sample(kind, subtype, media_type, tolerance):
    sent = recording(330, kind, subtype, channels=2)
    item = recordings(TWO | {"x": sent})["x"]
    assert item.media_type == media_type
    (before, rate), (after, rate_after) = soundfile.read(io.BytesIO(sent), always_2d=True), decoded(item)
    assert rate == rate_after
    assert before.shape == after.shape
    np.testing.assert_allclose(after, before, rtol=0, atol=tolerance)


@pytest.mark.parametrize(("kind", "subtype"), [("MP3", None), ("OGG", "VORBIS"), ("OGG", "OPUS")])
def test_lossy_recordings_become_mp3_and_sound_alike(kind, subtype):
    item = recordings(TWO | {"x": recording(330, kind, subtype, seconds=1.0)})["x"]
    assert item.media_type == "audio/mpeg"
    samples, rate = decoded(item)
    spectrum = np.abs(np.fft.rfft(samples[:, 0]))
    assert np.argmax(spectrum) * rate / len(samples) == pytest.approx(330, abs=3)
    assert np.sqrt(np.mean(samples**2)) == pytest.approx(0.5 / np.sqrt(2), rel=0.1)


def test_recordings_of_the_same_samples_are_one_whatever_their_files():
    samples = tone(330)
    files = {
        f"{kind}-{subtype}": recorded(samples.round(4) // 2**-15 * 2**-15, kind=kind, subtype=subtype)
        for kind, subtype in (("WAV", "PCM_16"), ("FLAC", "PCM_16"), ("AIFF", "PCM_24"), ("WAV", "FLOAT"))
    }
    louder = {
        "louder": recorded(samples * 1.01),
        "slower": recorded(samples, rate=8_000),
        "wider": recorded(np.repeat(samples, 2, 1)),
    }
    reading = read("audio", archive(files | louder))
    assert [(item.content, item.weight) for item in reading.items] == [
        ("WAV-PCM_16", 4), ("louder", 1), ("slower", 1), ("wider", 1),
    ]  # fmt: skip


def test_tags_and_pictures_in_a_recording_are_dropped():
    secret = b"<script>alert(1)</script>"
    tags = b"TIT2" + struct.pack(">I", len(secret) + 1) + b"\0\0\0" + secret
    header = b"ID3\x03\0\0" + bytes([0, 0, len(tags) >> 7, len(tags) & 127])
    page = b"\n" + secret
    sent = {"tagged.mp3": header + tags + recording(kind="MP3"), "polyglot.wav": recording() + page}
    for item in recordings(TWO | sent).values():
        assert secret not in item.picture
    assert set(recordings(TWO | sent)) == {*TWO, *sent}


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "not a recording; accepted are WAV"),
        (b"words, and no sound", "not a recording"),
        (picture(), "not a recording"),
        (b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>", "not a recording"),
        (b"RIFF\x24\0\0\0WEBPVP8 ", "not a recording"),
        (b"MThd\0\0\0\6\0\1\0\2", "not a recording"),
        # Formats that libsndfile would open.
        (recorded(tone(), kind="AU"), "not a recording"),
        (recorded(tone(), kind="CAF"), "not a recording"),
        (b"fLaC" + b"\0" * 200, "cannot be read"),
        (b"OggS" + b"\xff" * 200, "cannot be read"),
        (recorded(tone(), subtype="IMA_ADPCM"), "coded as IMA_ADPCM; save it as WAV, FLAC or MP3"),
        (recording(channels=3), "3 channels; at most 2"),
        (recording(rate=96_000), "96,000 samples a second; 8,000 to 48,000 are allowed"),
        (recording(rate=4_000), "4,000 samples a second"),
        (recorded(np.zeros((0, 1))), "the recording is empty"),
        (recorded(np.array([[0.1], [np.nan], [0.2]]), subtype="FLOAT"), "samples that are no numbers"),
        (recorded(np.zeros((301 * 8_000, 1)), 8_000), "longer than 5 minutes"),
        # Hours of silence in some kilobytes.
        (recorded(np.zeros((3_600 * 8_000, 1), np.int16), 8_000, "FLAC"), "longer than 5 minutes"),
    ],
    # Some formats hold the time when they were made, which the names of tests must not.
    ids=lambda value: "content" if isinstance(value, bytes) else None,
)
def test_what_cannot_be_played_is_refused_with_a_reason(content, told):
    assert told in reason("x.wav", content)


def test_a_header_that_claims_hours_is_not_believed():
    sent = bytearray(recording(seconds=0.5))
    at = sent.index(b"data")
    sent[at + 4 : at + 8] = struct.pack("<I", 2**31)
    sent[4:8] = struct.pack("<I", 2**31 + 36)
    items = recordings(TWO | {"x.wav": bytes(sent)})
    if "x.wav" in items:
        samples, rate = decoded(items["x.wav"])
        assert len(samples) / rate == pytest.approx(0.5, abs=0.01)


@pytest.mark.parametrize("kind", ["WAV", "FLAC", "MP3", "OGG", "AIFF"])
def test_a_recording_that_is_cut_off_anywhere_is_refused_or_shorter(kind):
    """Nothing but a refusal with a reason may come of it, whatever libsndfile makes of the rest."""
    whole = recording(kind=kind)
    rng = np.random.default_rng(20)
    for index, cut in enumerate(rng.integers(1, len(whole), 30)):
        for name, broken in {f"cut{index}": whole[:cut], f"torn{index}": whole[:cut] + bytes(40) + whole[cut:]}.items():
            reading = read("audio", archive(TWO | {name: broken}))
            assert len(reading.items) + len(reading.refusals) == 3
            for item in reading.items:
                samples, _ = decoded(item)
                assert np.isfinite(samples).all()


def test_a_tone_is_measured():
    found = sampler.describe_audio(recording(1_000, seconds=2.0, loudness=0.5))
    assert found.seconds == pytest.approx(2)
    # A sine of amplitude A has the power A²/2.
    assert found.level == pytest.approx(10 * np.log10(0.5**2 / 2), abs=0.01)
    assert found.brightness == pytest.approx(1_000, abs=10)
    assert found.pauses == 0
