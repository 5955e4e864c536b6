"""Translation: BLEU, chrF, TER by sacrebleu, and XCOMET, averaged over kept states and then over sources (L1684).

Each baseline is tested against the reference method by a paired bootstrap over sources (L1695-1697): † is better, ‡ not
significantly different, unmarked worse.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from sampler.commands.report.estimates import LEVEL, Estimate, over_samples
from sampler.commands.report.run_files import RunFiles, StateKey
from sampler.diagnostics.bootstrap import RESAMPLES, paired_bootstrap
from sampler.diagnostics.extras import analysis_library
from sampler.experiments.outputs import OutputError
from sampler.experiments.settings import Column, Direction, ExperimentMethod

BySource = dict[int, float]
"""The mean over a source's kept states, by the source's number."""

BETTER, NOT_DIFFERENT = "†", "‡"


def measure(run: RunFiles) -> dict[tuple[str, str], Estimate]:
    """Return the table's cells, each of a method, metric and direction.

    Raises:
        MissingExtra: sacrebleu is not installed.
        OutputError: settings.json lacks some of a direction's references. Where it has none at all, the cells that
            need them are empty.
    """
    found = {}
    metrics = sentence_metrics()
    for direction in run.options.directions:
        texts = {method.name: _texts(run, method, direction) for method in run.options.chosen}
        for column in run.options.of_experiment.columns:
            if column.name in metrics and not _has_references(run, direction):
                for name in texts:
                    found[name, f"{column.name}_{direction.name}"] = Estimate(None, note="no references")
                continue
            scored = {
                name: _by_source(run, direction, column, metrics.get(column.name), contents)
                for name, contents in texts.items()
            }
            for name, values in scored.items():
                cell = over_samples(list(values.values()), list(values), np.random.default_rng(0), with_spread=False)
                mark = _mark(run, column, name, scored)
                found[name, f"{column.name}_{direction.name}"] = replace(cell, mark=mark)
    return found


def sentence_metrics() -> dict[str, Callable[[str, str], float]]:
    """Return BLEU with effective order, chrF and TER of one sentence, by column; a score of hypothesis and reference.

    Raises:
        MissingExtra: sacrebleu is not installed.
    """
    library = analysis_library("sacrebleu.metrics")
    made = {"bleu": library.BLEU(effective_order=True), "chrf": library.CHRF(), "ter": library.TER()}
    return {name: _remembering(metric) for name, metric in made.items()}


def corpus_scores(run: RunFiles) -> dict[tuple[str, str], Estimate]:
    """Return the same metrics at the level of the corpus: of each kept state's place in its chain, then the mean.

    An extra, which the paper's table does not have.

    Raises:
        MissingExtra, OutputError: as `measure`.
    """
    library = analysis_library("sacrebleu.metrics")
    metrics = {"bleu": library.BLEU(), "chrf": library.CHRF(), "ter": library.TER()}
    found = {}
    for direction in filter(partial(_has_references, run), run.options.directions):
        for method in run.options.chosen:
            slots: dict[tuple[int, int], list[tuple[str, str]]] = {}
            for state, text in _texts(run, method, direction).items():
                reference = _reference(run, direction, state[3])
                slots.setdefault((state[2], state[4]), []).append((text, reference))
            for name, metric in metrics.items():
                values = [
                    metric.corpus_score([text for text, _ in slot], [[reference for _, reference in slot]]).score
                    for slot in slots.values()
                ]
                mean = float(np.mean(values)) if values else None
                found[method.name, f"{name}_{direction.name}"] = Estimate(mean, count=len(values))
    return found


def mark_of(baseline: BySource, reference: BySource, *, higher_is_better: bool, resamples: int = RESAMPLES) -> str:
    """Return † where a baseline is significantly better than the reference, ‡ where it does not differ, "" where worse.

    Two-sided at 95 %, over the sources that both have; "" too where these are fewer than two.
    """
    sources = sorted(baseline.keys() & reference.keys())
    if len(sources) < 2:
        return ""
    first, second = ([values[source] for source in sources] for values in (baseline, reference))
    difference = paired_bootstrap(first, second, np.random.default_rng(0), resamples, LEVEL)
    if difference.p_value > 1 - LEVEL:
        return NOT_DIFFERENT
    return BETTER if (difference.mean > 0) == higher_is_better else ""


def _mark(run: RunFiles, column: Column, name: str, scored: Mapping[str, BySource]) -> str:
    reference = run.options.of_experiment.reference
    if name == reference or reference not in scored:
        return ""
    return mark_of(scored[name], scored[reference], higher_is_better=column.higher_is_better)


def _texts(run: RunFiles, method: ExperimentMethod, direction: Direction) -> dict[StateKey, str]:
    found: dict[StateKey, str] = {}
    for seed in run.options.seeds:
        found |= run.contents(method, direction, seed)
    return found


def _by_source(
    run: RunFiles,
    direction: Direction,
    column: Column,
    metric: Callable[[str, str], float] | None,
    texts: Mapping[StateKey, str],
) -> BySource:
    found: dict[int, list[float]] = {}
    for state, text in texts.items():
        source = run.prompt_of(direction, state[3])
        value = (
            run.score(column.scorer, state) if metric is None else metric(text, _reference(run, direction, state[3]))
        )
        if value is not None:
            found.setdefault(source, []).append(value)
    return {source: float(np.mean(values)) for source, values in sorted(found.items())}


def _has_references(run: RunFiles, direction: Direction) -> bool:
    """Say whether the sentences of a direction have references: all of them, or there is something amiss."""
    given = run.document.get("inputs", {}).get(direction.name, ())
    # What is missing or no list of objects is named where a reference is read.
    return not given or any(not isinstance(each, dict) or each.get("reference") for each in given)


def _reference(run: RunFiles, direction: Direction, chain: int) -> str:
    number = run.prompt_of(direction, chain)
    try:
        reference = run.document["inputs"][direction.name][number]["reference"]
    except (KeyError, IndexError, TypeError) as error:
        raise OutputError(f"settings.json has no reference for sentence {number} of {direction.name}") from error
    if not isinstance(reference, str) or not reference:
        raise OutputError(f"settings.json has an empty reference for sentence {number} of {direction.name}")
    return reference


def _remembering(metric: Any) -> Callable[[str, str], float]:
    """A chain that stays where it is has the same text in several kept states."""
    known: dict[tuple[str, str], float] = {}

    def score(text: str, reference: str) -> float:
        key = text, reference
        if key not in known:
            known[key] = float(metric.sentence_score(text, [reference]).score)
        return known[key]

    return score
