"""Exact Metropolis-Hastings from binary votes.

Pure Python and NumPy: no web, no clock, no sockets, no global random state. Start reading at `chain.py`.
Everything that code outside this package may use is imported here.
"""

from sampler import diagnostics
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
    ask_many,
    begin,
    begin_many,
    given,
    tell,
)
from sampler.exact import (
    autocorrelation_time,
    log_base_ratio,
    preferences,
    spectral_gap,
    stationary,
    target,
    transition_matrix,
    votes_per_effective_sample,
    votes_per_step,
)
from sampler.judges.bradley_terry import BradleyTerry
from sampler.judges.presentations import draws_of, presentations_of, shows_proposal_first
from sampler.judges.recipe import JudgeRecipe
from sampler.judges.sources import ModelSource, PeopleSource
from sampler.kernels import CrankNicolson, FragmentMoves, Independent, Mixture, Neighbours, Suffix
from sampler.kernels.crank_nicolson import PAPER_MIXTURE
from sampler.objects import (
    MAX_CATALOG_CHARACTERS,
    MAX_CATALOG_ITEMS,
    OBJECT_KINDS,
    CatalogError,
    Item,
    ObjectKind,
    Reading,
    Refusal,
)
from sampler.objects.images.encoding import png, preview
from sampler.objects.images.measures import ImageDescription, describe_image
from sampler.objects.molecules.drawing import draw_molecule, draw_pair, molecule_png
from sampler.objects.molecules.measures import MoleculeDescription, describe_molecule
from sampler.objects.texts.differences import compare_texts
from sampler.objects.texts.measures import TextDescription, describe_text
from sampler.planning import (
    FewestVotes,
    JudgeByJudge,
    Policy,
    Request,
    RoundRobin,
    VotePlan,
    expected_votes,
    mean_votes,
)
from sampler.recipe import Recipe, RecipeError, RecipeProblem, parse_recipe
from sampler.record.first_version import parse_first_version
from sampler.record.reader import Record, read_record
from sampler.record.replay import Difference, RecordError, Replay, replay
from sampler.record.state_index import state_number
from sampler.rules import (
    JUDGE_RULES,
    SCORE_RULES,
    InvalidPlugIn,
    JudgeRule,
    Mars,
    NVote,
    Oracle,
    PointwiseDifference,
    PointwiseJoint,
    PointwisePower,
    PointwiseRecipe,
    PointwiseSeparate,
    Quest,
    ScoreRule,
)
from sampler.rules.order import ORDERS, BalancedOrder, RandomOrder, TwoJudgeOrder
from sampler.rules.ratings import mean_ratings, tell_by_ratings
from sampler.simulate import simulate
from sampler.spaces import Catalog, CatalogRecipe, ServedImagesRecipe, ServedTextsRecipe, objects_of
from sampler.spaces.molecules.law import MoleculeLaw, parse_size_log_weights
from sampler.spaces.molecules.vocabulary import Vocabulary, default_vocabulary, load_vocabulary, parse_arms
from sampler.spaces.texts.language_model import CannotScoreError, LanguageModel, Tokens
from sampler.spaces.texts.story_openings import SCENARIOS as STORY_SCENARIOS
from sampler.streams import Purpose, stream
from sampler.vectorised import (
    IndependentTable,
    MatrixTable,
    MixtureTable,
    NeighbourTable,
    ProposalTable,
    VoteWalker,
    Walk,
    Walker,
)

__all__ = [
    "JUDGE_RULES",
    "MAX_CATALOG_CHARACTERS",
    "MAX_CATALOG_ITEMS",
    "OBJECT_KINDS",
    "ORDERS",
    "PAPER_MIXTURE",
    "SCORE_RULES",
    "STORY_SCENARIOS",
    "BalancedOrder",
    "BradleyTerry",
    "CannotScoreError",
    "Catalog",
    "CatalogError",
    "CatalogRecipe",
    "Comparison",
    "CrankNicolson",
    "Difference",
    "FewestVotes",
    "FragmentMoves",
    "ImageDescription",
    "Independent",
    "IndependentTable",
    "InvalidPlugIn",
    "Item",
    "JudgeByJudge",
    "JudgeRecipe",
    "JudgeRule",
    "Kernel",
    "LanguageModel",
    "Mars",
    "MatrixTable",
    "Mixture",
    "MixtureTable",
    "ModelSource",
    "MoleculeDescription",
    "MoleculeLaw",
    "NVote",
    "NeighbourTable",
    "Neighbours",
    "ObjectKind",
    "Oracle",
    "PeopleSource",
    "Plan",
    "PointwiseDifference",
    "PointwiseJoint",
    "PointwisePower",
    "PointwiseRecipe",
    "PointwiseSeparate",
    "Policy",
    "Position",
    "Proposal",
    "ProposalTable",
    "Purpose",
    "Quest",
    "RandomOrder",
    "Reading",
    "Recipe",
    "RecipeError",
    "RecipeProblem",
    "Record",
    "RecordError",
    "Refusal",
    "Replay",
    "Request",
    "RoundRobin",
    "ScoreRule",
    "ServedImagesRecipe",
    "ServedTextsRecipe",
    "Suffix",
    "Tally",
    "TextDescription",
    "Tokens",
    "TwoJudgeOrder",
    "Verdict",
    "Vocabulary",
    "VotePlan",
    "VoteWalker",
    "Walk",
    "Walker",
    "acceptance_probability",
    "advance",
    "ask",
    "ask_many",
    "askable",
    "autocorrelation_time",
    "begin",
    "begin_many",
    "compare_texts",
    "default_vocabulary",
    "describe_image",
    "describe_molecule",
    "describe_text",
    "diagnostics",
    "draw_molecule",
    "draw_pair",
    "draws_of",
    "expected_votes",
    "given",
    "load_vocabulary",
    "log_base_ratio",
    "marginal_acceptance",
    "mean_ratings",
    "mean_votes",
    "molecule_png",
    "objects_of",
    "parse_arms",
    "parse_first_version",
    "parse_recipe",
    "parse_size_log_weights",
    "png",
    "preferences",
    "presentations_of",
    "preview",
    "read_record",
    "replay",
    "shows_proposal_first",
    "simulate",
    "spectral_gap",
    "state_number",
    "stationary",
    "stream",
    "target",
    "tell",
    "tell_by_ratings",
    "transition_matrix",
    "verdict",
    "votes_per_effective_sample",
    "votes_per_step",
]
