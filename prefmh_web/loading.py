"""What loads on first use: the sampler's names, and the tasks. Processes that serve load all of it at their start."""

import gc
import importlib
from functools import cache

import sampler
from prefmh_web.celery import app

# What the sampler imports only once it is used.
_LATE = ("arviz_stats.base",)


@cache
def load_everything() -> None:
    """Load every public name of the sampler and every task, so that no request waits for SciPy, RDKit and ArviZ."""
    for name in dir(sampler):
        getattr(sampler, name)
    for module in _LATE:
        importlib.import_module(module)
    app.loader.import_default_modules()
    # All of this stays. The garbage collector would look through it again and again, and nobody is served meanwhile.
    gc.collect()
    gc.freeze()
