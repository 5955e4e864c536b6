"""PyTorch and what goes with it, which the extra `[gpu]` brings."""

from importlib import import_module
from types import ModuleType

# The package is run from its checkout, and is in no registry.
HOW = "uv sync --inexact --extra gpu, or pip install -e '.[gpu]' in the checkout"


def needs(module: str) -> ModuleType:
    """Return a module of the extra.

    Raises:
        ImportError: it is not installed; the error says how to mend that.
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(
            f"models that run here need {module}, which the extra [gpu] brings: {HOW}", name=module
        ) from error
