"""A step that nothing has to settle: under rule base every proposal is accepted as it is opened."""

from __future__ import annotations

import sampler
from prefmh_web.campaigns.models import Comparison


def verdict_at_opening(comparison: Comparison) -> sampler.Verdict:
    """Return that the proposal is accepted."""
    return sampler.Verdict.ACCEPT
