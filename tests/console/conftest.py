import pytest

from tests.security.world import browser_of


@pytest.fixture
def owner(researcher):
    """The researcher's own browser, where a test needs others beside it."""
    return browser_of(researcher)
