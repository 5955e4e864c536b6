"""Recompute a campaign from its exported record alone and say where the record differs.

Nothing here trusts the record beyond the config, the objects and the votes, ratings or scores: the chains are walked
again from the seed, and what a column repeats of another is compared with it. `CHECKS` has functions for each file of a
record that say where it cannot be right.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sampler.config import ConfigError
from sampler.judges.config import JudgeConfig, ModelSource, PanelistSource, panelists_of
from sampler.judges.presentation import draws_of, presentations_of
from sampler.objects import Measure, measure_of, properties_of_kind
from sampler.record import tables
from sampler.record.chains import compare_chains
from sampler.record.commitment import Commitment, compare_commitment, read_config
from sampler.record.documents import EXTENDED, compare_budget, compare_events, compare_judges, compare_trials
from sampler.record.draws import Parsed
from sampler.record.record import (
    Difference,
    Record,
    RecordError,
    Row,
    malformed_in,
    of_file,
    of_step,
    quoted,
    reading,
    step_key,
    vote_name,
)
from sampler.record.tables import META, meta_names

MEASURED, COMMAND = "measured", "command"
"""The kinds of scorers: computed by this program, or by one that the site has declared."""
# RDKit's properties may differ in their last digits from one version to the next.
TOLERANCE = 1e-6
_VOTES = tables.VOTES.file


# votes.csv


def compare_votes(parsed: Parsed) -> Iterator[Difference]:
    """Yield where a vote's question, for_proposal, states or source is not that of its judge, sides and step."""
    objects = {step_key(row): (row["current_state"], row["proposal_state"]) for row in parsed.steps}
    decides = parsed.config.rule.evidence == "votes"
    for row in parsed.record["votes"]:
        with reading(_VOTES, row):
            if not decides:
                yield of_step(
                    step_key(row), "a vote", "one", f"none: {parsed.config.rule.evidence} decide", _VOTES, row
                )
            else:
                yield from _compare_vote(parsed, row, objects.get(step_key(row)))


def _compare_vote(parsed: Parsed, row: Row, objects: tuple[str, str] | None) -> Iterator[Difference]:
    judges, judge = parsed.config.judges, int(row["judge_index"])
    if not 0 <= judge < len(judges):
        raise ValueError(f"judge_index must be 0 to {len(judges) - 1}, not {judge}")
    is_model = isinstance(judges[judge].source, ModelSource)
    expected = {
        "question": judges[judge].question,
        "endpoint": _endpoint(judges[judge]),
        "for_proposal": str(int(row["chosen_side"] == row["proposal_side"])),
    }
    # A vote without its step is told of for that.
    if objects is not None:
        first, second = reversed(objects) if row["proposal_side"] == "first" else objects
        chosen = first if row["chosen_side"] == "first" else second
        expected |= {"first_state": first, "second_state": second, "chosen_state": chosen}
    # Nobody else knows which person or reply it was.
    nothing = ("voter", "lease") if is_model else ("slot", "preference", "attempts", "identity")
    expected |= dict.fromkeys(nothing, "")
    name = vote_name(row)
    for column, value in expected.items():
        if row[column] != value:
            yield of_step(step_key(row), f"{name}'s {column}", quoted(row[column]), quoted(value), _VOTES, row)
    if is_model:
        yield from _compare_slot(parsed, row, judge)
    elif not row["voter"]:
        yield of_step(step_key(row), f"{name}'s voter", "none", "one: people answer this question", _VOTES, row)


def _endpoint(judge: JudgeConfig) -> str:
    return judge.source.endpoint if isinstance(judge.source, ModelSource) else ""


def compare_ratings(parsed: Parsed) -> Iterator[Difference]:
    """Yield where a rating is of another endpoint than its judge."""
    for row in parsed.record["ratings"]:
        endpoint = _endpoint(parsed.config.judges[int(row["judge_index"])])
        if row["endpoint"] != endpoint:
            what = f"the endpoint of a rating of state {row['state_index']}"
            yield of_file(tables.RATINGS.file, what, quoted(row["endpoint"]), quoted(endpoint), row)


def _compare_slot(parsed: Parsed, row: Row, judge: int) -> Iterator[Difference]:
    """Compare a model's vote with what its slot says: which object it showed first and, drawn from p, what it is."""
    config, key = parsed.config, step_key(row)
    slot, asked = int(row["slot"] or -1), (config.seed, *key, config.max_votes, judge)
    if not 0 <= slot < config.judges[judge].votes:
        raise ValueError(f"slot must be 0 to {config.judges[judge].votes - 1}, not {quoted(row['slot'])}")
    if parsed.is_sealed:
        return
    side = "first" if presentations_of(*asked, config.judges[judge].order)[slot] else "second"
    if row["proposal_side"] != side:
        yield of_step(key, f"{vote_name(row)}'s proposal_side", row["proposal_side"], side, _VOTES, row)
    if row["preference"]:
        drawn = str(int(draws_of(*asked)[slot] < float(row["preference"])))
        if row["for_proposal"] != drawn:
            what, expected = f"{vote_name(row)}'s answer", f"{drawn}, drawn from p"
            yield of_step(key, what, row["for_proposal"], expected, _VOTES, row)


