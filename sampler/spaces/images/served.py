"""Images that a model outside this package makes of a latent: the application decodes, and nothing here needs it.

The config says how many numbers the model's latents have. That is all it takes to draw, store and replay a chain; only
the pictures, and what is measured of them, are the model's.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import ConfigDict, Field, StringConstraints

from sampler.declared import Declared, ui
from sampler.spaces.images.latent_space import LatentSpace

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

    def build(self) -> ServedImages:
        """Return the space; it needs no model."""
        return ServedImages(self.dimension)


class ServedImages(LatentSpace):
    """Latents on the grid of float32; `LatentSpace` says why. Their pictures are made elsewhere."""

    def __init__(self, dimension: int) -> None:
        super().__init__(dimension, "<f4")
