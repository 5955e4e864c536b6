"""The tables of an export: every column once, with how its cells are written and read.

The application writes through `Table.row`, which takes a value for each column, or through `Table.ordered`, which takes
what is a cell already; `reader.py` reads through `Table.unescape`. How a value becomes a cell is in `cells.py`.
`docs/record-format.md` says what each column means.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from sampler.record.cells import Cell as Cell
from sampler.record.cells import escaped as escaped
from sampler.record.cells import if_known, number, whole, word, yes_or_no
from sampler.record.cells import moment as moment
from sampler.record.cells import numbers as numbers
from sampler.record.cells import unescaped as unescaped
from sampler.record.cells import wholes as wholes
from sampler.record.tables import META as META
from sampler.record.tables import Column as Column
from sampler.record.tables import Table as Table
from sampler.record.tables import meta_names as meta_names

MEAN_RATINGS = ("current_ratings", "proposal_ratings")
"""Of steps.csv: the mean ratings that a verdict was computed from, one a judge, where the rule rates."""
VOTES = Table(
    "votes",
    (
        Column("chain", whole),
        Column("step", whole),
        Column("number", whole),
        Column("judge", whole),
        Column("question", escaped),
        Column("annotator", whole),
        Column("proposal_side", word),
        Column("chosen_side", word),
        Column("for_proposal", yes_or_no),
        Column("elapsed_ms", whole),
        Column("cast_at", moment),
        Column("endpoint", escaped),
        Column("slot", whole),
        Column("preference", number),
        Column("asks", whole),
        Column("identity", whole),
        Column("lease", word),
        Column("first_state", whole),
        Column("second_state", whole),
        Column("chosen_state", whole),
        Column("hidden_ms", whole),
        Column("layout", word),
        Column("translated", if_known),
    ),
)
"""Records of simulations lack the last seven; those about states follow from the step and the sides."""
STEPS = Table(
    "steps",
    (
        Column("chain", whole),
        Column("step", whole),
        Column("current", whole),
        Column("proposal", whole),
        Column("log_r0", number),
        Column("uniform", number),
        Column("budgets", wholes),
        Column("votes_cast", wholes),
        Column("votes_for", wholes),
        Column("verdict", word),
        Column("opened_at", moment),
        Column("decided_at", moment),
        *(Column(name, numbers) for name in MEAN_RATINGS),
    ),
)
STEPS_WITH_PARTS = replace(STEPS, columns=(*STEPS.columns, Column("part", whole)))
"""Where the config draws, for each step, which part of the kernel proposes: `ChainConfig.has_parts`."""
SCORES_OF_STEP = ("current_scores", "proposal_scores")
"""The numbers that a verdict was computed from, in the order of the rule's scorers, where they decide."""


def steps_table(has_parts: bool, has_scores: bool) -> Table:
    """Return steps.csv of a config.

    Args:
        has_parts: as `ChainConfig` has it.
        has_scores: the rule goes by scores.
    """
    table = STEPS_WITH_PARTS if has_parts else STEPS
    scores = tuple(Column(name, numbers) for name in SCORES_OF_STEP) if has_scores else ()
    return replace(table, columns=(*table.columns, *scores))


STATES = Table(
    "states",
    (
        Column("state", whole),
        Column("weight", number),
        Column("neighbours", wholes),
        Column("content", escaped),
        Column("code", escaped),
    ),
)


def states_table(names: Iterable[str]) -> Table:
    """Return states.csv of a campaign, whose list has further columns of these names, in the order of the file.

    `object` is for counting: a chain that makes an object again gives it a new number.
    """
    further = (Column(name, escaped) for name in meta_names(names))
    return replace(STATES, columns=(*STATES.columns, Column("object", whole), *further))


