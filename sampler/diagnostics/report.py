"""A report on one exported campaign, line by line.

What it says does not depend on how states are numbered. Statistics of states take the samples of the sampling phase,
those of votes all counted votes of all phases. Votes are read by population (`answers.py`): one question, one
source, twin judges of opposite orders together. Scores are fitted together with the lean, so that neither is mistaken
for the other; each question has scores of its own, each source one lean over all questions that it answers.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import combinations, product

import numpy as np

from sampler.diagnostics import (
    FEWEST_CLUSTERS,
    Acceptance,
    Choices,
    NoFit,
    Scores,
    SourceLean,
    bradley_terry_intervals,
    by_target,
    cohen_kappa,
    cycle_test,
    fleiss_kappa,
    fleiss_kappa_interval,
    source_lean,
)
from sampler.diagnostics.answers import Answer, Objects, Population, cluster_of, populations
from sampler.diagnostics.properties import Column, Followed, followed
from sampler.record import tables
from sampler.record.checks import EXTENDED, FINISHED_NOW, events_of
from sampler.record.differences import RecordError
from sampler.record.record import Record
from sampler.record.tables import Row

_SHOWN_ITEMS = 10
_SHOWN_PAIRS = 5
_SHOWN_CHARACTERS = 60
# With fewer questions in common, two people's kappa says nothing.
_FEWEST_SHARED = 10

Chain = list[Row]
Asked = tuple[int, tuple[int, int]]
"""A question that was put: the judge, which fixes the order, and the two objects."""


def diagnose(
    record: Record,
    rng: np.random.Generator,
    column: str | None = None,
    resamples: int = 1_000,
    cluster: str | None = None,
    all_samples: bool = False,
) -> Iterator[str]:
    """Yield the report: acceptance, convergence, lean by source, and for each question scores and agreement.

    Args:
        column: the property of the objects to follow along the chains; without it, all numeric ones (`properties.py`).
        resamples: bootstrap resamples behind the intervals of scores and leans.
        cluster: which votes share a weight there: "prompt", "chain", "step" or "voter". Without it prompts where
            the objects answer several, else chains.
        all_samples: follow also the samples of the burn-in and of the warm-up with its settling.

    Raises:
        RecordError: the record lacks a column, a cell is not what its column holds, or a property or cluster that was
            asked for is not to be had; the message says why.
        MissingExtra: a library of the extra [analysis] is not installed.
    """
    try:
        opening = [*_chains(record), *_extensions(record)]
        record, samples = analysed(record, all_samples)
        opening.append(samples)
        objects = Objects(record)
        clusters = cluster_of(objects, cluster)
        voters = populations(record, objects, clusters)
        properties = followed(record, column)
        prompts = {row["chain_index"]: objects.prompt(row["state_index"]) for row in record["samples"]}
        opening += [*_convergence(properties, prompts), *_means(record, properties, prompts)]
    except KeyError as error:
        raise RecordError(f"the record cannot be read: there is no column or row {error}") from error
    except RecordError:
        raise
    except (IndexError, ValueError) as error:
        raise RecordError(f"the record cannot be read: {error}") from error
    yield from opening
    if not voters:
        yield "Lean to the first object: there is no vote"
    report = _Voters(voters, f"{clusters}s", rng, resamples)
    yield from report.leans()
    for population in voters:
        yield ""
        yield _heading(population)
        yield from (f"  {line}" for line in report.of(population))


def analysed(record: Record, all_samples: bool = False) -> tuple[Record, str]:
    """Return a record with the samples of the sampling phase, or of all phases, and how many these are, in words."""
    samples = [row for row in record["samples"] if row["step"] != "0"]
    if all_samples:
        return record, f"Samples: {len(samples):,} of all phases"
    phases = Counter(row["phase"] for row in samples)
    left_out = ", ".join(f"{count:,} of the {phase}" for phase, count in phases.items() if phase != tables.SAMPLING)
    kept = [row for row in record["samples"] if row["phase"] == tables.SAMPLING]
    told = f"Samples: {phases[tables.SAMPLING]:,} of the sampling phase"
    return record.but(samples=kept), f"{told}; left out are {left_out}" if left_out else told


def _extensions(record: Record) -> Iterator[str]:
    """Yield how the length was changed after the start: whoever reads averages should know."""
    for row, said in events_of(record["events"], EXTENDED, FINISHED_NOW):
        if row["kind"] == EXTENDED:
            what = f"Extended from {said['steps_before']} to {_many(int(said['steps_after']), 'step')} a chain"
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
    yield (
        f"{_many(len(_by_chain(record['samples'])), 'chain')}, {_many(len(decided), 'decided step')}, "
        f"{len(steps) - len(decided)} open; {_many(counted, 'counted vote')}, {len(votes) - counted} late"
    )
    if not decided:
        return
    chains = [found for rows in _by_chain(decided).values() if (found := _acceptance(rows)).differed]
    shares = sorted(chains, key=lambda each: each.share or 0.0)
    by_chain = f"; by chain {shares[0].percent} to {shares[-1].percent}" if len(shares) > 1 else ""
    yield f"Accepted among the proposals that differed: {_acceptance(decided)}{by_chain}"


def _acceptance(decided: Sequence[Row]) -> Acceptance:
    differed = [row["verdict"] == "accept" for row in decided if row["current_state"] != row["proposal_state"]]
    return Acceptance(sum(differed), len(differed))


def _convergence(properties: Followed, prompts: dict[str, str]) -> Iterator[str]:
    for column in properties.columns:
        yield f"Convergence of {column.name}: {_converged(column, prompts)}"
    if properties.missing:
        yield f"Convergence: {properties.missing}"


def _means(record: Record, properties: Followed, prompts: dict[str, str]) -> Iterator[str]:
    """Yield averages over chains that open while people vote: each chain of a prompt counts alike, however far it has
    come.
    """
    if record.config.get("max_chains") is None:
        return
    several = len(set(prompts.values())) > 1
    for column, prompt in product(properties.columns, dict.fromkeys(prompts.values())):
        of_chains = [float(np.mean(draws)) for chain, draws in column.draws.items() if prompts[chain] == prompt]
        if not column.problem and len(of_chains) > 1:
            error = np.std(of_chains, ddof=1) / math.sqrt(len(of_chains))
            chains = f"{len(of_chains)} chains, weighed equally"
            of = f"{column.name}, “{prompt[:_SHOWN_CHARACTERS]}”" if several else column.name
            yield f"Mean of {of}: {np.mean(of_chains):.4g}, standard error {error:.2g}, over {chains}"


def _converged(column: Column, prompts: dict[str, str]) -> str:
    """Compare chains that answer one prompt: those of different prompts sample different laws."""
    if column.problem:
        return f"not measured; {column.problem}"
    found = by_target((prompts[chain], draws) for chain, draws in column.draws.items())
    if not found.measured:
        return f"cannot be measured; {found.targets[0].problem}"
    several = " of one prompt" if len(found.targets) > 1 else ""
    r_hat = f"needs two chains{several}" if found.r_hat is None else f"{found.r_hat:.3f}"
    sizes = f"effective sample size {found.bulk_ess:.0f} (bulk), {found.tail_ess:.0f} (tail)"
    return f"R-hat {r_hat}, {sizes}, from {found.basis}"


class _Voters:
    """What the votes say: the leans of all sources, and each population's scores and agreement."""

    def __init__(self, voters: list[Population], clusters: str, rng: np.random.Generator, resamples: int) -> None:
        self._voters, self._clusters, self._rng, self._resamples = voters, clusters, rng, resamples
        self._fits = [self._fit(each) for each in voters]

    def leans(self) -> Iterator[str]:
        """Yield each source's lean over all questions that it answers."""
        for source in dict.fromkeys(each.source for each in self._voters):
            asked = [each for each in self._voters if each.source == source]
            yield f"Lean to the first object ({source}): {self._lean(asked)}"

    def of(self, population: Population) -> Iterator[str]:
        """Yield a population's scores and agreement, and its own lean where its source answers other questions too."""
        if sum(each.source == population.source for each in self._voters) > 1:
            yield f"Lean to the first object on this question: {self._lean([population])}"
        choices, scores = population.choices_apart(), self._fit_of(population)
        if isinstance(scores, NoFit):
            yield f"Bradley-Terry scores cannot be fitted: {scores}"
        else:
            yield from _scores(scores, choices.votes, self._clusters)
            yield _cycles(choices, self._rng)
        yield from _agreement(population.answers, self._rng)

    def _fit(self, population: Population) -> Scores | NoFit:
        try:
            return bradley_terry_intervals(population.choices_apart(), self._rng, self._resamples)
        except NoFit as reason:
            return reason

    def _fit_of(self, population: Population) -> Scores | NoFit:
        return next(fit for each, fit in zip(self._voters, self._fits, strict=True) if each is population)

    def _lean(self, asked: list[Population]) -> str:
        answers = [answer for each in asked for answer in each.answers]
        shares = f"first chosen in {sum(each.chose_first for each in answers):,} of {_many(len(answers), 'vote')}"
        try:
            lean = self._lean_of(asked)
        except NoFit as reason:
            return f"cannot be estimated; {reason}; {shares}"
        return f"log-odds {lean.log_odds:+.3f}, {_interval_of(lean, self._clusters)}; {_basis(lean)}; {shares}"

    def _lean_of(self, asked: list[Population]) -> SourceLean:
        if len(asked) == 1:
            fit = self._fit_of(asked[0])
            if isinstance(fit, Scores) and fit.lean is not None:
                return fit.lean
        by_chance = [choices for each in asked if (choices := each.choices_by_chance()).votes]
        return source_lean([each.choices() for each in asked], self._rng, self._resamples, random_sides=by_chance)


