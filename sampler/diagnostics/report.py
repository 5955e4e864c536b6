"""The report on one exported campaign, line by line and the verdict first. What it says does not depend on how states
are numbered; `page.py` shows the same in pictures.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import combinations, product

import numpy as np

from sampler.diagnostics.chains import Acceptance, Column, by_target, figure, many
from sampler.diagnostics.findings import Agreement, AskedPair, Findings, Population, SourceBias, bias_of
from sampler.diagnostics.scores import MIN_CLUSTERS, Choices, NoFit, PositionBias, Scores
from sampler.diagnostics.verdict import ConvergenceVerdict
from sampler.diagnostics.votes import cohen_kappa, cycle_test
from sampler.record.documents import EXTENDED, FINISHED_NOW, events_of
from sampler.record.record import Record
from sampler.record.tables import Row

_SHOWN_ITEMS = 10
_SHOWN_PAIRS = 5
_SHOWN_CHARACTERS = 60
# With fewer questions in common, two people's kappa says nothing.
_MIN_SHARED = 10


def diagnose(findings: Findings, rng: np.random.Generator) -> Iterator[str]:
    """Yield the report: verdict, acceptance, convergence, bias by source, and for each question scores and agreement.

    Args:
        rng: of the tests for cycles.
    """
    yield _verdict(findings.results.verdict)
    yield from _chains(findings.record)
    yield from _extensions(findings.record)
    yield findings.samples
    yield from _convergence(findings)
    yield from _means(findings)
    yield from _biases(findings)
    for population, agreement in zip(findings.populations, findings.agreement, strict=True):
        yield ""
        yield _heading(population)
        of_people = _pairs_of_people(agreement.shared)
        lines = (*_asked_of(population, findings, rng), *_agreement(agreement), *of_people)
        yield from (f"  {line}" for line in lines)


def _biases(findings: Findings) -> Iterator[str]:
    if not findings.populations:
        yield "Position bias: there is no vote"
    for bias in findings.biases:
        yield f"Position bias ({bias.source}): {_bias(bias, findings.clusters)}"


def _verdict(verdict: ConvergenceVerdict) -> str:
    said = f"{verdict.is_that[0].upper()}{verdict.is_that[1:]}: {verdict.because}"
    return f"{said} {verdict.advice}".rstrip()


def _extensions(record: Record) -> Iterator[str]:
    """Yield how the length was changed after the start: whoever reads averages should know."""
    for row, said in events_of(record["events"], EXTENDED, FINISHED_NOW):
        if row["kind"] == EXTENDED:
            what = f"Extended from {said['steps_before']} to {many(int(said['steps_after']), 'step')} a chain"
        else:
            what = "Finished before the last step"
        verdict = f" (the verdict was then: {said['verdict']})" if "verdict" in said else ""
        yield (
            f"{what} on {row['at'][:10]}{verdict}; if that was decided by what had been sampled, averages are biased, "
            "and the intervals do not allow for it"
        )


def _chains(record: Record) -> Iterator[str]:
    steps, votes = record["steps"], record["votes"]
    decided, counted = [row for row in steps if row["verdict"]], sum(bool(row["number"]) for row in votes)
    chains = {row["chain_index"] for row in record["samples"]}
    yield (
        f"{many(len(chains), 'chain')}, {many(len(decided), 'decided step')}, "
        f"{len(steps) - len(decided)} open; {many(counted, 'counted vote')}, {len(votes) - counted} late"
    )
    if not decided:
        return
    by_chain: dict[str, list[Row]] = defaultdict(list)
    for row in decided:
        by_chain[row["chain_index"]].append(row)
    moving = [found for rows in by_chain.values() if (found := _acceptance(rows)).differed]
    shares = sorted(moving, key=lambda each: each.share or 0.0)
    told = f"; by chain {shares[0].percent} to {shares[-1].percent}" if len(shares) > 1 else ""
    yield f"Accepted among the proposals that differed: {_acceptance(decided)}{told}"


def _acceptance(decided: Sequence[Row]) -> Acceptance:
    differed = [row["verdict"] == "accept" for row in decided if row["current_state"] != row["proposal_state"]]
    return Acceptance(sum(differed), len(differed))


def _convergence(findings: Findings) -> Iterator[str]:
    for column in findings.properties.columns:
        yield f"Convergence of {column.name}: {_converged(column, findings.prompts)}"
    if findings.properties.missing:
        yield f"Convergence: {findings.properties.missing}"


def _means(findings: Findings) -> Iterator[str]:
    """Yield averages over chains that open while people vote: each chain of a prompt counts alike, however far it has
    come.
    """
    if findings.record.config.get("max_chains") is None:
        return
    prompts = findings.prompts
    several = len(set(prompts.values())) > 1
    for column, prompt in product(findings.properties.columns, dict.fromkeys(prompts.values())):
        of_chains = [float(np.mean(draws)) for each, draws in column.draws.items() if prompts[each] == prompt]
        if not column.problem and len(of_chains) > 1:
            mean, error = float(np.mean(of_chains)), float(np.std(of_chains, ddof=1)) / math.sqrt(len(of_chains))
            chains = f"{len(of_chains)} chains, weighed equally"
            of = f"{column.name}, “{prompt[:_SHOWN_CHARACTERS]}”" if several else column.name
            yield f"Mean of {of}: {figure(mean)}, standard error {figure(error, 2)}, over {chains}"


def _converged(column: Column, prompts: dict[str, str]) -> str:
    """Compare chains that answer one prompt: those of different prompts sample different distributions."""
    if column.problem:
        return f"not measured; {column.problem}"
    found = by_target((prompts[each], draws) for each, draws in column.draws.items())
    if not found.measured:
        return f"cannot be measured; {found.targets[0].problem}"
    several = " of one prompt" if len(found.targets) > 1 else ""
    r_hat = found.r_hat_text or f"needs two chains{several}"
    sizes = f"effective sample size {found.bulk_ess:.0f} (bulk), {found.tail_ess:.0f} (tail)"
    return f"R-hat {r_hat}, {sizes}, from {found.basis}"


def _asked_of(population: Population, findings: Findings, rng: np.random.Generator) -> Iterator[str]:
    """Yield a population's scores, and its own position bias where its source answers other questions too."""
    clusters = findings.clusters
    if sum(each.source == population.source for each in findings.populations) > 1:
        yield f"Position bias on this question: {_bias(bias_of([population]), clusters)}"
    if isinstance(scores := population.scores, NoFit):
        yield f"Bradley-Terry scores cannot be fitted: {scores}"
    else:
        yield from _scores(scores, population.apart.votes, clusters)
        yield _cycles(population.apart, rng)


