"""The web application around `sampler`. Follow one vote: annotate/consumer.py, leases.py, campaigns/loop.py."""

from prefmh_web.celery import app as celery_app

__all__ = ["celery_app"]
