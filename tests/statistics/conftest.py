"""What the tests of whole studies start from."""

from datetime import timedelta

import pytest

from prefmh_web.campaigns.engine import open_comparisons


@pytest.fixture
def researcher(django_db_reset_sequences, researcher):
    """The same numbers of people in every run, as attention checks are drawn by them."""
    return researcher


@pytest.fixture(autouse=True)
def skipped_pairs_come_back_at_once(monkeypatch):
    """Nobody here waits for the clock, so a study takes the same way in every run."""
    monkeypatch.setattr(open_comparisons, "SKIP_COOLDOWN", timedelta())
