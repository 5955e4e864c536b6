"""Exact Metropolis-Hastings from binary votes.

Pure Python and NumPy: no web, no clock, no sockets, no global random state. Start reading at `chain.py`.
Everything that code outside this package may use is imported here.
"""

from sampler.acceptance import Verdict, acceptance_probability, askable, marginal_acceptance, verdict
from sampler.chain import (
    Comparison,
    Kernel,
    Plan,
    Position,
    Proposal,
    Tally,
    advance,
    ask,
    begin,
    tell,
)
from sampler.judges.bradley_terry import BradleyTerry
from sampler.kernels import Independent, Mixture, Neighbours
from sampler.recipe import JudgeRecipe, Recipe, RecipeError, RecipeProblem, parse_recipe
from sampler.replay import Difference, RecordError, Replay, replay
from sampler.simulate import simulate
from sampler.spaces import (
    OBJECT_KINDS,
    Catalog,
    CatalogError,
    CatalogRecipe,
    Item,
    ObjectKind,
    Reading,
    Refusal,
    draw_molecule,
)
from sampler.streams import Purpose, stream

__all__ = [
    "OBJECT_KINDS",
    "BradleyTerry",
    "Catalog",
    "CatalogError",
    "CatalogRecipe",
    "Comparison",
    "Difference",
    "Independent",
    "Item",
    "JudgeRecipe",
    "Kernel",
    "Mixture",
    "Neighbours",
    "ObjectKind",
    "Plan",
    "Position",
    "Proposal",
    "Purpose",
    "Reading",
    "Recipe",
    "RecipeError",
    "RecipeProblem",
    "RecordError",
    "Refusal",
    "Replay",
    "Tally",
    "Verdict",
    "acceptance_probability",
    "advance",
    "ask",
    "askable",
    "begin",
    "draw_molecule",
    "marginal_acceptance",
    "parse_recipe",
    "replay",
    "simulate",
    "stream",
    "tell",
    "verdict",
]
