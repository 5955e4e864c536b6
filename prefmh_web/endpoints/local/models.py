"""The models that the site offers to run here, each loaded once in a process and shared from then on.

Loading takes seconds to minutes and much memory: call this from the worker of the GPU's queue, not from a web process.
A worker that forks must load after the fork, for CUDA does not survive one.
"""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.conf import settings

from prefmh_web.endpoints.local.fingerprint import fingerprint_of, stamp_of

if TYPE_CHECKING:
    from prefmh_web.endpoints.local.judging import LocalJudge
    from prefmh_web.endpoints.local.sdxl_turbo import SdxlTurbo
    from prefmh_web.endpoints.local.transformers_model import TransformersModel
    from prefmh_web.endpoints.local.weights import Weights

Stamp = tuple[tuple[str, int, int], ...]
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
    weights = _loaded_weights(name).weights
    from prefmh_web.endpoints.local.transformers_model import TransformersModel

    return TransformersModel(
        weights,
        limit=limit,
        temperature=temperature,
        system=system,
        prompts=prompts,
    )


@dataclass(frozen=True)
class _Loaded:
    """A model as it was read from its folder; the stamp is that of the files just before."""

    weights: Weights
    folder: Path
    stamp: Stamp


@dataclass(frozen=True)
class JudgeHere:
    """A model that votes, as it was loaded.

    Args:
        judge: what gives the log-probabilities.
        fingerprint: the hash of the files that it was loaded from.
    """

    judge: LocalJudge
    fingerprint: str


def local_judge(name: str, *, raw: bool = False) -> JudgeHere:
    """Return a language model that the site offers, as a judge; see `LocalJudge` for `raw`.

    Raises:
        ImportError: the extra `[gpu]` is not installed.
        ValueError: the site offers no model of this name, it cannot be used, it has no tokens for the labels, or its
            files are being written.
        OSError: its folder, or safetensors in it, are missing, or cannot be read.
    """
    loaded = _loaded_weights(name)
    return JudgeHere(_judge(loaded.weights, raw), _fingerprint(loaded.folder, loaded.stamp))


@lru_cache(maxsize=16)
def _judge(weights: Weights, raw: bool) -> LocalJudge:
    """Return a judge; its tokeniser is searched for the labels once."""
    from prefmh_web.endpoints.local.judging import LocalJudge

    return LocalJudge(weights, raw=raw)


@lru_cache(maxsize=16)
def _fingerprint(folder: Path, stamp: Stamp) -> str:
    """Return the hash of files that were loaded when they had this stamp.

    Raises:
        ValueError: they have another one by now, so that nobody can tell what was loaded.
    """
    found = fingerprint_of(folder)
    if stamp_of(folder) != stamp:
        raise ValueError(f"the files in {folder} have changed since they were loaded; restart the worker")
    return found


def _loaded_weights(name: str) -> _Loaded:
    folders = settings.LOCAL_MODELS
    if name not in folders:
        offered = ", ".join(folders) or "none; LOCAL_MODELS is not set"
        raise ValueError(f"model must be one that this site offers ({offered}), not {name!r}")
    loaded: _Loaded = _once(_load, folders[name], settings.LOCAL_DEVICE)
    return loaded


def _load(folder: Path, device: str | None) -> _Loaded:
    from prefmh_web.endpoints.local.weights import check_folder, load_weights

    check_folder(folder, "*.safetensors")
    # Before they are read: files that change meanwhile then have another stamp.
    stamp = stamp_of(folder)
    return _Loaded(load_weights(folder, device), folder, stamp)


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