def _interval_of(lean: SourceLean, clusters: str) -> str:
    if lean.clusters < FEWEST_CLUSTERS:
        return _too_few(lean.clusters, clusters)
    return f"95 % interval {lean.low:+.3f} to {lean.high:+.3f} ({lean.clusters:,} clusters: {clusters})"


def _basis(lean: SourceLean) -> str:
    if lean.method == "joint fit":
        return f"fitted with the scores to {_many(lean.votes, 'vote')}"
    return f"from {_many(lean.votes, 'vote')} on pairs that were asked about more than once"


def _too_few(count: int, clusters: str) -> str:
    found = _many(count, "cluster")
    return f"no interval: one from {found} ({clusters}) is not to be trusted, it takes {FEWEST_CLUSTERS}"


def _heading(population: Population) -> str:
    numbers = [str(number) for number in population.judges]
    judges = f"Judge {numbers[0]}" if len(numbers) == 1 else f"Judges {', '.join(numbers[:-1])} and {numbers[-1]}"
    source = "" if population.source == "people" else f" ({population.source})"
    return f"{judges}{source}: {population.question}"


def _scores(scores: Scores, votes: int, clusters: str) -> Iterator[str]:
    about = f"Bradley-Terry scores of {len(scores.items)} objects from {_many(votes, 'vote')}, fitted with the lean"
    trusted = scores.clusters >= FEWEST_CLUSTERS
    if trusted:
        yield f"{about}, with 95 % intervals ({scores.clusters:,} clusters: {clusters})"
    else:
        yield f"{about}; {_too_few(scores.clusters, clusters)}"
    order = np.argsort(-scores.estimate, kind="stable")
    shown = order if len(order) <= 2 * _SHOWN_ITEMS else [*order[:_SHOWN_ITEMS], *order[-_SHOWN_ITEMS:]]
    for place, i in enumerate(shown):
        if len(shown) < len(order) and place == _SHOWN_ITEMS:
            yield f"  … {len(order) - len(shown)} more"
        interval = f"  ({scores.low[i]:+.2f} to {scores.high[i]:+.2f})" if trusted else ""
        yield f"  {scores.estimate[i]:+.2f}{interval}  {scores.items[i]}"


