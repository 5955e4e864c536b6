import pytest

from tests.security.world import browser_of
from tests.support.models import declare

__all__ = ["declare"]


@pytest.fixture
def owner(researcher):
    """The researcher's own browser, where a test needs others beside it."""
    return browser_of(researcher)
