"""Diagnostics of real chains and real votes: plain arrays in, small frozen results out.

Chains are ragged: a list with one sequence a chain. Whatever needs a library of the extra [analysis] imports it when it
is called and raises `MissingExtra` where it is not installed.
"""

from sampler.diagnostics.chains import FEWEST_DRAWS as FEWEST_DRAWS
from sampler.diagnostics.chains import Acceptance as Acceptance
from sampler.diagnostics.chains import Grouped as Grouped
from sampler.diagnostics.chains import by_target as by_target
from sampler.diagnostics.chains import convergence as convergence
from sampler.diagnostics.choices import Choices as Choices
from sampler.diagnostics.intervals import FEWEST_CLUSTERS as FEWEST_CLUSTERS
from sampler.diagnostics.intervals import paired_bootstrap as paired_bootstrap
from sampler.diagnostics.scores import NoFit as NoFit
from sampler.diagnostics.scores import bradley_terry_intervals as bradley_terry_intervals
from sampler.diagnostics.votes import cohen_kappa as cohen_kappa
from sampler.diagnostics.votes import cycle_test as cycle_test
from sampler.diagnostics.votes import fleiss_kappa as fleiss_kappa
from sampler.diagnostics.votes import fleiss_kappa_interval as fleiss_kappa_interval
from sampler.diagnostics.votes import source_lean as source_lean
from sampler.exact import total_variation as total_variation
