"""Diagnostics of real chains and real votes: one idea a file, plain arrays in, small frozen results out.

Chains are ragged: a list with one sequence a chain. Whatever needs a library of the extra [analysis] imports it when it
is called and raises `MissingExtra` where it is not installed.
"""

from sampler.diagnostics.acceptance_rate import Acceptance
from sampler.diagnostics.agreement import cohen_kappa, fleiss_kappa, fleiss_kappa_interval
from sampler.diagnostics.bootstrap import PairedDifference, paired_bootstrap
from sampler.diagnostics.bradley_terry import Difference, NoFit, Scores, bradley_terry_intervals, bradley_terry_scores
from sampler.diagnostics.choices import Choices
from sampler.diagnostics.clusters import FEWEST_CLUSTERS, cluster_weights
from sampler.diagnostics.comparisons import Comparisons
from sampler.diagnostics.cycles import CycleTest, cycle_test
from sampler.diagnostics.extras import MissingExtra
from sampler.diagnostics.source_lean import SourceLean, source_lean
from sampler.exact import total_variation
from sampler.objects.convergence import FEWEST_DRAWS, Convergence, Grouped, by_target, convergence, equal_lengths

__all__ = [
    "FEWEST_CLUSTERS",
    "FEWEST_DRAWS",
    "Acceptance",
    "Choices",
    "Comparisons",
    "Convergence",
    "CycleTest",
    "Difference",
    "Grouped",
    "MissingExtra",
    "NoFit",
    "PairedDifference",
    "Scores",
    "SourceLean",
    "bradley_terry_intervals",
    "bradley_terry_scores",
    "by_target",
    "cluster_weights",
    "cohen_kappa",
    "convergence",
    "cycle_test",
    "equal_lengths",
    "fleiss_kappa",
    "fleiss_kappa_interval",
    "paired_bootstrap",
    "source_lean",
    "total_variation",
]
