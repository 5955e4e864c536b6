"""Generated images: the decoder's pictures, the latents that are their states, the files made of them."""

import io
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image
from scipy import stats

from sampler.objects.images import png
from sampler.spaces.latents import Latent, normals_of, standard_normals
from sampler.spaces.patterns import DIMENSION, ImagesConfig
from sampler.streams import Purpose, stream

SPACE = ImagesConfig().build()
CHAINS = range(24)


def latent(chain):
    return SPACE.start(stream(31, chain, 0, Purpose.START), chain)


@pytest.fixture(scope="module")
def pictures():
    return [SPACE.pixels(latent(chain)) for chain in CHAINS]


def test_another_process_with_another_number_of_threads_makes_the_same_picture(pictures):
    program = (
        "import sys; from sampler.spaces.patterns import ImagesConfig; space = ImagesConfig().build(); "
        "sys.stdout.buffer.write(space.pixels(space.decode(sys.stdin.read())).tobytes())"
    )
    for threads in ("1", "3"):
        made = subprocess.run(
            [sys.executable, "-c", program],
            input=SPACE.encode(latent(0)).encode(),
            env={"OMP_NUM_THREADS": threads, "OPENBLAS_NUM_THREADS": threads, "PYTHONHASHSEED": threads},
            capture_output=True,
            check=True,
        )
        assert made.stdout == pictures[0].tobytes()


def test_every_number_of_the_latent_is_read():
    """Each number must change some picture, else part of the state would be invisible."""
    unread = set(range(DIMENSION))
    for chain in range(60):
        if not unread:
            break
        vector, seen = latent(chain).vector, SPACE.pixels(latent(chain))
        for place in sorted(unread):
            changed = vector.copy()
            changed[place] = -changed[place] - 0.5
            if not np.array_equal(SPACE.pixels(Latent.of(changed)), seen):
                unread.discard(place)
    assert not unread


def test_rounding_apart_latents_are_close_and_others_are_not():
    vector = latent(0).vector
    assert SPACE.is_close(latent(0), Latent.of(np.nextafter(vector, 9)))
    assert not SPACE.is_close(latent(0), Latent.of(vector + 1e-6))
    assert not SPACE.is_close(latent(0), latent(1))
    assert not SPACE.is_close(latent(0), Latent.of(vector[1:]))


def test_a_state_survives_its_code_bit_by_bit():
    for chain in CHAINS:
        assert SPACE.decode(SPACE.encode(latent(chain))) == latent(chain)


def code_of(vector):
    return SPACE.encode(Latent(np.asarray(vector, dtype="<f8").tobytes()))


@pytest.mark.parametrize(
    ("code", "complaint"),
    [
        ("", f"must hold {DIMENSION} numbers of 8 bytes each, not 0 bytes"), ("not base64!", "must be base64"),
        ("é", "must be base64"), (code_of(np.zeros(DIMENSION - 1)), f"must hold {DIMENSION} numbers"),
        (code_of(np.zeros(DIMENSION)) + "\n", "must be base64"),
        (code_of([*np.zeros(DIMENSION - 1), np.nan]), "no NaN and no infinity"),
        (code_of([-np.inf, *np.zeros(DIMENSION - 1)]), "no NaN and no infinity"),
    ],
    ids=["empty", "not base64", "not ascii", "too short", "a line more", "nan", "infinity"],
)  # fmt: skip
def test_other_texts_are_no_states(code, complaint):
    with pytest.raises(ValueError, match=complaint):
        SPACE.decode(code)


def test_normals_of_every_uniform_are_finite_and_symmetric():
    ends = np.array([0, 1, 2**52 - 1, 2**52, 2**53 - 2, 2**53 - 1]) * 2.0**-53
    normals = normals_of(ends)
    assert np.all(np.abs(normals) < 8.3)
    assert np.array_equal(normals, -normals[::-1])
    assert np.all(np.diff(normals) > 0)


def test_normals_are_standard_normal_and_a_function_of_the_stream():
    drawn = standard_normals(stream(3, 0, 0, Purpose.START), 20_000)
    # Kolmogorov-Smirnov; under the null it falls below this in one seed of 10,000. The seed is fixed.
    assert stats.kstest(drawn, "norm").pvalue > 1e-4
    assert np.array_equal(drawn, standard_normals(stream(3, 0, 0, Purpose.START), 20_000))
    # The negative control: a tenth too wide.
    assert stats.kstest(1.1 * drawn, "norm").pvalue < 1e-4


def test_starts_and_refreshes_are_draws_from_the_prior():
    rng = stream(3, 0, 1, Purpose.PROPOSAL)
    drawn = [SPACE.start(rng, 0).vector for _ in range(60)] + [SPACE.refresh(rng, latent(0)).vector for _ in range(60)]
    assert stats.kstest(np.concatenate(drawn), "norm").pvalue > 1e-4


def test_log_p0_is_that_of_the_standard_normal():
    gained = SPACE.log_p0(latent(0)) - SPACE.log_p0(latent(1))
    exact = [float(stats.norm.logpdf(latent(chain).vector).sum()) for chain in (0, 1)]
    assert gained == pytest.approx(exact[0] - exact[1], rel=1e-12)


def test_the_original_is_lossless(pictures):
    with Image.open(io.BytesIO(png(pictures[0]))) as image:
        assert image.format == "PNG"
        assert np.array_equal(np.asarray(image), pictures[0])
