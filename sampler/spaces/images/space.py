"""Generated images: a state is a latent z ~ N(0, I), and a decoder makes the picture of it."""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Mapping
from dataclasses import asdict
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, field_validator

from sampler.spaces.images.description import describe_image
from sampler.spaces.images.latent import Latent, Vector, log_p0, standard_normals
from sampler.spaces.images.patterns import Patterns

_NAME_LENGTH = 12


class Decoder(Protocol):
    """A deterministic picture of every latent: the same vector, the same pixels."""

    @property
    def dimension(self) -> int:
        """How many numbers a latent has."""
        ...

    def pixels(self, vector: Vector) -> npt.NDArray[np.uint8]:
        """Return the picture of a vector of shape (dimension,): sRGB, shape (height, width, 3)."""
        ...


class ImagesRecipe(BaseModel):
    """The part of a recipe that says: generate images from latents under N(0, I)."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Literal["images"] = "images"
    decoder: Literal["patterns"] = "patterns"
    prior: Literal["standard-normal"] = "standard-normal"

    @field_validator("prior", mode="before")
    @classmethod
    def _only_the_standard_normal(cls, prior: object) -> object:
        if prior != "standard-normal":
            raise ValueError(
                "must be 'standard-normal': the moves on latents are reversible for N(0, I) and no other law, "
                "so under another prior the chain would sample the wrong images"
            )
        return prior

    @property
    def objects(self) -> Literal["images"]:
        """How an object is shown."""
        return "images"

    def build(self) -> GeneratedImages:
        """Return the space."""
        return GeneratedImages(Patterns())


class GeneratedImages:
    """The space of a decoder's images; p0 = N(0, I) on latents. `describe` gives what `describe_image` measures."""

    def __init__(self, decoder: Decoder) -> None:
        self._decoder = decoder

    @property
    def objects(self) -> Literal["images"]:
        """How an object is shown."""
        return "images"

    @property
    def dimension(self) -> int:
        """How many numbers a latent has."""
        return self._decoder.dimension

    def start(self, rng: np.random.Generator, chain: int) -> Latent:
        """Draw x^(0) of a chain: z ~ N(0, I)."""
        return Latent.of(standard_normals(rng, self.dimension))

    def refresh(self, rng: np.random.Generator, state: Latent) -> Latent:
        """Draw z' ~ N(0, I) whatever the state is."""
        return Latent.of(standard_normals(rng, self.dimension))

    def log_p0(self, state: Latent) -> float:
        """Return log p0(z) up to a constant."""
        return log_p0(state)

    def encode(self, state: Latent) -> str:
        """Return the state's numbers as base64 of little-endian float64; `decode` gives back every bit."""
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
        if len(data) != 8 * self.dimension:
            raise ValueError(
                f"an image's code must hold {self.dimension} numbers of 8 bytes each, not {len(data)} bytes"
            )
        state = Latent.of(np.frombuffer(data, dtype="<f8"))
        if self.encode(state) != code:
            # base64 has spare bits at the end; equal states must have one text only.
            raise ValueError("an image's code must be base64 as `encode` writes it, with its spare bits at zero")
        return state

    def is_close(self, one: Latent, other: Latent) -> bool:
        """True when two latents are the same but for rounding: within 1e-9, relative or absolute, number by number.

        `ndtri` may differ in the last bit from one machine to another, and a chain carries that along. Moves change
        the numbers by a share β of 1, far more than this.
        """
        return len(one.data) == len(other.data) and bool(np.allclose(one.vector, other.vector, rtol=1e-9, atol=1e-9))

    def content(self, state: Latent) -> str:
        """Return a name of the image: the first hexadecimal digits of its latent's SHA-256."""
        return hashlib.sha256(state.data).hexdigest()[:_NAME_LENGTH]

    def describe(self, state: Latent) -> Mapping[str, float]:
        """Return the picture's measures; see `ImageDescription` for units."""
        return asdict(describe_image(self.pixels(state)))

    def pixels(self, state: Latent) -> npt.NDArray[np.uint8]:
        """Return the picture: sRGB, shape (height, width, 3).

        Raises:
            ValueError: the latent has another dimension than the decoder.
        """
        vector = state.vector
        if vector.shape != (self.dimension,):
            raise ValueError(f"a latent of this space must hold {self.dimension} numbers, not {len(vector)}")
        return self._decoder.pixels(vector)
