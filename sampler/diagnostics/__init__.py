"""Diagnostics of real chains and real votes: plain arrays in, small frozen results out.

Chains are ragged: a list with one sequence a chain. Whatever needs a library of the extra [analysis] imports it when it
is called and raises `MissingExtra` where it is not installed.
"""

from sampler.diagnostics.chains import Acceptance as Acceptance
from sampler.diagnostics.chains import Grouped as Grouped
from sampler.diagnostics.chains import by_target as by_target
from sampler.diagnostics.chains import convergence as convergence
