"""Models that the site offers and runs in this process, on a GPU if there is one.

    texts.py     a language model of `transformers` that writes
    images.py    SDXL-Turbo of `diffusers` as the decoder of latents that `sampler` draws

Only this module can be imported without the extra `[gpu]`. Models come from folders that the site's operator has
filled: no researcher names a path, nothing is downloaded, and weights are read from safetensors, which hold no code.
Each is loaded once in a process. That takes seconds to minutes and much memory, so it is for the worker of the GPU's
queue; one that forks must load after the fork, for CUDA does not survive it.
"""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from django.conf import LazySettings

    from prefmh_web.endpoints.local.images import SdxlTurbo
    from prefmh_web.endpoints.local.texts import TransformersModel

_loading = threading.Lock()


def model_names() -> tuple[str, ...]:
    """Return the names of the language models that the site offers, in the order of the settings."""
    return tuple(_settings().LOCAL_MODELS)


def image_model_names() -> tuple[str, ...]:
    """Return the names of the image models that the site offers, in the order of the settings."""
    return tuple(_settings().LOCAL_IMAGE_MODELS)


def latent_dimension(name: str) -> int | None:
    """Return how many numbers a latent of an image model has, as the configuration in its folder says.

    Returns:
        None where this process does not see the folder: it may lie on the GPU's machine only.

    Raises:
        ValueError: the folder holds no such configuration.
    """
    folder: Path = _settings().LOCAL_IMAGE_MODELS[name]
    if not folder.is_dir():
        return None
    try:
        config = json.loads((folder / "unet" / "config.json").read_text(encoding="utf-8"))
        dimension: int = math.prod((config["in_channels"], config["sample_size"], config["sample_size"]))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{name} must be a pipeline of diffusers; its folder has no such unet/config.json") from error
    return dimension


def local_model(
    name: str, *, limit: int, temperature: float = 1.0, system: str = "", prompts: Sequence[str] = ()
) -> TransformersModel:
    """Return a language model that the site offers; see `TransformersModel` for the arguments.

    Raises:
        ImportError: the extra `[gpu]` is not installed.
        ValueError: the site offers no model of this name, it cannot be used, or an argument is out of range.
        FileNotFoundError: its folder, or safetensors in it, are missing.
    """
    folder = _folder("LOCAL_MODELS", name)
    from prefmh_web.endpoints.local.texts import TransformersModel, load_weights

    with _loading:
        weights = load_weights(folder, _settings().LOCAL_DEVICE)
    return TransformersModel(weights, limit=limit, temperature=temperature, system=system, prompts=prompts)


def local_decoder(name: str, prompt: str, steps: int = 1) -> SdxlTurbo:
    """Return the decoder of one prompt's pictures by an image model that the site offers; see `SdxlTurbo`.

    Raises:
        ImportError: the extra `[gpu]` is not installed.
        ValueError: the site offers no model of this name, it cannot be used, or an argument is out of range.
        FileNotFoundError: its folder, or safetensors in it, are missing.
    """
    folder = _folder("LOCAL_IMAGE_MODELS", name)
    from prefmh_web.endpoints.local.images import load_decoder

    with _loading:
        return load_decoder(folder, _settings().LOCAL_DEVICE, prompt, steps)


def needs(module: str) -> ModuleType:
    """Return a module of the extra.

    Raises:
        ImportError: it is not installed; the error says how to fix that.
    """
    try:
        return import_module(module)
    except ImportError as error:
        # The package is run from its checkout, and is in no registry.
        how = "uv sync --inexact --extra gpu, or pip install -e '.[gpu]' in the checkout"
        raise ImportError(f"models that run here need {module}, which the extra [gpu] brings: {how}") from error


def device_of(name: str | None) -> Any:
    """Return the device of PyTorch of a name; without one CUDA if there is any, else the CPU.

    Raises:
        ValueError: there is no such device here.
    """
    torch = needs("torch")
    try:
        device = torch.device(name or ("cuda" if torch.cuda.is_available() else "cpu"))
        torch.empty(0, device=device)
    # PyTorch built without CUDA fails an assertion.
    except (AssertionError, RuntimeError) as error:
        raise ValueError(f"LOCAL_DEVICE must name a device that is there, not {name!r}: {error}") from error
    return device


@contextmanager
def reading(setting: str, folder: Path, parts: Collection[str]) -> Iterator[str | None]:
    """Check the folder of a model before it is read, and say what to do where that fails and a library says less.

    Args:
        setting: which names the folder, for the error's words.
        parts: the folders in it that hold weights.

    Yields:
        Which variant of the weights to load, such as fp16; None where the plain ones are there.

    Raises:
        FileNotFoundError: the folder, or safetensors in one of its parts, are missing.
        ValueError: files are missing or damaged, or it is not known which variant to load.
    """
    # `transformers` would take a name that is no folder for one to look up elsewhere.
    if not folder.is_dir():
        raise FileNotFoundError(f"the model's folder {folder} is missing; models are not downloaded")
    for part in parts:
        if not any((folder / part).glob("*.safetensors")):
            pattern = Path(part, "*.safetensors")
            raise FileNotFoundError(f"the model's folder {folder} must hold {pattern}; other formats are not read")
    variant = _variant(setting, folder, parts)
    try:
        yield variant
    except (OSError, needs("safetensors").SafetensorError) as error:
        why = " ".join(str(error).split())[:200]
        raise ValueError(
            f"{setting} names {folder}, which cannot be loaded: {why}. Download the model again, with every file of "
            "it, or correct the setting"
        ) from error


def _settings() -> LazySettings:
    """Return the site's settings. They are asked for here alone, so that a model runs where there is no Django too."""
    from django.conf import settings

    return settings


def _folder(setting: str, name: str) -> Path:
    folders: dict[str, Path] = getattr(_settings(), setting)
    if name not in folders:
        offered = ", ".join(folders) or f"none; {setting} is not set"
        raise ValueError(f"model must be one that this site offers ({offered}), not {name!r}")
    return folders[name]


def _variant(setting: str, folder: Path, parts: Collection[str]) -> str | None:
    """Return the variant that all parts without plain weights have; None where there are no such parts.

    Models are published with variants beside the plain weights, as in model.fp16.safetensors or
    model.fp16-1-of-2.safetensors, and people download one of the two.
    """
    lacking = []
    for part in parts:
        middles = [path.name.split(".")[1:-1] for path in (folder / part).glob("*.safetensors")]
        if [] not in middles:
            lacking.append({middle[0].partition("-")[0] for middle in middles})
    if not lacking:
        return None
    shared = set.intersection(*lacking)
    if len(shared) != 1:
        found = " or ".join(sorted(set.union(*lacking)))
        raise ValueError(
            f"{setting} names {folder}, which must hold the model's plain weights, or one variant of them in every "
            f"part; it holds {found}. Download the plain weights as well"
        )
    return shared.pop()