COLUMNS = Table("columns", (Column("state", whole), Column("column", escaped), Column("value", escaped)))
"""The further columns of the uploaded list, a row for each object and column; only where it has any."""
SAMPLES = Table(
    "samples",
    (Column("chain", whole), Column("step", whole), Column("state", whole), Column("content", escaped)),
)
SAMPLES_WITH_PHASES = replace(SAMPLES, columns=(*SAMPLES.columns, Column("phase", word)))
"""Where not every sample is one to analyse: `ChainConfig.has_phases`."""
SAMPLING = "sampling"
"""The phase whose samples are analysed; those of the others are left out."""
EXTENSIONS = Table(
    "extensions",
    (
        Column("extension", whole),
        Column("steps_before", whole),
        Column("steps_after", whole),
        Column("extended_at", moment),
    ),
)
"""What a researcher added to the steps after the start."""
CHAINS = Table(
    "chains",
    (Column("chain", whole), Column("opened_at", moment), Column("reason", word), Column("annotator", whole)),
)
"""When and why each chain opened, where some open while the campaign runs: `ChainConfig.is_elastic`."""
AT_START, FOR_A_PERSON, AHEAD = "start", "wait", "ahead"
"""The reasons in it."""
SUSPENDED = Table(
    "suspended",
    (
        Column("chain", whole),
        Column("step", whole),
        Column("cause", word),
        Column("count", whole),
        Column("suspended_at", moment),
        Column("outcome", word),
        Column("settled_at", moment),
        Column("words", escaped),
    ),
)
"""Steps that nobody was asked about for a while, or for ever, and why; only where there are any."""
TRIED_AGAIN, DECIDED, ENDED = "tried-again", "decided", "ended"
"""The outcomes in it; none while a step is suspended."""
CALLS = Table(
    "calls",
    (
        Column("judge", whole),
        Column("requests", whole),
        Column("failed", whole),
        Column("unreadable", whole),
        Column("unpriced", whole),
        Column("tokens_in", whole),
        Column("tokens_out", whole),
        Column("seconds", number),
        Column("cost", number),
    ),
)
"""What asking models took, by judge; without one for texts that a model wrote. Only where that was capped."""
RATINGS = Table(
    "ratings",
    (
        Column("state", whole),
        Column("judge", whole),
        Column("slot", whole),
        Column("rating", whole),
        Column("asks", whole),
        Column("endpoint", escaped),
        Column("rated_at", moment),
        Column("identity", whole),
    ),
)
REASONS = Table(
    "reasons",
    (
        Column("chain", whole),
        Column("step", whole),
        Column("judge", whole),
        Column("slot", whole),
        Column("reason", escaped),
        Column("cut", yes_or_no),
    ),
)
"""What models thought before they voted, only where that is kept. No verdict depends on it."""
SCORES = Table("scores", (Column("state", whole), Column("scorer", word), Column("score", number)))
"""Numbers that scorers gave objects, where a campaign has scorers. Verdicts depend on those that the rule names."""
ANNOTATORS = Table(
    "annotators",
    (
        Column("annotator", whole),
        Column("joined_at", moment),
        Column("removed_at", moment),
        Column("stage", word),
        Column("outcome", word),
        Column("finished_at", moment),
    ),
)
"""Of people whom a platform has sent. No verdict depends on it."""
ANNOTATORS_WITH_SPEED = replace(
    ANNOTATORS, columns=(*ANNOTATORS.columns, Column("most_a_minute", whole), Column("fast_votes", whole))
)
"""Where the campaign says from how many votes a minute on somebody is flagged."""
CONSENTS = Table(
    "consents",
    (
        Column("annotator", whole),
        Column("version", word),
        Column("agreed", yes_or_no),
        Column("answered_at", moment),
    ),
)
CONSENT_TEXTS = Table(
    "consent_texts",
    (Column("version", word), Column("first_used_at", moment), Column("text", escaped)),
)
LEASES = Table(
    "leases",
    (
        Column("annotator", whole),
        Column("chain", whole),
        Column("step", whole),
        Column("judge", whole),
        Column("proposal_side", word),
        Column("issued_at", moment),
        Column("ended_at", moment),
        Column("ending", word),
        Column("lease", word),
    ),
)
"""Every pair that was shown to people whom a platform has sent, and how that ended."""
LEASES_WITH_HIDDEN = replace(LEASES, columns=(*LEASES.columns, Column("hidden_ms", whole)))
"""Where pages have told how long they were in a hidden tab."""
CHECKS = Table(
    "checks",
    (
        Column("annotator", whole),
        Column("after_votes", whole),
        Column("expected_side", word),
        Column("chosen_side", word),
        Column("passed", if_known),
        Column("elapsed_ms", whole),
        Column("shown_at", moment),
        Column("answered_at", moment),
    ),
)
"""Every attention check that people were shown. None is a vote."""
CHECKS_WITH_KINDS = replace(
    CHECKS,
    columns=(
        *CHECKS.columns,
        Column("kind", word),
        Column("gold", whole),
        Column("swapped", yes_or_no),
        Column("chain", whole),
        Column("step", whole),
        Column("judge", whole),
        Column("agreed", if_known),
    ),
)
"""Where there are gold pairs or repeats."""
PROBLEMS = Table(
    "problems",
    (
        Column("annotator", whole),
        Column("chain", whole),
        Column("step", whole),
        Column("proposal_side", word),
        Column("reason", word),
        Column("reported_at", moment),
    ),
)
"""Pairs that people skipped and said why."""
EVENTS = Table(
    "events",
    (
        Column("annotator", whole),
        Column("kind", word),
        Column("at", moment),
        Column("reason", word),
        Column("paid", if_known),
        Column("detail", word),
    ),
)
"""What happened in the campaign beside its steps and votes: what researchers did, and parts that they ended."""
CODEBOOK = Table(
    "codebook",
    (Column("file", word), Column("column", word), Column("values", word), Column("meaning", escaped)),
)
"""What each file and column of the archive means; see `codebook.py`."""
TABLES = (VOTES, STEPS, STATES, SAMPLES, RATINGS)
"""In the order in which an export has them."""
PROPERTIES = Table("properties", (Column("state", whole), Column("content", escaped)))
"""Beside the record, not part of it: what was measured of the objects; see `Table.with_measures`."""
CONFIG, JUDGES, TUNING = "campaign.json", "judges.json", "tuning.json"
SCORERS = "scorers.json"
"""What each scorer said of itself at the start."""
PROTOCOL = "protocol.json"
"""What shaped who voted and on what, where a platform has sent people or there are limits."""
MANIFEST = "manifest.json"
"""Each file by its hash: the last one of an archive. See `manifest.py`."""
