"""Hints that there is work reach the workers of this installation."""

import pytest
from celery import Celery

from prefmh_web.campaigns.models import Catalog
from prefmh_web.celery import app as celery_app
from tests.support.campaigns import make_draft


@pytest.fixture
def another_celery_application():
    """What a library of the same process may make; Celery then takes it for the current one in this thread."""
    another = Celery("another", broker="memory://")
    yield
    another.close()
    celery_app.set_current()


@pytest.mark.usefixtures("another_celery_application")
def test_a_hint_goes_to_our_own_queues_whatever_celery_calls_current(researcher):
    assert make_draft(researcher).catalog.status == Catalog.Status.READY
