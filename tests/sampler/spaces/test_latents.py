"""Latents as a space: the patterns that are decoded here, and the pictures that a model elsewhere makes."""

import csv
import io
import math
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image
from scipy import stats

from sampler import PAPER_MIXTURE, ConfigError, CrankNicolson, parse_config, replay
from sampler.chain import Purpose, stream
from sampler.objects.images import png
from sampler.spaces import latents
from sampler.spaces.patterns import DIMENSION, ImagesConfig
from tests.sampler.kernels.test_crank_nicolson import random_walk
from tests.support.sampling import MIN_P_VALUE, Voters, run_campaign, walk

# Generated images: the decoder's pictures, the latents that are their states, the files made of them.


PATTERNS = ImagesConfig().build()
LATENT = PATTERNS.start(stream(31, 0, 0, Purpose.START), 0)


def test_another_process_with_another_number_of_threads_makes_the_same_picture():
    program = (
        "import sys; from sampler.spaces.patterns import ImagesConfig; space = ImagesConfig().build(); "
        "sys.stdout.buffer.write(space.pixels(space.decode(sys.stdin.read())).tobytes())"
    )
    for threads in ("1", "3"):
        made = subprocess.run(
            [sys.executable, "-c", program],
            input=PATTERNS.encode(LATENT).encode(),
            env={"OMP_NUM_THREADS": threads, "OPENBLAS_NUM_THREADS": threads, "PYTHONHASHSEED": threads},
            capture_output=True,
            check=True,
        )
        assert made.stdout == PATTERNS.pixels(LATENT).tobytes()


def code_of(vector):
    return PATTERNS.encode(latents.Latent(np.asarray(vector, dtype="<f8").tobytes()))


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
        PATTERNS.decode(code)


def test_normals_of_every_uniform_are_finite_and_symmetric():
    ends = np.array([0, 1, 2**52 - 1, 2**52, 2**53 - 2, 2**53 - 1]) * 2.0**-53
    normals = latents.normals_of(ends)
    assert np.all(np.abs(normals) < 8.3)
    assert np.array_equal(normals, -normals[::-1])
    assert np.all(np.diff(normals) > 0)


def test_starts_and_refreshes_are_draws_from_the_prior():
    rng = stream(3, 0, 1, Purpose.PROPOSAL)
    latents_drawn = [PATTERNS.start(rng, 0) for _ in range(60)] + [PATTERNS.refresh(rng, LATENT) for _ in range(60)]
    drawn = np.concatenate([each.vector for each in latents_drawn])
    # Kolmogorov-Smirnov; under the null it falls below this in one seed of 10,000. The seed is fixed.
    assert stats.kstest(drawn, "norm").pvalue > 1e-4
    # The negative control: a tenth too wide.
    assert stats.kstest(1.1 * drawn, "norm").pvalue < 1e-4


def test_the_original_is_lossless():
    for chain in range(24):
        pixels = PATTERNS.pixels(PATTERNS.start(stream(31, chain, 0, Purpose.START), chain))
        with Image.open(io.BytesIO(png(pixels))) as image:
            assert image.format == "PNG"
            assert np.array_equal(np.asarray(image), pixels)


# Latents on the grid of float32, whose pictures a model elsewhere makes: drawn, stored and replayed without it.


SERVED = {"kind": "model-images", "model": "turbo", "prompt": "a red mushroom"}
CONFIG = {
    "space": SERVED, "kernel": PAPER_MIXTURE, "judges": [{"question": "Which is rounder?", "votes": 1}], "chains": 2,
    "steps": 6, "seed": 12,
}  # fmt: skip


def config(**changes):
    return parse_config(CONFIG | changes)


def space(dimension=latents.SDXL_TURBO_DIMENSION):
    return config(space=SERVED | {"dimension": dimension}).build().space


def start(chain=0, dimension=latents.SDXL_TURBO_DIMENSION):
    return space(dimension).start(stream(5, chain, 0, Purpose.START), chain)


def is_single(vector):
    return np.array_equal(vector, vector.astype(np.float32))


def test_only_moves_on_latents_are_taken():
    for kind in ("suffix", "neighbours", "fragments"):
        with pytest.raises(ConfigError, match="use 'independent' or 'crank-nicolson', or a mixture"):
            config(kernel={"kind": kind})
    assert config(kernel={"kind": "crank-nicolson", "beta": 0.2}).build()


