"""PyTorch and what goes with it, which the extra `[gpu]` brings."""

from importlib import import_module
from types import ModuleType


def needs(module: str) -> ModuleType:
    """Return a module of the extra.

    Raises:
        ImportError: it is not installed; the error says how to mend that.
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(
            f"models that run here need {module}, which the extra [gpu] brings: pip install 'prefmh[gpu]'", name=module
        ) from error