def compare_panelists(parsed: Parsed) -> Iterator[Difference]:
    """Yield where a vote is of another person than its panelist: all votes of a panelist are of one person, and nobody
    is two panelists.
    """
    names = panelists_of(parsed.config.judges)
    person_of: dict[int, str] = {}
    panelist_of: dict[str, int] = {}
    for row in sorted(parsed.record["votes"], key=lambda row: (row["cast_at"], *step_key(row))) if names else ():
        source = parsed.config.judges[int(row["judge_index"])].source
        if not isinstance(source, PanelistSource):
            continue
        number = names.index(source.name) + 1
        person = person_of.setdefault(number, row["voter"])
        if row["voter"] != person or panelist_of.setdefault(person, number) != number:
            expected = f"that of panelist {number}, who is nobody else"
            yield of_step(step_key(row), f"{vote_name(row)}'s voter", row["voter"] or "none", expected, _VOTES, row)


# states.csv and samples.csv


def compare_objects(parsed: Parsed) -> Iterator[Difference]:
    """Yield where a state does not name the first one with its content, where its neighbours, of which draws go by the
    order, are not in it, or where one that a chain made has what only a list can say.
    """
    first: dict[str, str] = {}
    for row in parsed.states:
        for column in ("weight", "neighbours") if parsed.config.generates else ("code",):
            if row[column]:
                what = f"{column} of state {row['state_index']}"
                yield of_file(tables.STATES.file, what, quoted(row[column]), "none", row)
        if (linked := row["neighbours"].split()) != (ascending := sorted(linked, key=int)):
            what = f"neighbours of state {row['state_index']}"
            yield of_file(tables.STATES.file, what, quoted(row["neighbours"]), quoted(" ".join(ascending)), row)
        same = first.setdefault(row["content"], row["state_index"])
        if row["object_index"] != same:
            what = f"the object of state {row['state_index']}"
            yield of_file(tables.STATES.file, what, row["object_index"], same, row)


def compare_samples(parsed: Parsed) -> Iterator[Difference]:
    """Yield where a sample has another content than its state, or another phase than its step."""
    contents = {row["state_index"]: row["content"] for row in parsed.states}
    for row in parsed.record["samples"]:
        key, content = step_key(row), contents.get(row["state_index"])
        if row["content"] != content:
            expected = "none: states.csv has no such state" if content is None else quoted(content)
            yield of_step(key, "the sample's content", quoted(row["content"]), expected, tables.SAMPLES.file, row)
        if row["phase"] != (phase := parsed.config.phase_of(key[1])):
            yield of_step(key, "the sample's phase", row["phase"], phase, tables.SAMPLES.file, row)


# columns.csv


def compare_columns(parsed: Parsed) -> Iterator[Difference]:
    """Yield where columns.csv cannot be right: it has a cell for each object and column, and states.csv the same one.

    No verdict depends on what stands in them but by the votes: people and models have seen them.
    """
    config, rows = parsed.config, parsed.record["columns"]
    names = list(dict.fromkeys(row["column"] for row in rows))
    metas = dict(zip(names, meta_names(names), strict=True))
    states = {row["state_index"]: row for row in parsed.states}
    cells = {(row["state_index"], row["column"]) for row in rows}
    # Of texts that are written, what is shown with them stands in the config and among the scores.
    for name in sorted({each.column for each in config.context} - {*names}) if not config.generates else ():
        yield of_file(tables.COLUMNS.file, f"the column {quoted(name)}", "none", "one: campaign.json shows it")
    if rows and config.generates:
        yield of_file(tables.COLUMNS.file, "the file", "one", "none: the objects are from no list")
    for name in parsed.states[0] if parsed.states else ():
        if name.startswith(META) and name not in metas.values():
            what = f"the column {quoted(name)} of states.csv"
            yield of_file(tables.COLUMNS.file, what, "one", "none: no column here is called so")
    for row in rows:
        state = states.get(row["state_index"])
        what = f"{quoted(metas[row['column']])} of state {row['state_index']} in states.csv"
        if state is None or (recorded := state.get(metas[row["column"]])) is None:
            yield of_file(tables.COLUMNS.file, what, "none", quoted(row["value"]), row)
        elif recorded != row["value"]:
            yield of_file(tables.COLUMNS.file, what, quoted(recorded), quoted(row["value"]), row)
    if len(cells) != len(rows) or len(cells) != len(states) * len(names):
        expected = f"one for each of {len(states)} states and {len(names)} columns"
        yield of_file(tables.COLUMNS.file, "the rows", len(rows), expected)


# scores.csv


