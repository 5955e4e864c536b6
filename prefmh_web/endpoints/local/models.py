"""The models that the site offers to run here, each loaded once in a process and shared from then on.

Loading takes seconds to minutes and much memory: call this from the worker of the GPU's queue, not from a web process.
A worker that forks must load after the fork, for CUDA does not survive one.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prefmh_web.endpoints.local import conf

if TYPE_CHECKING:
    from prefmh_web.endpoints.local.sdxl_turbo import SdxlTurbo
    from prefmh_web.endpoints.local.transformers_model import TransformersModel

_loading = threading.Lock()
_loaded: dict[tuple[Path, str | None], Any] = {}


def model_names() -> tuple[str, ...]:
    """Return the names of the language models that the site offers, in the order of the settings."""
    return tuple(conf.model_folders())


def local_model(
    name: str, *, limit: int, temperature: float = 1.0, system: str = "", prompts: Sequence[str] = ()
) -> TransformersModel:
    """Return a language model that the site offers; see `TransformersModel` for the arguments.

    Raises:
        ImportError: the extra `[gpu]` is not installed.
        ValueError: the site offers no model of this name, it cannot be used, or an argument is out of range.
        FileNotFoundError: its folder, or safetensors in it, are missing.
    """
    folders = conf.model_folders()
    if name not in folders:
        offered = ", ".join(folders) or "none; LOCAL_MODELS is not set"
        raise ValueError(f"model must be one that this site offers ({offered}), not {name!r}")
    from prefmh_web.endpoints.local.transformers_model import TransformersModel
    from prefmh_web.endpoints.local.weights import load_weights

    return TransformersModel(
        _once(load_weights, folders[name]),
        limit=limit,
        temperature=temperature,
        system=system,
        prompts=prompts,
        max_rows=conf.max_rows(),
        max_tokens=conf.max_tokens(),
    )


def sdxl_turbo(prompt: str, steps: int = 1) -> SdxlTurbo:
    """Return the decoder of SDXL-Turbo's images for one prompt; see `SdxlTurbo`.

    Raises:
        ImportError: the extra `[gpu]` is not installed.
        ValueError: the site does not offer it, or an argument is out of range.
        FileNotFoundError: its folder, or safetensors in it, are missing.
    """
    folder = conf.sdxl_turbo_folder()
    if folder is None:
        raise ValueError("SDXL-Turbo is not offered by this site; LOCAL_SDXL_TURBO is not set")
    from prefmh_web.endpoints.local.sdxl_turbo import SdxlTurbo, load_pipeline

    return SdxlTurbo(_once(load_pipeline, folder), prompt, steps=steps)


def _once(load: Any, folder: Path) -> Any:
    """Return what `load` makes of a folder, made by whoever comes first."""
    key = folder, conf.device()
    with _loading:
        if key not in _loaded:
            _loaded[key] = load(*key)
        return _loaded[key]
