"""A plugin of pytest: of two processes that run tests at once on one Redis, each has a database of its own there.

Nothing of the application may be imported here: with it, Django reads its settings.
"""

import os
from urllib.parse import urlsplit

import pytest


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_load_initial_conftests():
    """Number the database before Django reads its settings."""
    number = os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")
    os.environ["REDIS_URL"] = urlsplit(os.environ["REDIS_URL"])._replace(path=f"/{number}").geturl()
    return (yield)
