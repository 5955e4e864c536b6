"""Decoded images per second against writing the same pictures as PNG files, in one run.

    python -m tests.benchmarks.images [--images 120]

Both take one core. Writing the PNG is the baseline: an original must be written however it came about, and its time
grows with the number of pixels and with how much there is to see in them. The best of three rounds counts, with the
same latents in each. Also shown are one preview as WebP, what is measured of a picture, and a proposal without it.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence

import numpy as np

from sampler.kernels.crank_nicolson import CrankNicolson
from sampler.objects.images.encoding import png, preview
from sampler.objects.images.measures import describe_image
from sampler.spaces.images.space import ImagesRecipe
from sampler.streams import Purpose, stream

ROUNDS = 3
PREVIEW_SIDE = 192


def seconds_each(work: Callable, things: Sequence) -> np.ndarray:
    """Return the seconds that the work takes for each thing, the best of three."""
    best = np.full(len(things), np.inf)
    for _ in range(ROUNDS):
        for place, thing in enumerate(things):
            begun = time.perf_counter()
            work(thing)
            best[place] = min(best[place], time.perf_counter() - begun)
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=int, default=120)
    options = parser.parse_args()
    space, kernel = ImagesRecipe().build(), CrankNicolson(0.08)
    states = [space.start(stream(1, chain, 0, Purpose.START), chain) for chain in range(options.images)]
    pictures = [space.pixels(state) for state in states]
    rng = stream(1, 0, 1, Purpose.PROPOSAL)
    baseline = seconds_each(png, pictures).sum()
    print(f"{'':<16}{'per second':>12}{'/ PNG':>10}{'median ms':>12}{'largest ms':>12}")
    for name, work, things in (
        ("decode", space.pixels, states),
        ("PNG", png, pictures),
        ("WebP preview", lambda picture: preview(picture, PREVIEW_SIDE), pictures),
        ("describe", describe_image, pictures),
        ("propose", lambda state: kernel.propose(rng, state), states),
    ):
        each = seconds_each(work, things)
        total = each.sum()
        print(
            f"{name:<16}{len(things) / total:>12,.0f}{total / baseline:>10.2f}"
            f"{1e3 * np.median(each):>12.2f}{1e3 * each.max():>12.2f}"
        )


if __name__ == "__main__":
    main()
