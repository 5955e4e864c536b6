"""What the report's table holds, from a run's folder alone: means with intervals, and the tournament's strengths.

A new experiment's measure is written here and added to `MEASURES`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np

from sampler.diagnostics.scores import (
    MIN_CLUSTERS,
    Choices,
    NoFit,
    Vote,
    bradley_terry_intervals,
    cluster_reach,
    paired_bootstrap,
)
from sampler.experiments import outputs
from sampler.experiments.options import (
    Column,
    Direction,
    ExperimentMethod,
    ExperimentOptions,
    OptionError,
    StateKey,
    TournamentMatch,
    tournament_matches,
)
from sampler.experiments.outputs import Document, OutputError, analysis_library, options_of, read_table, record_name
from sampler.record.record import read_samples

LEVEL = 0.95
MIN_RUNS = 3
HIGHEST_RATING = 10
"""Of stories; a score is the rating divided by it."""
PREFIX = "bt_"
"""What the names of Bradley-Terry columns begin with."""
BETTER, NOT_DIFFERENT = "†", "‡"


@dataclass(frozen=True)
class RunFiles:
    """What a run has left in its folder: settings, tables and records. Nothing but files is asked.

    Raises:
        OutputError: settings.json is missing, or is none of an experiment.
    """

    folder: Path

    @cached_property
    def document(self) -> Document:
        """What settings.json holds."""
        path = self.folder / outputs.SETTINGS
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError as error:
            raise OutputError(f"{path} is missing: a run of an experiment writes it first") from error
        except ValueError as error:
            raise OutputError(f"{path} is no JSON: {error}") from error
        if not isinstance(found, dict):
            raise OutputError(f"{path} must hold an object")
        return found

    @cached_property
    def options(self) -> ExperimentOptions:
        """What the run was asked for."""
        try:
            return options_of(self.document)
        except (KeyError, TypeError, OptionError) as error:
            raise OutputError(f"{self.folder / outputs.SETTINGS} is none of an experiment: {error}") from error

    @cached_property
    def scores(self) -> dict[str, dict[StateKey, float]]:
        """What kept states were given, by name and then by state.

        Raises:
            OutputError: a state was given the same thing twice, or a cell is no number.
        """
        found: dict[str, dict[StateKey, float]] = {}
        for row in read_table(self.folder, outputs.SCORES):
            try:
                numbers = (int(row[column]) for column in ("seed", "chain", "step"))
                state, value = StateKey(row["method"], row["direction"], *numbers), float(row["value"])
                if not math.isfinite(value):
                    raise ValueError(f"a value must be finite, not {value}")
            except ValueError as error:
                raise OutputError(f"{outputs.SCORES}: {error}") from error
            of_name = found.setdefault(row["name"], {})
            if state in of_name:
                raise OutputError(f"{outputs.SCORES} has {row['name']} of {state} twice")
            of_name[state] = value
        return found

    def score(self, name: str, state: StateKey) -> float | None:
        """Return what a state was given, or None."""
        return self.scores.get(name, {}).get(state)

    def kept(self, method: ExperimentMethod, direction: Direction) -> list[StateKey]:
        """Return the states of a method that are evaluated: seed after seed, chain after chain."""
        return [state for seed in self.options.seeds for state in self.options.kept_of(method, direction, seed)]

    def contents(self, method: ExperimentMethod, direction: Direction, seed: int) -> dict[StateKey, str]:
        """Return what the kept states of one campaign say; none where its record is not there yet.

        Raises:
            RecordError: the record cannot be read.
        """
        path = self.folder / outputs.RECORDS / record_name(method.name, direction.name, seed)
        if not path.exists():
            return {}
        wanted, of_campaign = set(self.options.kept_of(method, direction, seed)), (method.name, direction.name, seed)
        rows = ((StateKey(*of_campaign, int(row["chain_index"]), int(row["step"])), row) for row in read_samples(path))
        return {key: row["content"] for key, row in rows if key in wanted}

    def references(self, direction: Direction) -> list[str]:
        """Return the references of a direction's sentences; none where none has one.

        Raises:
            OutputError: some are missing.
        """
        given = self.document.get("inputs", {}).get(direction.name, [])[: direction.inputs]
        found = [str(each.get("reference", "")) for each in given]
        if any(found) and ("" in found or len(found) < direction.inputs):
            missing = [*found, ""].index("")
            raise OutputError(f"settings.json has an empty reference for sentence {missing} of {direction.name}")
        return found if any(found) else []


@dataclass(frozen=True)
class Estimate:
    """A cell of the table.

    Args:
        value: None where there is nothing to compute it from.
        spread: what the paper prints behind ±: a standard deviation or a standard error, as the table says.
        low, high: of the interval at 95 %; None where there is too little for one.
        count: values, or runs, that it was computed from.
        mark: † and ‡ where the method was tested against the reference.
        note: why there is no value.
    """

    value: float | None
    spread: float | None = None
    low: float | None = None
    high: float | None = None
    count: int = 0
    mark: str = ""
    note: str = ""


Cells = dict[tuple[str, str], Estimate]
"""By method and column; a column of an experiment with directions is COLUMN_DIRECTION."""


def over_samples(given: Sequence[tuple[float | None, Hashable]], *, with_spread: bool = True) -> Estimate:
    """Return the mean, the standard deviation over samples, and an interval over clusters.

    Samples of one prompt or chain depend on each other: they are one cluster (`cluster_reach`). Below 15 there is none.

    Args:
        given: a value and the label of its cluster; None is no value.
    """
    known = [(value, cluster) for value, cluster in given if value is not None]
    if not known:
        return Estimate(None, note="no values")
    numbers = np.array([value for value, _ in known], dtype=np.float64)
    names: dict[Hashable, int] = {}
    at = np.array([names.setdefault(cluster, len(names)) for _, cluster in known])
    spread = float(numbers.std(ddof=1)) if with_spread and len(numbers) > 1 else None
    mean = float(numbers.mean())
    reach = float(cluster_reach(np.bincount(at, numbers - mean) / len(numbers), LEVEL))
    low, high = (None, None) if math.isnan(reach) else (mean - reach, mean + reach)
    return Estimate(mean, spread, low, high, len(numbers))


def over_runs(values: Sequence[float], lowest: float = -math.inf, highest: float = math.inf) -> Estimate:
    """Return the mean over independent runs, its standard error SD/√n, and Student's interval.

    One run has no error, and fewer than three have no interval.

    Args:
        lowest, highest: possible value; the interval stays within them.
    """
    if not values:
        return Estimate(None, note="no values")
    mean, count = float(np.mean(values)), len(values)
    error = float(np.std(values, ddof=1) / np.sqrt(count)) if count > 1 else None
    if error is None or count < MIN_RUNS:
        return Estimate(mean, error, count=count)
    from scipy.special import stdtrit

    reach = float(stdtrit(count - 1, (1 + LEVEL) / 2)) * error
    return Estimate(mean, error, max(lowest, mean - reach), min(highest, mean + reach), count)


def measure_stories(run: RunFiles) -> Cells:
    """Return the evaluator's ratings, mean ± SD over samples (L1186-1200)."""
    (direction,) = run.options.directions
    found = {}
    for method in run.options.chosen:
        for asked in run.options.of_experiment.rated:
            rated = (
                (run.score(asked.name, state), state.chain % direction.inputs) for state in run.kept(method, direction)
            )
            given = [(None if rating is None else rating / HIGHEST_RATING, prompt) for rating, prompt in rated]
            found[method.name, asked.name] = over_samples(given)
    return found