def test_states_are_the_nearest_numbers_of_float32_to_what_is_drawn():
    drawn = latents.standard_normals(stream(5, 0, 0, Purpose.START), latents.SDXL_TURBO_DIMENSION)
    assert np.array_equal(start().vector, drawn.astype(np.float32))
    assert not is_single(drawn)


def test_a_proposal_is_the_rounded_move_from_the_state_as_it_is_stored():
    one, exact = start(), latents.Latent.of(start().vector)
    rounded, unrounded = (
        CrankNicolson(0.25).propose(stream(5, 0, 1, Purpose.PROPOSAL), state).state for state in (one, exact)
    )
    assert np.array_equal(rounded.vector, unrounded.vector.astype(np.float32))
    assert is_single(rounded.vector)
    assert not is_single(unrounded.vector)


@pytest.mark.parametrize("dimension", [1, 2, 3, latents.SDXL_TURBO_DIMENSION, latents.MAX_DIMENSION])
def test_a_state_survives_its_code_bit_by_bit_in_a_cell_that_csv_readers_take(dimension):
    state, here = start(0, dimension), space(dimension)
    code = here.encode(state)
    text = io.StringIO()
    # Export puts an apostrophe before a code that begins with a plus sign.
    csv.writer(text).writerow(["'" + code])
    [[read]] = csv.reader(io.StringIO(text.getvalue()))
    assert len(read) <= csv.field_size_limit()
    assert here.decode(read.removeprefix("'")) == state


def test_codes_of_another_space_are_refused():
    of_float64 = latents.LatentSpace(latents.SDXL_TURBO_DIMENSION).encode(latents.Latent.of(start().vector))
    with pytest.raises(ValueError, match="must hold 16384 numbers of 4 bytes each, not 131072 bytes"):
        space().decode(of_float64)
    broken = start().vector.copy()
    broken[3] = np.nan
    with pytest.raises(ValueError, match="no NaN"):
        latents.Latent.of(broken, "<f4")
    with pytest.raises(ValueError, match="no infinity"):
        latents.Latent.of([1e39], "<f4")


def test_what_rounding_may_do_is_close_and_a_move_is_not():
    here, state = space(), start()
    rounded = latents.Latent.of(np.nextafter(state.vector.astype(np.float32), np.float32(9)), "<f4")
    assert rounded != state
    assert here.is_close(state, rounded)
    assert not here.is_close(state, latents.Latent.of(state.vector + 1e-5, "<f4"))
    small = CrankNicolson(1e-4).propose(stream(5, 0, 1, Purpose.PROPOSAL), state).state
    assert not here.is_close(state, small)


def last_of(kernel, steps):
    return list(walk(stream(9, 0, 1, Purpose.PROPOSAL), kernel, start(), steps))[-1].vector


def test_many_moves_on_the_grid_keep_the_standard_normal():
    """Kolmogorov-Smirnov on 16,384 numbers: a correct kernel falls below this in one seed of 10,000."""
    vector = last_of(CrankNicolson(0.25), 200)
    assert is_single(vector)
    assert stats.kstest(vector, "norm").pvalue > MIN_P_VALUE
    # Of the start there is left a correlation of (1 - β²)^100, 0.002, and an estimate strays by 1 / sqrt(d).
    assert abs(np.corrcoef(vector, start().vector)[0, 1]) < 5 / math.sqrt(latents.SDXL_TURBO_DIMENSION) + 0.01
    assert stats.kstest(last_of(random_walk(0.25), 200), "norm").pvalue < MIN_P_VALUE


def record(dimension=64):
    """Return the record of a campaign."""
    described = config(space=SERVED | {"dimension": dimension})
    return run_campaign(described, [Voters(lambda state: 0.0)])


def test_a_record_replays_without_the_model_also_one_of_a_machine_that_rounds_otherwise_and_no_tampered_one():
    whole = record()
    found = replay(whole)
    assert (found.differences, found.verdicts, found.votes) == ((), 12, 12)
    states = whole["states"]
    here = space(64)
    for by, agrees in ((np.float32(2.0**-24), True), (np.float32(1e-3), False)):
        vector = here.decode(states[-1]["code"]).vector.astype(np.float32)
        vector[7] *= 1 + 2 * by
        moved = latents.Latent.of(vector, "<f4")
        # Its name follows from the code, also where another machine has rounded.
        last = states[-1] | {"code": here.encode(moved), "content": here.content(moved)}
        renamed = {last["state_index"]: {"content": last["content"]}}
        samples = [row | renamed.get(row["state_index"], {}) for row in whole["samples"]]
        found = replay(whole.but(states=[*states[:-1], last], samples=samples))
        assert (found.differences == ()) == agrees
