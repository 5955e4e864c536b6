"""The space of latents z ~ N(0, I): drawing them, the codes by which a record holds them, and images that a model makes
of them elsewhere.

p0 is fixed. Crank-Nicolson moves (`sampler.kernels.crank_nicolson`) are reversible for N(0, I) and for nothing else.

A code is the numbers' bytes as base64: `decode` gives back every bit. On the grid of float64 that is 11 characters a
number, on that of float32 half as many, which is what keeps 16,384 of them in a cell that every CSV reader takes.

The grid of float32. Starts, fresh draws and moves are worked out in float64 and each number is then rounded to
float32, by at most 2^-24 of its size. The rounded number is the state: it is what is stored, decoded and moved from,
and a replay draws the very same one. p0 is thus N(0, I) rounded, and moves are reversible for it up to rounding, as on
the grid of float64 but at 2^-24 in place of 2^-53. Rounding adds a variance of some 2^-50 to a step of variance β²: a
share of less than 10^-12 at β = 0.08. Nothing that is seen rests on it: image models work in float32 or in half of it.

Of a model outside this package, the config says how many numbers its latents have. That is all it takes to draw, store
and replay a chain; only the pictures, and what is measured of them, are the model's.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from dataclasses import dataclass
from typing import Annotated, ClassVar, Final, Literal

import numpy as np
import numpy.typing as npt
from pydantic import ConfigDict, Field, StringConstraints
from scipy import special

from sampler.declared import Declared, ui

Vector = npt.NDArray[np.float64]
Grid = Literal["<f8", "<f4"]
"""The numbers a latent may have: those of float64 or of float32, both stored little-endian."""

_HALF_STEP = 2.0**-54


@dataclass(frozen=True)
class Latent:
    """A latent vector as its bytes, so that it is quick to hash and compares number by number, bit by bit.

    Args:
        data: the numbers, 8 or 4 bytes each.
        grid: which numbers they may be. What is drawn for such a latent is worked out in float64, then rounded.
    """

    data: bytes
    grid: Grid = "<f8"

    @classmethod
    def of(cls, vector: npt.ArrayLike, grid: Grid = "<f8") -> Latent:
        """Return the latent of a vector, shape (d,), each number rounded to the nearest of the grid.

        Raises:
            ValueError: not one row of finite numbers.
        """
        with np.errstate(over="ignore"):
            numbers = np.asarray(vector).astype(grid)
        if numbers.ndim != 1 or not numbers.size:
            raise ValueError(f"a latent must be one row of numbers, not an array of shape {numbers.shape}")
        if not np.all(np.isfinite(numbers)):
            raise ValueError("a latent must hold finite numbers only, no NaN and no infinity")
        return cls(numbers.tobytes(), grid)

    @property
    def vector(self) -> Vector:
        """The numbers, shape (d,), read-only."""
        numbers: Vector = np.frombuffer(self.data, dtype=self.grid).astype(np.float64, copy=False)
        numbers.flags.writeable = False
        return numbers


def standard_normals(rng: np.random.Generator, dimension: int) -> Vector:
    """Draw z ~ N(0, I), shape (dimension,), from `rng.random()` alone.

    `rng.standard_normal()` would be quicker, but NumPy may change its algorithm in any release, and then a record
    could not be redrawn; `sampler.chain` says more.
    """
    return normals_of(rng.random(dimension))


def normals_of(uniforms: Vector) -> Vector:
    """Return the normal quantiles of `rng.random()`'s numbers, any shape; all are finite, at most 8.3 in size.

    Those numbers are k 2^-53 with k from 0 to 2^53 - 1. The middle of each step, 2^-54 further on, keeps the quantile
    of 0 finite and makes the distribution symmetric. Near 1 a double cannot hold that middle (1 - 2^-54 rounds to 1,
    whose quantile is infinite), so the upper half is measured from 1 downwards, where every difference is exact.
    """
    upper = uniforms >= 0.5
    tail = np.where(upper, (1 - uniforms) - _HALF_STEP, uniforms + _HALF_STEP)
    below = special.ndtri(tail)
    return np.asarray(np.where(upper, -below, below), dtype=np.float64)


_NAME_LENGTH = 12
# Some units in the last place, carried along a chain; a move changes the numbers by a share β of 1, far more.
_TOLERANCE: Final[dict[Grid, float]] = {"<f8": 1e-9, "<f4": 1e-6}


class LatentSpace:
    """Latents of one dimension on one grid; p0 = N(0, I).

    Args:
        dimension: how many numbers a latent has.
        grid: which numbers they may be.
    """

    def __init__(self, dimension: int, grid: Grid = "<f8") -> None:
        self.dimension, self._grid = dimension, grid

    def start(self, rng: np.random.Generator, chain: int) -> Latent:
        """Draw x^(0) of a chain: z ~ N(0, I)."""
        return Latent.of(standard_normals(rng, self.dimension), self._grid)

    def refresh(self, rng: np.random.Generator, state: Latent) -> Latent:
        """Draw z' ~ N(0, I) whatever the state is."""
        return Latent.of(standard_normals(rng, self.dimension), self._grid)

    def encode(self, state: Latent) -> str:
        """Return the state's numbers as base64 of their bytes; `decode` gives back every bit."""
        return base64.b64encode(state.data).decode("ascii")

    def decode(self, code: str) -> Latent:
        """Return the state that `encode` wrote.

        Raises:
            ValueError: not base64, not `dimension` numbers, or a number that is not finite.
        """
        try:
            data = base64.b64decode(code, validate=True)
        except (binascii.Error, ValueError) as error:
            raise ValueError("an image's code must be base64 as `encode` writes it") from error
        size = np.dtype(self._grid).itemsize
        if len(data) != size * self.dimension:
            raise ValueError(
                f"an image's code must hold {self.dimension} numbers of {size} bytes each, not {len(data)} bytes"
            )
        state = Latent.of(np.frombuffer(data, dtype=self._grid), self._grid)
        if self.encode(state) != code:
            # base64 has spare bits at the end; equal states must have one text only.
            raise ValueError("an image's code must be base64 as `encode` writes it, with its spare bits at zero")
        return state

    def is_close(self, one: Latent, other: Latent) -> bool:
        """True when two latents are the same but for rounding: within 1e-9 (float32: 1e-6), relative or absolute.

        `ndtri` may differ in the last bit from one machine to another, and a chain carries that along.
        """
        within = _TOLERANCE[self._grid]
        same_length = len(one.vector) == len(other.vector)
        return same_length and bool(np.allclose(one.vector, other.vector, rtol=within, atol=within))

    def content(self, state: Latent) -> str:
        """Return a name of the image: the first hexadecimal digits of its latent's SHA-256."""
        return hashlib.sha256(state.data).hexdigest()[:_NAME_LENGTH]


