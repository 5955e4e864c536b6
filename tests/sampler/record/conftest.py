"""Records of small campaigns, made by the application."""

from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def unblocked(django_db_blocker) -> Iterator[None]:
    """The first use of an example makes it, on a database of its own."""
    with django_db_blocker.unblock():
        yield
