"""Diagnostics of real chains and real votes: plain arrays in, small frozen results out.

Chains are ragged: a list with one sequence a chain.
"""

from sampler.diagnostics.chains import Acceptance as Acceptance
from sampler.diagnostics.chains import Grouped as Grouped
from sampler.diagnostics.chains import by_target as by_target
from sampler.diagnostics.chains import convergence as convergence