SDXL_TURBO_DIMENSION = 4 * 64 * 64
# A code of so many float32 is 128,000 characters. Python's CSV reader takes 131,072 in a cell.
MAX_DIMENSION = 24_000


class ServedImagesConfig(Declared):
    """The part of a config that says: images, made of latents under N(0, I) by the model of this name.

    The picture is a function of the latent, under this prompt and with so many steps. The model must stay the same
    while the campaign runs.

    Args:
        model: one of the site's own models.
        prompt: what every picture shows.
        steps: of the model for one picture.
        dimension: how many numbers a latent has: channels × height × width.
    """

    model_config = ConfigDict(
        title="Images from a diffusion model",
        json_schema_extra=ui(help="A model on this site makes images of what you describe, beginning with noise."),
    )

    objects: ClassVar[str] = "images"
    """Which kind of object it makes."""
    kind: Literal["model-images"] = "model-images"
    model: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=120)] = Field(
        title="Model", description="Runs on this site.", json_schema_extra=ui(choices="image models")
    )
    prompt: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=1_000)] = Field(
        title="Prompt",
        description="What every image shows. The model reads only the first 75 tokens, about 50 words.",
        json_schema_extra=ui(widget="text"),
    )
    steps: int = Field(
        default=1,
        ge=1,
        le=4,
        title="Sampling steps",
        description="1 to 4. More steps take longer and give finer detail.",
        json_schema_extra=ui(fold="Sampling steps"),
    )
    dimension: int = Field(default=SDXL_TURBO_DIMENSION, ge=1, le=MAX_DIMENSION, json_schema_extra=ui(widget="none"))

    def build(self) -> LatentSpace:
        """Return the space, on the grid of float32; it needs no model: the pictures are made elsewhere."""
        return LatentSpace(self.dimension, "<f4")