def measure_images(run: RunFiles) -> Cells:
    """Return the share of states in which all three objects are detected, and the aesthetic mean (L670, L1440-1450).

    States of one chain follow each other, so only runs of several seeds have an interval; independent draws have one.
    """

    def all_detected(state: StateKey) -> float | None:
        answers = [run.score(asked.name, state) for asked in run.options.of_experiment.rated]
        return None if None in answers else float(all(answers))

    (direction,) = run.options.directions
    found = {}
    for method in run.options.chosen:
        states, middle = run.kept(method, direction), run.options.steps_of(method) / 2
        clusters = {state: state if method.draws_only else state[:4] for state in states}
        for column, value, counted in (
            ("all_three", all_detected, states),
            ("all_three_second_half", all_detected, [state for state in states if state.step > middle]),
            ("aesthetic", lambda state: run.score("aesthetic", state), states),
        ):
            given = [(value(state), clusters[state]) for state in counted]
            found[method.name, column] = over_samples(given, with_spread=False)
    return found


def measure_molecules(run: RunFiles) -> Cells:
    """Return QED, ease of synthesis, diversity and MolSkill of the final states, mean ± SE over runs (L1554-1568).

    Each is one number for each seed, over all kept states, duplicates included.
    """
    from sampler.experiments.mars import measures_of

    (direction,) = run.options.directions
    found = {}
    for method in run.options.chosen:
        runs = []
        for seed in run.options.seeds:
            measures = measures_of(list(run.contents(method, direction, seed).values()))
            given = [run.score("molskill", state) for state in run.options.kept_of(method, direction, seed)]
            # Of part of the molecules, a mean would be that of another set.
            values = [value for value in given if value is not None]
            if values and len(values) == len(given):
                measures |= {"molskill_mean": float(np.mean(values)), "molskill_median": float(np.median(values))}
            runs.append(measures)
        for column in run.options.of_experiment.columns:
            values = [each[column.name] for each in runs if column.name in each]
            # QED, the rescaled SA and diversity are shares; a scorer's numbers may be any.
            possible = () if column.scorer else (0.0, 1.0)
            found[method.name, column.name] = over_runs(values, *possible)
    return found


