"""What is measured of a picture, on pictures whose measures follow from their definition."""

import numpy as np
import pytest

from sampler.objects.images import describe_image

SIDE = 64


def flat(*colour):
    return np.full((SIDE, SIDE, 3), colour, dtype=np.uint8)


def halves(left, right):
    picture = flat(*left)
    picture[:, SIDE // 2 :] = right
    return picture


BLACK, WHITE, RED, BLUE = (0, 0, 0), (255, 255, 255), (255, 0, 0), (0, 0, 255)


def test_grey_has_no_colour_no_contrast_no_edge_and_is_symmetric():
    described = describe_image(flat(90, 90, 90))
    assert described.colourfulness == pytest.approx(0)
    assert described.contrast == pytest.approx(0)
    assert described.edge_density == 0
    assert described.symmetry == 1


def test_colourfulness_follows_the_published_formula():
    """Red: rg = 255, yb = 127.5, no spread. Red and blue halves: rg 255 and 0, yb 127.5 and -255."""
    assert describe_image(flat(*RED)).colourfulness == pytest.approx(0.3 * np.hypot(255, 127.5))
    spread, centre = np.hypot(127.5, 191.25), np.hypot(127.5, -63.75)
    assert describe_image(halves(RED, BLUE)).colourfulness == pytest.approx(spread + 0.3 * centre)


def test_black_and_white_halves_have_the_largest_contrast_and_one_edge():
    described = describe_image(halves(BLACK, WHITE))
    assert described.contrast == pytest.approx(0.5)
    # The step lies between two columns; the centred difference sees it from both.
    assert described.edge_density == pytest.approx(2 / SIDE)
    assert described.symmetry == pytest.approx(-1)


@pytest.mark.parametrize("shape", [(1, 1), (1, 7), (7, 1), (2, 1), (1, 1024)])
def test_what_a_row_or_a_column_has_no_measure_of_is_absent_and_the_rest_is_measured(shape):
    pixels = np.random.default_rng(3).integers(0, 256, (*shape, 3), dtype=np.uint8)
    described = describe_image(pixels)
    assert described.edge_density is None
    measured = (described.colourfulness, described.contrast, described.symmetry)
    assert np.all(np.isfinite(measured))
    if shape[1] == 1:
        assert described.symmetry == pytest.approx(1)