def _cycles(choices: Choices, rng: np.random.Generator) -> str:
    try:
        test = cycle_test(choices, rng)
    except ValueError as reason:
        return f"Cycles: {reason}"
    return f"Cycles: X² = {test.statistic:.1f} on {_many(test.cycles, 'independent cycle')}, p = {test.p_value:.2g}"


def _agreement(answers: list[Answer], rng: np.random.Generator) -> Iterator[str]:
    first: dict[Asked, dict[str, bool]] = defaultdict(dict)
    again: list[tuple[bool, bool]] = []
    for each in answers:
        if each.voter and each.first != each.second:
            given = first[each.judge, each.pair]
            if each.voter in given:
                again.append((given[each.voter], each.chose_former))
            given.setdefault(each.voter, each.chose_former)
    shared = {asked: given for asked, given in first.items() if len(given) > 1}
    if shared:
        counts = [[sum(given.values()), len(given) - sum(given.values())] for given in shared.values()]
        low, high = fleiss_kappa_interval(counts, rng)
        interval = (
            "" if math.isnan(low) else f", 95 % interval {low:.2f} to {high:.2f}; biased where voting stopped early"
        )
        yield f"Fleiss' kappa of {_many(len(shared), 'shared question')}: {_kappa(fleiss_kappa(counts))}{interval}"
        yield from _pairs_of_people(shared)
    else:
        yield "Shared questions: no question was answered by two people"
    if again:
        kappa = cohen_kappa([before for before, _ in again], [now for _, now in again])
        yield f"Repeated questions: {_many(len(again), 'second answer')}, Cohen's kappa {_kappa(kappa)}"


def _pairs_of_people(shared: dict[Asked, dict[str, bool]]) -> Iterator[str]:
    both: dict[tuple[str, str], list[tuple[bool, bool]]] = defaultdict(list)
    for given in shared.values():
        for one, other in combinations(sorted(given), 2):
            both[one, other].append((given[one], given[other]))
    enough = sorted((item for item in both.items() if len(item[1]) >= _FEWEST_SHARED), key=lambda item: -len(item[1]))
    for (one, other), chosen in enough[:_SHOWN_PAIRS]:
        kappa = cohen_kappa([a for a, _ in chosen], [b for _, b in chosen])
        yield f"  Cohen's kappa of voters {one} and {other}: {_kappa(kappa)} on {len(chosen)} questions"
    if len(enough) > _SHOWN_PAIRS:
        yield f"  … {len(enough) - _SHOWN_PAIRS} more pairs of voters"


def _by_chain(rows: Sequence[Row]) -> dict[str, Chain]:
    chains: dict[str, Chain] = defaultdict(list)
    for row in rows:
        chains[row["chain_index"]].append(row)
    return chains


def _many(count: int, noun: str) -> str:
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def _kappa(value: float) -> str:
    return "undefined (one answer only)" if math.isnan(value) else f"{value:.2f}"
