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
from .commands.lockstep_run import check_lockstep, record_lockstep
from .commands.report.writing import write_report
from .diagnostics.extras import MissingExtra
from .exact import (
    autocorrelation_time,
    log_base_ratio,
    mean_votes,
    preferences,
    spectral_gap,
    stationary,
    target,
    transition_matrix,
    votes_per_effective_sample,
    votes_per_step,
)
from .experiments import outputs
from .experiments.document import (
    ExperimentInput,
    changed_settings,
    options_of,
    preset_names,
    settings_document,
    settings_hash,
    settings_text,
)
from .experiments.kept import kept_steps, shown_steps
from .experiments.lockstep_archive import replay_file
from .experiments.options import ExperimentOptions, OptionError, VoteSource, checked_source
from .experiments.planned import planned_scores, planned_sums, scorer_passes, tournament_votes
from .experiments.sentences import own_sentences, read_sentences
from .experiments.settings import EXPERIMENTS, Asked, Experiment, ExperimentMethod
from .experiments.tournament import (
    KeptState,
    SlotTally,
    TournamentMatch,
    TournamentSlot,
    tournament_matches,
    tournament_schedule,
)
from .judges.bradley_terry import BradleyTerry
from .judges.panels import PairsMet, best_acceptance
from .judges.presentations import draws_of, presentations_of, shows_proposal_first
from .judges.recipe import JudgeRecipe
from .judges.simulate import simulate
from .judges.sources import (
    ModelSource,
    PeopleSource,
    SeatSource,
)
from .judges.vision import Vision
from .kernels import (
    CrankNicolson,
    FragmentMoves,
    Independent,
    KernelRecipe,
    Mixture,
    Neighbours,
    Suffix,
    WalkKernel,
)
from .kernels.crank_nicolson import PAPER_MIXTURE
from .kernels.warm_up import DEFAULT_GRID, DEFAULT_SETTLING, LONGEST_WALK, WarmUp, warm_up_steps
from .objects import (
    MAX_CATALOG_CHARACTERS,
    MAX_CATALOG_ITEMS,
    OBJECT_KINDS,
    CatalogError,
    Item,
    ObjectKind,
    Reading,
    Refusal,
    extra_columns_of,
)
from .objects.audio.measures import AudioDescription, describe_audio
from .objects.images.encoding import png, preview
from .objects.images.measures import ImageDescription, describe_image
from .objects.markdown.measures import MarkdownDescription, describe_markdown
from .objects.markdown.rendering import object_html, page_html
from .objects.molecules.drawing import draw_molecule, draw_pair, molecule_png
from .objects.molecules.measures import MoleculeDescription, describe_molecule
from .objects.properties import MAIN_PROPERTIES, properties_of_kind
from .objects.prose import TextDescription, describe_text
from .objects.shown import shown_as, size_of
from .objects.texts.differences import compare_texts
from .planning import SECONDS_A_VOTE, Estimate, estimate, step_votes
from .recipe import MOST_CHAINS, MOST_STEPS, Recipe, RecipeError, RecipeProblem, parse_recipe, problems_in
from .record import schema
from .record.archives import BROKEN_ARCHIVE, ArchiveError, TooLargeError, archive_in
from .record.codebook import codebook, entry_of
from .record.commitment import SALT_BYTES, hash_of_seed, opened_recipe, sealed_recipe
from .record.manifest import Manifest
from .record.reader import Record, read_record, read_samples
from .record.replay import Difference, RecordError, Replay, replay
from .record.state_index import state_number
from .record.tuning_record import MIDDLE, WarmUpStep, ended_early, tuned
from .record.verify import Finding, Verification, verify
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
from .rules.recipe import NVoteRecipe
from .rules.scored import QuestRecipe, ScoredRecipe, ScoreRecipe, numbers_of
from .rules.scores import tell_by_scores
from .rules.unjudged import BaseRecipe
from .spaces import Catalog, CatalogRecipe, ServedImagesRecipe, ServedTextsRecipe, SpaceRecipe, objects_of
from .spaces.images.space import GeneratedImages, ImagesRecipe
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
    "BROKEN_ARCHIVE",
    "DEFAULT_GRID",
    "DEFAULT_SETTLING",
    "EXPERIMENTS",
    "JUDGE_RULES",
    "LONGEST_WALK",
    "MAIN_PROPERTIES",
    "MAX_CATALOG_CHARACTERS",
    "MAX_CATALOG_ITEMS",
    "MIDDLE",
    "MOST_CHAINS",
    "MOST_STEPS",
    "OBJECT_KINDS",
    "ORDERS",
    "PAPER_MIXTURE",
    "SALT_BYTES",
    "SCORE_RULES",
    "SECONDS_A_VOTE",
    "STORY_SCENARIOS",
    "ArchiveError",
    "Asked",
    "AudioDescription",
    "BalancedOrder",
    "BaseRecipe",
    "BradleyTerry",
    "CannotScoreError",
    "Catalog",
    "CatalogError",
    "CatalogRecipe",
    "Comparison",
    "CrankNicolson",
    "Difference",
    "Estimate",
    "Experiment",
    "ExperimentInput",
    "ExperimentMethod",
    "ExperimentOptions",
    "Finding",
    "FragmentMoves",
    "GeneratedImages",
    "ImageDescription",
    "ImagesRecipe",
    "Independent",
    "IndependentTable",
    "InvalidPlugIn",
    "Item",
    "JudgeRecipe",
    "JudgeRule",
    "KeptState",
    "Kernel",
    "KernelRecipe",
    "LanguageModel",
    "Manifest",
    "MarkdownDescription",
    "Mars",
    "MatrixTable",
    "MissingExtra",
    "Mixture",
    "MixtureTable",
    "ModelSource",
    "MoleculeDescription",
    "MoleculeLaw",
    "NVote",
    "NVoteRecipe",
    "NeighbourTable",
    "Neighbours",
    "ObjectKind",
    "OptionError",
    "Oracle",
    "PairsMet",
    "PeopleSource",
    "Plan",
    "PointwiseDifference",
    "PointwiseJoint",
    "PointwisePower",
    "PointwiseRecipe",
    "PointwiseSeparate",
    "Position",
    "Proposal",
    "ProposalTable",
    "Purpose",
    "Quest",
    "QuestRecipe",
    "RandomOrder",
    "Reading",
    "Recipe",
    "RecipeError",
    "RecipeProblem",
    "Record",
    "RecordError",
    "Refusal",
    "Replay",
    "RuleRecipe",
    "ScoreRecipe",
    "ScoreRule",
    "ScoredRecipe",
    "SeatSource",
    "ServedImagesRecipe",
    "ServedTextsRecipe",
    "SlotTally",
    "Space",
    "SpaceRecipe",
    "Suffix",
    "Tally",
    "TextDescription",
    "Tokens",
    "TooLargeError",
    "TournamentMatch",
    "TournamentSlot",
    "TwoJudgeOrder",
    "Verdict",
    "Verification",
    "Vision",
    "Vocabulary",
    "VoteSource",
    "VoteWalker",
    "Walk",
    "WalkKernel",
    "Walker",
    "WarmUp",
    "WarmUpStep",
    "acceptance_probability",
    "advance",
    "archive_in",
    "ask",
    "ask_many",
    "askable",
    "autocorrelation_time",
    "begin",
    "begin_many",
    "best_acceptance",
    "changed_settings",
    "check_lockstep",
    "checked_source",
    "codebook",
    "compare_texts",
    "default_vocabulary",
    "describe_audio",
    "describe_image",
    "describe_markdown",
    "describe_molecule",
    "describe_text",
    "diagnostics",
    "draw_molecule",
    "draw_pair",
    "draws_of",
    "ended_early",
    "entry_of",
    "estimate",
    "extra_columns_of",
    "given",
    "hash_of_seed",
    "kept_steps",
    "load_vocabulary",
    "log_base_ratio",
    "marginal_acceptance",
    "mean_ratings",
    "mean_votes",
    "molecule_png",
    "numbers_of",
    "object_html",
    "objects_of",
    "opened_recipe",
    "options_of",
    "outputs",
    "own_sentences",
    "page_html",
    "parse_arms",
    "parse_recipe",
    "parse_size_log_weights",
    "planned_scores",
    "planned_sums",
    "png",
    "preferences",
    "presentations_of",
    "preset_names",
    "preview",
    "problems_in",
    "properties_of_kind",
    "read_record",
    "read_samples",
    "read_sentences",
    "record_lockstep",
    "replay",
    "replay_file",
    "schema",
    "scorer_passes",
    "sealed_recipe",
    "settings_document",
    "settings_hash",
    "settings_text",
    "shown_as",
    "shown_steps",
    "shows_proposal_first",
    "simulate",
    "size_of",
    "spectral_gap",
    "state_number",
    "stationary",
    "step_votes",
    "stream",
    "target",
    "tell",
    "tell_by_ratings",
    "tell_by_scores",
    "tournament_matches",
    "tournament_schedule",
    "tournament_votes",
    "transition_matrix",
    "tuned",
    "verdict",
    "verify",
    "votes_per_effective_sample",
    "votes_per_step",
    "warm_up_steps",
    "write_report",
]
