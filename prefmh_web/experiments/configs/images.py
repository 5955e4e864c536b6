"""Images: noise of a diffusion model, moved by Crank-Nicolson steps (L663-686, L1316-1459).

The writer is a model that the site runs itself (`LOCAL_IMAGE_MODELS`), not a server. `PATTERNS` is the decoder that
comes with prefmh: it needs no GPU and shows no objects, so it is for trying an installation, not for the paper's table.
"""

from __future__ import annotations

import math
from typing import Any

import sampler
from prefmh_web.endpoints.local.models import image_model_names, latent_dimension
from prefmh_web.experiments.configs.part import Part

PATTERNS = "patterns"


def config(part: Part) -> dict[str, Any]:
    """Return the config of one campaign.

    Raises:
        OptionError: this site has no such image model.
        ValueError: its folder holds no pipeline.
    """
    kernel = {"kind": "independent"} if part.method.draws_only else sampler.PAPER_MIXTURE
    return part.frame(space=_space(part), kernel=kernel)


def described(name: str) -> str:
    """Return what settings.json says of an image model.

    Raises:
        OptionError, ValueError: as `config`.
    """
    if name == PATTERNS:
        return f"{name}: prefmh's own decoder, which stands in for a diffusion model"
    dimension = _dimension(name)
    return f"{name}: this site's own" + (f", latents of {dimension} numbers" if dimension else "")


def _space(part: Part) -> dict[str, Any]:
    name = part.endpoints["writer"]
    if name == PATTERNS:
        return {"kind": "images"}
    stated = math.prod(part.setting("latent"))
    # Small pipelines have small latents; at the paper's size another model than the paper's is refused at the start.
    dimension = _dimension(name) if part.options.scale == "laptop" else None
    return {
        "kind": "model-images",
        "model": name,
        "prompt": part.setting("image_prompt"),
        "steps": part.setting("inference_steps"),
        "dimension": dimension or stated,
    }


def _dimension(name: str) -> int | None:
    """Return how many numbers a latent of a site's image model has; None where this process does not see its folder."""
    if name not in image_model_names():
        known = ", ".join((PATTERNS, *image_model_names()))
        raise sampler.OptionError(
            "--endpoint writer",
            f"must name an image model of this site ({known}), not {name!r}; LOCAL_IMAGE_MODELS declares others",
        )
    return latent_dimension(name)
