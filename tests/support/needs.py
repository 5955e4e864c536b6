"""What a machine may lack: tests that need it are skipped, with the reason; in CI, which installs it, they fail."""

import os

import pytest


def demand(found: object, reason: str) -> None:
    """Skip the calling test when `found` is false; under CI, fail."""
    if not found:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(reason)