def _bias(bias: SourceBias, clusters: str) -> str:
    shares = f"first chosen in {bias.first:,} of {many(bias.votes, 'vote')}"
    if isinstance(bias.found, NoFit):
        return f"cannot be estimated; {bias.found}; {shares}"
    interval = _interval_of(bias.found, clusters)
    return f"log-odds {bias.found.log_odds:+z.3f}, {interval}; {_basis(bias.found)}; {shares}"


def _interval_of(bias: PositionBias, clusters: str) -> str:
    if bias.clusters < MIN_CLUSTERS:
        return _too_few(bias.clusters, clusters)
    return f"95 % interval {bias.low:+z.3f} to {bias.high:+z.3f} ({bias.clusters:,} clusters: {clusters})"


def _basis(bias: PositionBias) -> str:
    if bias.method == "joint fit":
        return f"fitted with the scores to {many(bias.votes, 'vote')}"
    return f"from {many(bias.votes, 'vote')} on pairs that were asked about more than once"


def _too_few(count: int, clusters: str) -> str:
    found = many(count, "cluster")
    return f"no interval: one from {found} ({clusters}) is not to be trusted, it takes {MIN_CLUSTERS}"


def _heading(population: Population) -> str:
    numbers = [str(number) for number in population.judges]
    judges = f"Judge {numbers[0]}" if len(numbers) == 1 else f"Judges {', '.join(numbers[:-1])} and {numbers[-1]}"
    source = "" if population.source == "people" else f" ({population.source})"
    return f"{judges}{source}: {population.question}"


def _scores(scores: Scores, votes: int, clusters: str) -> Iterator[str]:
    about = (
        f"Bradley-Terry scores of {len(scores.items)} objects from {many(votes, 'vote')}, fitted with the position bias"
    )
    trusted = scores.clusters >= MIN_CLUSTERS
    if trusted:
        yield f"{about}, with 95 % intervals ({scores.clusters:,} clusters: {clusters})"
    else:
        yield f"{about}; {_too_few(scores.clusters, clusters)}"
    order = np.argsort(-scores.estimate, kind="stable")
    shown = order if len(order) <= 2 * _SHOWN_ITEMS else [*order[:_SHOWN_ITEMS], *order[-_SHOWN_ITEMS:]]
    for index, i in enumerate(shown):
        if len(shown) < len(order) and index == _SHOWN_ITEMS:
            yield f"  … {len(order) - len(shown)} more"
        interval = f"  ({scores.low[i]:+z.2f} to {scores.high[i]:+z.2f})" if trusted else ""
        yield f"  {scores.estimate[i]:+z.2f}{interval}  {scores.items[i]}"


def _cycles(choices: Choices, rng: np.random.Generator) -> str:
    try:
        test = cycle_test(choices, rng)
    except ValueError as reason:
        return f"Cycles: {reason}"
    return f"Cycles: X² = {test.statistic:.1f} on {many(test.cycles, 'independent cycle')}, p = {test.p_value:.2g}"


def _agreement(found: Agreement) -> Iterator[str]:
    if found.shared:
        interval = (
            ""
            if math.isnan(found.low)
            else f", 95 % interval {found.low:z.2f} to {found.high:z.2f}; biased where voting stopped early"
        )
        yield f"Fleiss' kappa of {many(len(found.shared), 'shared question')}: {_kappa(found.kappa)}{interval}"
    else:
        yield "Shared questions: no question was answered by two people"
    if found.repeated:
        answers = many(len(found.repeated), "second answer")
        yield f"Repeated questions: {answers}, Cohen's kappa {_kappa(found.repeated_kappa)}"


def _pairs_of_people(shared: dict[AskedPair, dict[str, bool]]) -> Iterator[str]:
    both: dict[tuple[str, str], list[tuple[bool, bool]]] = defaultdict(list)
    for given in shared.values():
        for one, other in combinations(sorted(given), 2):
            both[one, other].append((given[one], given[other]))
    enough = sorted((item for item in both.items() if len(item[1]) >= _MIN_SHARED), key=lambda item: -len(item[1]))
    for (one, other), chosen in enough[:_SHOWN_PAIRS]:
        yield f"  Cohen's kappa of voters {one} and {other}: {_kappa(cohen_kappa(chosen))} on {len(chosen)} questions"
    if len(enough) > _SHOWN_PAIRS:
        yield f"  … {len(enough) - _SHOWN_PAIRS} more pairs of voters"


def _kappa(value: float) -> str:
    return "undefined (one answer only)" if math.isnan(value) else f"{value:z.2f}"
