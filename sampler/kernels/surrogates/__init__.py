"""Scores fitted to votes, by which a walk may be pulled: pure, frozen, and written into the record.

features     numbers of an object that a score is made of
fit          ridge regression of Bradley-Terry's log-odds on them
surrogate    a fitted score as a tilt of each object, rounded once
choosing     one surrogate for each group of chains, from the votes of the other groups only

What a surrogate says may be wrong; the chain stays exact whatever it says (`kernels/tilted.py`).
"""

from __future__ import annotations

from sampler.kernels.surrogates.choosing import FEWEST_CHAINS, WarmUpVotes, group_of, surrogates_for
from sampler.kernels.surrogates.features import VERSION, features_of, has_features
from sampler.kernels.surrogates.surrogate import UNIT, Surrogate

__all__ = [
    "FEWEST_CHAINS",
    "UNIT",
    "VERSION",
    "Surrogate",
    "WarmUpVotes",
    "features_of",
    "group_of",
    "has_features",
    "surrogates_for",
]