def measure_translation(run: RunFiles) -> Cells:
    """Return BLEU, chrF, TER by sacrebleu, and XCOMET, averaged over kept states and then over sources (L1684).

    Each baseline is tested against the reference method by a paired bootstrap over sources (L1695-1697): † is better, ‡
    not significantly different, unmarked worse.

    Raises:
        MissingExtra: sacrebleu is not installed.
        OutputError: settings.json lacks some of a direction's references. Where it has none at all, the cells that
            need them are empty.
    """
    found: Cells = {}
    reference = run.options.of_experiment.reference
    for direction in run.options.directions:
        texts = {method.name: _texts(run, method, direction) for method in run.options.chosen}
        for column in run.options.of_experiment.columns:
            name = f"{column.name}_{direction.name}"
            if not column.scorer and not run.references(direction):
                found |= {(method, name): Estimate(None, note="no references") for method in texts}
                continue
            score = _scorer_of(run, direction, column)
            scored = {method: _by_source(direction, score, said) for method, said in texts.items()}
            for method, values in scored.items():
                cell = over_samples([(value, source) for source, value in values.items()], with_spread=False)
                if method != reference and reference in scored:
                    mark = mark_of(values, scored[reference], higher_is_better=column.higher_is_better)
                    cell = replace(cell, mark=mark)
                found[method, name] = cell
    return found


def corpus_scores(run: RunFiles) -> Cells:
    """Return the same metrics at the level of the corpus: of each kept state's index in its chain, then the mean.

    An extra, which the paper's table does not have.

    Raises:
        MissingExtra, OutputError: as `measure_translation`.
    """
    found: Cells = {}
    for direction in run.options.directions:
        references = run.references(direction)
        for method in run.options.chosen if references else ():
            slots: dict[tuple[int, int], list[tuple[str, str]]] = {}
            for state, text in _texts(run, method, direction).items():
                pair = text, references[state.chain % direction.inputs]
                slots.setdefault((state.seed, state.step), []).append(pair)
            for name, metric in _sacrebleu(effective_order=False).items():
                values = [
                    metric.corpus_score([text for text, _ in slot], [[reference for _, reference in slot]]).score
                    for slot in slots.values()
                ]
                mean = float(np.mean(values)) if values else None
                found[method.name, f"{name}_{direction.name}"] = Estimate(mean, count=len(values))
    return found


MEASURES: dict[str, Callable[[RunFiles], Cells]] = {
    "stories": measure_stories,
    "images": measure_images,
    "molecules": measure_molecules,
    "translation": measure_translation,
}
"""By experiment: the table's cells but for the tournament's."""


def mark_of(baseline: Mapping[int, float], reference: Mapping[int, float], *, higher_is_better: bool) -> str:
    """Return † where a baseline is significantly better than the reference, ‡ where it does not differ, "" where worse.

    Two-sided at 95 %, over the sources that both have; "" too where these are fewer than 15: of so few, resampling
    finds differences that are none.

    Args:
        baseline, reference: the mean over a source's kept states, by the source's number.
    """
    sources = sorted(baseline.keys() & reference.keys())
    if len(sources) < MIN_CLUSTERS:
        return ""
    first, second = ([values[source] for source in sources] for values in (baseline, reference))
    mean, p_value = paired_bootstrap(first, second, np.random.default_rng(0))
    if p_value > 1 - LEVEL:
        return NOT_DIFFERENT
    return BETTER if (mean > 0) == higher_is_better else ""


