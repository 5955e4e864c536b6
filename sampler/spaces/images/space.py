"""Generated images: a state is a latent z ~ N(0, I), and a decoder makes the picture of it."""

from __future__ import annotations

from typing import ClassVar, Literal, Protocol

import numpy as np
import numpy.typing as npt
from pydantic import ConfigDict, Field, field_validator

from sampler.declared import Declared, ui
from sampler.spaces.images.latent import Latent, Vector
from sampler.spaces.images.latent_space import LatentSpace
from sampler.spaces.images.patterns.decoder import Patterns


class Decoder(Protocol):
    """A deterministic picture of every latent: the same vector, the same pixels."""

    @property
    def dimension(self) -> int:
        """How many numbers a latent has."""
        ...

    def pixels(self, vector: Vector) -> npt.NDArray[np.uint8]:
        """Return the picture of a vector of shape (dimension,): sRGB, shape (height, width, 3)."""
        ...


class ImagesConfig(Declared):
    """The part of a config that says: generate images from latents under N(0, I)."""

    model_config = ConfigDict(
        title="Abstract patterns from a decoder",
        json_schema_extra=ui(help="Coloured patterns that change by small and large steps. Nothing to prepare."),
    )

    objects: ClassVar[str] = "images"
    """Which kind of object it makes."""
    kind: Literal["images"] = "images"
    decoder: Literal["patterns"] = Field(default="patterns", json_schema_extra=ui(widget="none"))
    prior: Literal["standard-normal"] = Field(default="standard-normal", json_schema_extra=ui(widget="none"))

    @field_validator("prior", mode="before")
    @classmethod
    def _only_the_standard_normal(cls, prior: object) -> object:
        if prior != "standard-normal":
            raise ValueError(
                "must be 'standard-normal': the moves on latents are reversible for N(0, I) and no other law, "
                "so under another prior the chain would sample the wrong images"
            )
        return prior

    def build(self) -> GeneratedImages:
        """Return the space."""
        return GeneratedImages(Patterns())


class GeneratedImages(LatentSpace):
    """The space of a decoder's images; p0 = N(0, I) on latents. `describe` gives what `describe_image` measures."""

    def __init__(self, decoder: Decoder) -> None:
        super().__init__(decoder.dimension)
        self._decoder = decoder

    def pixels(self, state: Latent) -> npt.NDArray[np.uint8]:
        """Return the picture: sRGB, shape (height, width, 3).

        Raises:
            ValueError: the latent has another dimension than the decoder.
        """
        vector = state.vector
        if vector.shape != (self.dimension,):
            raise ValueError(f"a latent of this space must hold {self.dimension} numbers, not {len(vector)}")
        return self._decoder.pixels(vector)
