"""Libraries of the optional extras [analysis] and [gpu], imported only where they are used."""

from __future__ import annotations

import importlib
from typing import Any

# The package is run from its checkout, and is in no registry.
_HOW = "uv run --extra {extra} python -m sampler ..., or pip install -e '.[{extra}]' in the checkout"


class MissingExtra(ImportError):  # noqa: N818 - what is missing is no error of the code
    """A library of an extra is not installed; the message says how to get it."""


def analysis_library(module: str) -> Any:
    """Return a module of the extra [analysis], for example "matplotlib".

    Raises:
        MissingExtra: the library is not installed.
    """
    return _library("analysis", module)


def torch_library() -> Any:
    """Return PyTorch, of the extra [gpu].

    Raises:
        MissingExtra: it is not installed.
    """
    return _library("gpu", "torch")


def _library(extra: str, module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        # A library that is there but lacks one of its own has another problem, and says so itself.
        if not f"{module}.".startswith(f"{error.name}."):
            raise
        library = module.partition(".")[0]
        message = f"{library} is not installed; it comes with the extra [{extra}]: {_HOW.format(extra=extra)}"
        raise MissingExtra(message, name=library) from error
