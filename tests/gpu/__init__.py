"""Models that run in this process. Skipped, with the reason, where PyTorch is not installed."""

import pytest

pytest.importorskip("torch", reason="needs the extra [gpu]")
pytest.importorskip("transformers", reason="needs the extra [gpu]")
