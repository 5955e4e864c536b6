"""Recompute a campaign from its exported record alone and say where the record differs.

Nothing here trusts the record beyond the config, the objects and the votes, ratings or scores: the chains are walked
again from the seed, and what a column repeats of another is compared with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from sampler.chain import Plan
from sampler.config import ChainConfig, ConfigError
from sampler.record import schema
from sampler.record.awaited import Awaited, ListedStates
from sampler.record.chain_record import chains_in, compare_openings
from sampler.record.check_chain import (
    Difference,
    Evidence,
    Row,
    RowError,
    StepKey,
    Tables,
    check_chain,
    reading,
    step_key,
)
from sampler.record.columns_record import compare_columns
from sampler.record.commitment import Commitment, compare_commitment, read_config
from sampler.record.draw_source import DrawSource, Recorded, Redrawn
from sampler.record.extension_record import compare_extensions
from sampler.record.judge_record import compare_judges
from sampler.record.panel_record import compare_panelists
from sampler.record.protocol_record import compare_protocol
from sampler.record.rating_evidence import RatingEvidence
from sampler.record.score_evidence import NoEvidence, ScoreEvidence
from sampler.record.score_record import compare_scores
from sampler.record.state_index import CatalogIndex, GeneratedIndex, StateIndex
from sampler.record.suspended_record import compare_suspended
from sampler.record.tuning_record import chosen_in
from sampler.record.vote_evidence import VoteEvidence
from sampler.spaces.catalog import Catalog
from sampler.spaces.space import Space
from sampler.spaces.texts.served import RecordedTexts

__all__ = ["Difference", "RecordError", "Replay", "replay"]


_EVIDENCE: dict[str, Callable[[ChainConfig, Tables], Evidence]] = {
    "votes": VoteEvidence,
    "ratings": RatingEvidence,
    "scores": ScoreEvidence,
    "none": NoEvidence,
}
"""By what decides a step: `evidence` of the rule."""


class RecordError(ValueError):
    """A record that cannot be read: a file, a column or a number is missing or malformed.

    Args:
        file, row: where, if that is known.
    """

    def __init__(self, message: str, file: str = "", row: Row | None = None) -> None:
        super().__init__(message)
        self.file, self.row = file, row


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

    @property
    def waits_for_seed(self) -> bool:
        """True while the seed is not told: starts, proposals, base ratios and uniforms are taken as recorded."""
        return self.commitment is not None and not self.commitment.is_open


def replay(
    config: Mapping[str, Any],
    states: Iterable[Row],
    steps: Iterable[Row],
    votes: Iterable[Row],
    samples: Iterable[Row],
    ratings: Iterable[Row] = (),
    judges: Sequence[Mapping[str, Any]] | None = None,
    tuning: Mapping[str, Any] | None = None,
    chains: Iterable[Row] | None = None,
    *,
    suspended: Iterable[Row] | None = None,
    protocol: Mapping[str, Any] | None = None,
    checks: Iterable[Row] | None = None,
    columns: Iterable[Row] | None = None,
    scores: Iterable[Row] | None = None,
    scorers: Sequence[Mapping[str, Any]] | None = None,
    extensions: Iterable[Row] | None = None,
) -> Replay:
    """Recompute every decision of an export.

    The arguments are campaign.json, the rows of its CSV files, judges.json, and the tuning.json of a warm-up; rows of
    chains.csv, where chains open while the campaign runs; those of suspended.csv, if steps were suspended;
    protocol.json and the rows of checks.csv, where people were shown trials that are no votes; those of columns.csv,
    where the list of the objects has further columns; the rows of scores.csv and scorers.json, where there are scorers;
    and those of extensions.csv, where a researcher added steps. Without a rule that rates, ratings are not needed.

    While the seed of a campaign is not told, what was drawn is taken as recorded, and what the votes make of
    it is recomputed.

    Raises:
        RecordError: a column or a cell is missing, or a cell is not what its column holds.
        ConfigError: the config does not parse.
    """
    try:
        parsed, commitment = read_config(config)
    except ConfigError:
        raise
    except ValueError as error:
        raise RecordError(f"The record cannot be read: {error}", schema.CONFIG) from error
    waits = commitment is not None and not commitment.is_open
    try:
        tables = Tables(
            sorted(_whole("states", states), key=lambda row: int(row["state"])),
            sorted(_whole("steps", steps), key=step_key),
            list(_whole("votes", votes)),
            list(_whole("samples", samples)),
            list(_whole("ratings", ratings)),
            list(_whole("scores", scores or ())),
            waits_for_seed=waits,
        )
        openings = None if chains is None else list(_whole("chains", chains))
        trials = list(_whole("checks", checks or ()))
        opened = chains_in(parsed, openings)
        evidence = _EVIDENCE[parsed.rule.evidence](parsed, tables)
        walk_length, differences = chosen_in(parsed, tuning, tables.states, tables.steps)
        if scorers is not None and scores is None:
            raise ValueError("there is no scores.csv, although there is a scorers.json")
        differences = [
            *differences,
            *compare_commitment(parsed, commitment),
            *_compare_chains(parsed, tables, evidence, walk_length, opened),
            *(compare_openings(parsed, openings, tables.steps) if parsed.is_elastic and openings is not None else ()),
            *compare_suspended(tables.steps, list(_whole("suspended", suspended or ()))),
            *_compare_votes(evidence, tables.votes),
            *_compare_contents(tables.states, tables.samples),
            *compare_columns(parsed, tables.states, None if columns is None else list(_whole("columns", columns))),
            *compare_panelists(parsed, tables),
            *(() if judges is None else compare_judges(parsed, judges, tables.votes, tables.ratings)),
            *compare_scores(parsed, tables.states, tables.scores, scorers or ()),
            *(() if protocol is None else _compare_trials(parsed, protocol, trials, tables)),
            *compare_extensions(parsed, list(_whole("extensions", extensions or ())), tables.steps),
        ]
    except (KeyError, ValueError) as error:
        problem = f"there is no column {error}" if isinstance(error, KeyError) else str(error)
        where = (error.file, error.row) if isinstance(error, RowError) else ()
        raise RecordError(f"The record cannot be read: {problem}", *where) from error
    decided = sum(row["verdict"] != "" for row in tables.steps)
    cast = sum(len(cast) for cast in tables.counted_votes.values())
    deciding = sum(row["scorer"] in parsed.rule.scorers and row["score"] != "" for row in tables.scores)
    is_written = parsed.generates and parsed.space.kind == "model-texts"
    return Replay(decided, cast, tuple(differences), len(tables.ratings), deciding, commitment, is_written)


def _compare_votes(evidence: Evidence, votes: Iterable[Row]) -> Iterator[Difference]:
    for row in votes:
        with reading(schema.VOTES.file, row):
            yield from evidence.compare_vote(row)


def _compare_trials(
    config: ChainConfig, protocol: Mapping[str, Any], trials: list[Row], tables: Tables
) -> Iterator[Difference]:
    return compare_protocol(config, protocol, trials, tables.votes, waits_for_seed=tables.waits_for_seed)


def _whole(table: str, rows: Iterable[Row]) -> Iterator[Row]:
    # csv.DictReader gives None for the cells that a row lacks.
    for number, row in enumerate(rows, start=2):
        if None in row.values():
            raise ValueError(f"row {number} of {table}.csv has fewer cells than the header")
        yield row


def _opened(config: ChainConfig, tables: Tables, walk_length: int | None) -> tuple[DrawSource, StateIndex]:
    draws, index = _drawn_again(config, tables.states, walk_length)
    if not tables.waits_for_seed:
        return draws, index
    starts = {chain: int(row["state"]) for row in tables.samples for chain, step in [step_key(row)] if step == 0}
    return Awaited(
        config, index if isinstance(index, GeneratedIndex) else ListedStates(len(tables.states)), starts
    ), index


def _drawn_again(config: ChainConfig, states: list[Row], walk_length: int | None) -> tuple[DrawSource, StateIndex]:
    if not config.generates:
        with reading(schema.STATES.file):
            catalog = _catalog(states)
        return Redrawn(config.build(catalog, walk_length=walk_length)), CatalogIndex()
    if config.space.kind == "model-texts":
        texts = RecordedTexts(config.space)
        index = GeneratedIndex(texts, config.chains_at_most, list(states))
        return Recorded(config.plan_on(texts, walk_length), index, config.chains_at_most), index
    plan: Plan[Any] = config.build(walk_length=walk_length)
    return Redrawn(plan), GeneratedIndex(cast(Space[Any], plan.space), config.chains_at_most, list(states))


def _catalog(states: Sequence[Row]) -> Catalog:
    if [int(row["state"]) for row in states] != list(range(len(states))):
        raise ValueError("states must be numbered from 0 without a gap")
    graph = tuple(tuple(int(other) for other in row["neighbours"].split()) for row in states)
    return Catalog(np.array([float(row["weight"]) for row in states]), graph if any(graph) else ())


def _compare_chains(
    config: ChainConfig, tables: Tables, evidence: Evidence, walk_length: int | None, chains: int
) -> Iterator[Difference]:
    draws, index = _opened(config, tables, walk_length)
    last = config.steps if config.warm_up is None or walk_length is not None else config.warm_up.steps
    visits: dict[StepKey, int] = {}
    for row in tables.samples:
        state = int(row["state"])
        if step_key(row) in visits:
            yield Difference(*step_key(row), "a second sample", str(state), "one sample per step", *_in_samples(row))
        visits[step_key(row)] = state
        phase = config.phase_of(int(row["step"]))
        # Where there are no phases, a column of that name is none of the record's; `diagnose` would leave samples out.
        if (row["phase"] if config.has_phases else row.get("phase", phase)) != phase:
            yield Difference(*step_key(row), "the sample's phase", row["phase"], phase, *_in_samples(row))
    for chain in range(chains):
        mine = [row for row in tables.steps if int(row["chain"]) == chain]
        yield from check_chain(draws, index, config, chain, mine, evidence, visits, last)
    yield from _compare_leftovers(chains, {step_key(row) for row in tables.steps}, tables.counted_votes, visits)


def _compare_leftovers(
    chains: int, steps: set[StepKey], votes_of: dict[StepKey, list[Row]], visits: dict[StepKey, int]
) -> Iterator[Difference]:
    for chain, step in sorted(steps):
        if not 0 <= chain < chains:
            yield Difference(chain, step, "the step", "one", f"none: there are {chains} chains")
    for chain, step in sorted(set(votes_of) - steps):
        rows = votes_of[chain, step]
        row = rows[0] if rows else None
        yield Difference(chain, step, "a vote", "one", "none: steps.csv has no such step", schema.VOTES.file, row)
    for chain, step in sorted(visits):
        expected = "none: the chain does not reach this step"
        yield Difference(chain, step, "the sample", str(visits[chain, step]), expected, schema.SAMPLES.file)


def _compare_contents(states: Iterable[Row], samples: Iterable[Row]) -> Iterator[Difference]:
    contents = {int(row["state"]): row["content"] for row in states}
    for row in samples:
        content = contents.get(int(row["state"]))
        if row["content"] != content:
            expected = "none: states.csv has no such state" if content is None else f"“{content[:60]}”"
            recorded = f"“{row['content'][:60]}”"
            yield Difference(*step_key(row), "the sample's content", recorded, expected, *_in_samples(row))


def _in_samples(row: Row) -> tuple[str, Row]:
    return schema.SAMPLES.file, row
