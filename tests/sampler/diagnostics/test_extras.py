"""Libraries of the extras: who lacks one is told how to get it."""

import sys

import pytest

from sampler.diagnostics import MissingExtra
from sampler.diagnostics.extras import analysis_library


def test_a_missing_library_is_named_with_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm", None)
    with pytest.raises(MissingExtra, match=r"tqdm is not installed; .*uv run --extra analysis python -m sampler"):
        analysis_library("tqdm")
