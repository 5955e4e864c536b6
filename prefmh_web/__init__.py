"""The web application around `sampler`. Follow one vote: docs/architecture.md."""

from prefmh_web.celery import app as celery_app

__all__ = ["celery_app"]