def compare_scores(parsed: Parsed) -> Iterator[Difference]:
    """Yield where scores.csv names what the record does not have, says something twice, or differs from what is
    measured: by more than 1e-6, relative to the number or, below 1, absolute. A replay needs no scorer.
    """
    scorers: list[Mapping[str, Any]] = parsed.record.documents.get(tables.SCORERS, [])
    # No command may have the name of what is measured.
    names = properties_of_kind(parsed.config.space.objects)
    declared = {scorer["name"]: MEASURED if scorer["name"] in names else COMMAND for scorer in scorers}
    for scorer in scorers:
        if (kind := scorer.get("kind")) != (expected := declared[scorer["name"]]):
            yield of_file(tables.SCORERS, f"the kind of {scorer['name']}", quoted(kind), quoted(expected))
    states = {row["state_index"]: row for row in parsed.states}
    is_measured = MEASURED in declared.values()
    measure = measure_of(parsed.config.space.model_dump(mode="json")) if is_measured else None
    seen: set[tuple[str, str]] = set()
    for row in parsed.record["scores"]:
        state, name, cell = row["state_index"], row["scorer"], row["score"]
        wrong = ""
        with reading(tables.SCORES.file, row):
            if state not in states:
                wrong = "none: states.csv has no such state"
            elif name not in declared:
                wrong = f"none: {tables.SCORERS} has no such scorer"
            elif (state, name) in seen:
                wrong = "one score"
            elif declared[name] == MEASURED and measure is not None:
                wrong = _measured_otherwise(measure, states[state], row)
            elif cell and not math.isfinite(float(cell)):
                wrong = "a finite number"
        seen.add((state, name))
        if wrong:
            what = f"the score of state {state} by {name}"
            yield of_file(tables.SCORES.file, what, cell or "none", wrong, row)


def _measured_otherwise(measure: Measure, state: Row, row: Row) -> str:
    """Return what a score should be; empty if it is that."""
    value = measure(state["content"], state["code"]).get(row["scorer"])
    recorded = float(row["score"]) if row["score"] else None
    if value is None or recorded is None:
        return "" if value is recorded else "none" if value is None else repr(value)
    return "" if math.isclose(value, recorded, rel_tol=TOLERANCE, abs_tol=TOLERANCE) else repr(value)


CHECKS: dict[str, tuple[Callable[[Parsed], Iterator[Difference]], ...]] = {
    tables.CONFIG: (lambda parsed: compare_commitment(parsed.config, parsed.commitment), compare_budget),
    tables.TUNING: (lambda parsed: iter(parsed.tuned[1]),),
    tables.STEPS.file: (compare_chains,),
    tables.EVENTS.file: (compare_events,),
    tables.VOTES.file: (compare_votes, compare_panelists),
    tables.RATINGS.file: (compare_ratings,),
    tables.STATES.file: (compare_objects,),
    tables.SAMPLES.file: (compare_samples,),
    tables.COLUMNS.file: (compare_columns,),
    tables.JUDGES: (compare_judges,),
    tables.SCORES.file: (compare_scores,),
    tables.CHECKS.file: (compare_trials,),
}
"""By file. evidence.csv is compared on the way along the chains."""


@dataclass(frozen=True)
class Replay:
    """What a replay found."""

    verdicts: int
    votes: int
    differences: tuple[Difference, ...]
    ratings: int = 0
    scores: int = 0
    """Numbers of scorers, where they decide."""
    commitment: Commitment | None = None
    """What the record says of its seed; None where that is the seed alone."""
    recorded_draws: bool = False
    """Whether proposals are taken as recorded: a model has written them."""
    is_extended: bool = False
    """Whether steps were added after the start."""

    @property
    def is_sealed(self) -> bool:
        """True while the seed is not revealed: starts, proposals, base ratios and uniforms are taken as recorded."""
        return self.commitment is not None and not self.commitment.is_open


def replay(record: Record) -> Replay:
    """Recompute every decision of an export, once each cell is looked at.

    Raises:
        RecordError: a column or a cell is missing, or a cell is not what its column holds.
        ConfigError: the config does not parse.
    """
    for each in malformed_in(record):
        found = None if each.row is None else record.of_file(each.file)[each.row - 2]
        raise RecordError(f"The record cannot be read: {each}", each.file, found)
    return recomputed(record)


def recomputed(record: Record) -> Replay:
    """Recompute every decision of a record in which nothing is malformed.

    While the seed of a campaign is not revealed, what was drawn is taken as recorded, and what the votes make of it is
    recomputed.

    Raises:
        RecordError: a cell names what there is not.
        ConfigError: the config does not parse.
    """
    try:
        config, commitment = read_config(record.config)
    except ConfigError:
        raise
    except ValueError as error:
        raise RecordError(f"The record cannot be read: {error}", tables.CONFIG) from error
    parsed = Parsed(record, config, commitment)
    differences = tuple(each for checks in CHECKS.values() for check in checks for each in check(parsed))
    decided = sum(row["verdict"] != "" for row in parsed.steps)
    cast = sum(len(cast) for cast in parsed.counted_votes.values())
    deciding = sum(row["scorer"] in config.rule.scorers and row["score"] != "" for row in record["scores"])
    is_written = config.generates and config.space.kind == "model-texts"
    is_extended = any(row["kind"] == EXTENDED for row in record["events"])
    return Replay(decided, cast, differences, len(record["ratings"]), deciding, commitment, is_written, is_extended)