def strength_cells(run: RunFiles) -> Cells:
    """Return the table's cells of the tournament, by method and property, each property behind `PREFIX`.

    Strengths are natural log-odds of mean 0, fitted together with the position bias to what is first. Votes that have
    no finite fit are reported as such, never smoothed.

    Raises:
        OutputError: as `tournament_choices`.
    """
    found: Cells = {}
    for name, votes in tournament_choices(run).items():
        try:
            fitted = bradley_terry_intervals(votes)
        except NoFit as reason:
            found |= {(method, PREFIX + name): Estimate(None, note=str(reason)) for method in run.options.methods}
            continue
        for method, *numbers in zip(fitted.items, fitted.estimate, fitted.low, fitted.high, strict=True):
            value, low, high = (None if np.isnan(number) else float(number) for number in numbers)
            found[str(method), PREFIX + name] = Estimate(value, None, low, high, votes.votes)
    return found


def tournament_choices(run: RunFiles) -> dict[str, Choices]:
    """Return the votes of each property, left being what was shown first.

    A cluster is a prompt, whatever the seed; where all chains have the same prompt or none, it is a chain of a seed.

    Raises:
        OutputError: a vote belongs to no pair, or stands there twice.
    """
    pairs = {match.key: match for match in tournament_matches(run.options)}
    found: dict[str, list[Vote]] = {asked.name: [] for asked in run.options.of_experiment.compared}
    seen = set()
    for row in read_table(run.folder, outputs.VOTES):
        key = tuple(row[column] for column in outputs.VOTE_KEY)
        if key in seen:
            raise OutputError(f"{outputs.VOTES} has the vote {key} twice")
        seen.add(key)
        if row["pair"] not in pairs or row["property"] not in found:
            raise OutputError(f"{outputs.VOTES} has a vote on {key[:2]}, which this run has not")
        match = pairs[row["pair"]]
        one_first, chose_one = row["one_first"] == "1", row["chose_one"] == "1"
        methods = (match.one.method, match.other.method) if one_first else (match.other.method, match.one.method)
        found[row["property"]].append((*methods, chose_one == one_first, _cluster(run, match)))
    return {name: Choices.of(votes) for name, votes in found.items()}


def _cluster(run: RunFiles, match: TournamentMatch) -> Hashable:
    if run.options.direction(match.one.direction).inputs > 1:
        return match.one.direction, match.prompt
    return match.one.seed, match.one.chain


def _texts(run: RunFiles, method: ExperimentMethod, direction: Direction) -> dict[StateKey, str]:
    found: dict[StateKey, str] = {}
    for seed in run.options.seeds:
        found |= run.contents(method, direction, seed)
    return found


def _scorer_of(run: RunFiles, direction: Direction, column: Column) -> Callable[[StateKey, str], float | None]:
    """Return what gives a translation its number: a scorer, or a metric of sentence and reference."""
    if column.scorer:
        return lambda state, text: run.score(column.scorer, state)
    metric, references = _sacrebleu(effective_order=True)[column.name], run.references(direction)

    # A chain that stays where it is has the same text in several kept states.
    @cache
    def score(text: str, reference: str) -> float:
        return float(metric.sentence_score(text, [reference]).score)

    return lambda state, text: score(text, references[state.chain % direction.inputs])


def _by_source(
    direction: Direction, score: Callable[[StateKey, str], float | None], texts: Mapping[StateKey, str]
) -> dict[int, float]:
    found: dict[int, list[float]] = {}
    for state, text in texts.items():
        if (value := score(state, text)) is not None:
            found.setdefault(state.chain % direction.inputs, []).append(value)
    return {source: float(np.mean(values)) for source, values in sorted(found.items())}


def _sacrebleu(*, effective_order: bool) -> dict[str, Any]:
    """Return BLEU, chrF and TER by column; BLEU of a sentence has the effective order.

    Raises:
        MissingExtra: sacrebleu is not installed.
    """
    library = analysis_library("sacrebleu.metrics")
    return {"bleu": library.BLEU(effective_order=effective_order), "chrf": library.CHRF(), "ter": library.TER()}
