"""What the tests of whole studies start from."""

import pytest


@pytest.fixture
def researcher(django_db_reset_sequences, researcher):
    """The same numbers of people in every run, as attention checks are drawn by them."""
    return researcher
