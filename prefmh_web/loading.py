"""What loads on first use: the sampler's names, and the tasks. Processes that serve load them at their start."""

import gc
import importlib
from functools import cache

from django.conf import settings

import sampler
from prefmh_web.celery import app

# What the sampler imports only once it is used. It takes as long as everything else together.
_LATE = ("arviz_stats.base",)


@cache
def load_everything() -> None:
    """Load every public name of the sampler and every task, so that no request waits for RDKit.

    Whoever starts the one embedded process waits for its first page, so there the first tab *Convergence* waits
    for ArviZ.
    """
    for name in dir(sampler):
        getattr(sampler, name)
    for module in () if settings.EMBEDDED else _LATE:
        importlib.import_module(module)
    app.loader.import_default_modules()
    # All of this stays. The garbage collector would look through it again and again, and nobody is served meanwhile.
    gc.freeze()
