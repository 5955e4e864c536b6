"""What loads on first use: the sampler's names, and the tasks. Processes that serve load all of it at their start."""

import sampler
from prefmh_web import celery_app


def load_everything() -> None:
    """Load every public name of the sampler and every task, so that no request waits for SciPy and RDKit."""
    for name in sampler.__all__:
        getattr(sampler, name)
    celery_app.loader.import_default_modules()
