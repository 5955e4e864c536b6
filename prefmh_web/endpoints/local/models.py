"""The models that the site offers to run here, each loaded once in a process and shared from then on.

Loading takes seconds to minutes and much memory: call this from the worker of the GPU's queue, not from a web process.
A worker that forks must load after the fork, for CUDA does not survive one.
"""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.conf import settings

if TYPE_CHECKING:
    from prefmh_web.endpoints.local.sdxl_turbo import SdxlTurbo
    from prefmh_web.endpoints.local.transformers_model import TransformersModel
    from prefmh_web.endpoints.local.weights import Weights

_loading = threading.Lock()
_loaded: dict[tuple[Path, str | None], Any] = {}


def model_names() -> tuple[str, ...]:
    """Return the names of the language models that the site offers, in the order of the settings."""
    return tuple(settings.LOCAL_MODELS)


def local_model(
    name: str, *, limit: int, temperature: float = 1.0, system: str = "", prompts: Sequence[str] = ()
) -> TransformersModel:
    """Return a language model that the site offers; see `TransformersModel` for the arguments.

    Raises:
        ImportError: the extra `[gpu]` is not installed.
        ValueError: the site offers no model of this name, it cannot be used, or an argument is out of range.
        FileNotFoundError: its folder, or safetensors in it, are missing.
    """
    weights = _loaded_weights(name)
    from prefmh_web.endpoints.local.transformers_model import TransformersModel

    return TransformersModel(
        weights,
        limit=limit,
        temperature=temperature,
        system=system,
        prompts=prompts,
    )


def _loaded_weights(name: str) -> Weights:
    folders = settings.LOCAL_MODELS
    if name not in folders:
        offered = ", ".join(folders) or "none; LOCAL_MODELS is not set"
        raise ValueError(f"model must be one that this site offers ({offered}), not {name!r}")
    weights: Weights = _once(_load, folders[name], settings.LOCAL_DEVICE)
    return weights


def _load(folder: Path, device: str | None) -> Weights:
    from prefmh_web.endpoints.local.weights import check_folder, load_weights

    check_folder(folder, "*.safetensors")
    return load_weights(folder, device)


def image_model_names() -> tuple[str, ...]:
    """Return the names of the image models that the site offers, in the order of the settings."""
    return tuple(settings.LOCAL_IMAGE_MODELS)


def latent_dimension(name: str) -> int | None:
    """Return how many numbers a latent of an image model has, as the configuration in its folder says.

    Returns:
        None where this process does not see the folder: it may lie on the GPU's machine only.

    Raises:
        ValueError: the folder holds no such configuration.
    """
    folder = settings.LOCAL_IMAGE_MODELS[name]
    if not folder.is_dir():
        return None
    try:
        config = json.loads((folder / "unet" / "config.json").read_text(encoding="utf-8"))
        dimension: int = math.prod((config["in_channels"], config["sample_size"], config["sample_size"]))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{name} must be a pipeline of diffusers; its folder has no such unet/config.json") from error
    return dimension


def local_decoder(name: str, prompt: str, steps: int = 1) -> SdxlTurbo:
    """Return the decoder of one prompt's pictures by an image model that the site offers; see `SdxlTurbo`.

    Raises:
        ImportError: the extra `[gpu]` is not installed.
        ValueError: the site offers no model of this name, it cannot be used, or an argument is out of range.
        FileNotFoundError: its folder, or safetensors in it, are missing.
    """
    folders = settings.LOCAL_IMAGE_MODELS
    if name not in folders:
        offered = ", ".join(folders) or "none; LOCAL_IMAGE_MODELS is not set"
        raise ValueError(f"model must be one that this site offers ({offered}), not {name!r}")
    return _decoder(folders[name], settings.LOCAL_DEVICE, prompt, steps)


@lru_cache(maxsize=16)
def _decoder(folder: Path, device: str | None, prompt: str, steps: int) -> SdxlTurbo:
    """Return a decoder; its prompt goes through the model's text encoders once."""
    from prefmh_web.endpoints.local.sdxl_turbo import SdxlTurbo, load_pipeline

    return SdxlTurbo(_once(load_pipeline, folder, device), prompt, steps=steps)


def _once(load: Any, folder: Path, device: str | None) -> Any:
    """Return what `load` makes of a folder, made by whoever comes first."""
    key = folder, device
    with _loading:
        if key not in _loaded:
            _loaded[key] = load(*key)
        return _loaded[key]
