# The public names, one import each. At run time `__init__.py` loads each of them on its first use.

from . import diagnostics
from .acceptance import Verdict, acceptance_probability, askable, marginal_acceptance, verdict
from .chain import (
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
from .exact import (
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
from .judges.bradley_terry import BradleyTerry
from .judges.presentations import draws_of, presentations_of, shows_proposal_first
from .judges.recipe import JudgeRecipe
from .judges.simulate import simulate
from .judges.sources import ModelSource, PeopleSource
from .kernels import CrankNicolson, FragmentMoves, Independent, Mixture, Neighbours, Suffix, WalkKernel
from .kernels.crank_nicolson import PAPER_MIXTURE
from .kernels.walk import LONGEST_WALK
from .objects import (
    MAX_CATALOG_CHARACTERS,
    MAX_CATALOG_ITEMS,
    OBJECT_KINDS,
    CatalogError,
    Item,
    ObjectKind,
    Reading,
    Refusal,
)
from .objects.images.encoding import png, preview
from .objects.images.measures import ImageDescription, describe_image
from .objects.molecules.drawing import draw_molecule, draw_pair, molecule_png
from .objects.molecules.measures import MoleculeDescription, describe_molecule
from .objects.texts.differences import compare_texts
from .objects.texts.measures import TextDescription, describe_text
from .planning import (
    FewestVotes,
    JudgeByJudge,
    Policy,
    Request,
    RoundRobin,
    VotePlan,
    expected_votes,
    mean_votes,
)
from .recipe import Recipe, RecipeError, RecipeProblem, parse_recipe
from .record import schema
from .record.first_version import parse_first_version
from .record.reader import Record, read_record
from .record.replay import Difference, RecordError, Replay, replay
from .record.state_index import state_number
from .rules import (
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
    RuleRecipe,
    ScoreRule,
)
from .rules.order import ORDERS, BalancedOrder, RandomOrder, TwoJudgeOrder
from .rules.ratings import mean_ratings, tell_by_ratings
from .spaces import Catalog, CatalogRecipe, ServedImagesRecipe, ServedTextsRecipe, SpaceRecipe, objects_of
from .spaces.images.space import GeneratedImages
from .spaces.molecules.law import MoleculeLaw, parse_size_log_weights
from .spaces.molecules.vocabulary import Vocabulary, default_vocabulary, load_vocabulary, parse_arms
from .spaces.space import Space
from .spaces.texts.language_model import CannotScoreError, LanguageModel, Tokens
from .spaces.texts.story_openings import STORY_SCENARIOS
from .streams import Purpose, stream
from .vectorised import (
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
    "LONGEST_WALK",
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
    "GeneratedImages",
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
    "RuleRecipe",
    "ScoreRule",
    "ServedImagesRecipe",
    "ServedTextsRecipe",
    "Space",
    "SpaceRecipe",
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
    "WalkKernel",
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
    "schema",
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
