"""What is found in one exported campaign: read, measured and fitted once, for the report and for the page.

Statistics of states take the samples of the sampling phase, those of votes all counted votes of all phases. Votes are
read by population: one question, one source, twin judges of opposite orders together. Scores are fitted together with
the lean, so that neither is mistaken for the other; each question has scores of its own, each source one lean over all
questions that it answers.

Numbers of states are arbitrary: another numbering of the same record must give the same report. So objects are told
apart by what people saw and stand in the order in which the chains came to them.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from sampler.diagnostics import found as results
from sampler.diagnostics.chains import Followed, followed
from sampler.diagnostics.scores import Choices, NoFit, Scores, SourceLean, bradley_terry_intervals
from sampler.diagnostics.votes import cohen_kappa, fleiss_kappa, fleiss_kappa_interval, source_lean
from sampler.record import tables
from sampler.record.commitment import read_config
from sampler.record.record import Record, RecordError, step_key
from sampler.record.tables import FIRST, SIDES, Row

_COLUMNS = {"chain": "chain_index", "voter": "voter"}
CLUSTERS = ("prompt", "chain", "step", "voter")
# A judge in one of these orders draws the sides of its votes by chance.
_BY_CHANCE = ("random", "balanced")
_NAME_LENGTH = 60


class Objects:
    """The objects of a record's steps, numbered by their first appearance there, whatever the states' numbers.

    Chains make the same molecule, or the same text under a prompt, more than once, each time as a new state. Voters
    cannot tell these apart, so they are one object. A catalog's entries are as many objects.

    Args:
        target_of: the prompt that a chain answers, as `ChainConfig.target_of` returns it.

    Raises:
        KeyError: there is no such column, or no row for a state.
    """

    def __init__(self, record: Record, target_of: Callable[[int], str]) -> None:
        self._same = {row["state_index"]: row["object_index"] for row in record["states"]}
        content = {row["state_index"]: row["content"] for row in record["states"]}
        self._place: dict[tuple[str, str], int] = {}
        chains = {row["chain_index"] for row in (*record["samples"], *record["steps"])}
        self.prompts = {chain: target_of(int(chain)) for chain in chains}
        """By chain; of other objects than texts they are empty."""
        short: list[str] = []
        for row in sorted(record["steps"], key=step_key):
            for state in (row["current_state"], row["proposal_state"]):
                known = self.prompts[row["chain_index"]], self._same[state]
                if self._place.setdefault(known, len(short)) == len(short):
                    short.append((content[state].splitlines() or [""])[0][:_NAME_LENGTH])
        self.names = _distinct(short)
        """What to call each object: the first line of its content, and which it is of those that read alike."""

    def place(self, chain: str, state: str) -> int:
        """Return the object's number: 0 for the one that the chains came to first."""
        return self._place[self.prompts[chain], self._same[state]]

    @property
    def has_prompts(self) -> bool:
        """True where the record's texts answer more than one prompt."""
        return len(set(self.prompts.values())) > 1


@dataclass
class Population:
    """One source's answers to one question, twin judges of opposite orders together: one set of scores."""

    source: str
    question: str
    objects: Objects
    judges: dict[int, str] = field(default_factory=dict)
    """The order of each judge by its number."""
    votes: list[Row] = field(default_factory=list)
    """Those that counted, in the order in which they were given."""

    def pair(self, vote: Row) -> tuple[int, int]:
        """Return the numbers of the two objects of a vote, in the order in which they stood."""
        first, second = (
            self.objects.place(vote["chain_index"], vote[side]) for side in ("first_state", "second_state")
        )
        return first, second

    def choices(self, cluster: str, *, apart: bool = False, by_chance: bool = False) -> Choices:
        """Return the votes.

        Args:
            cluster: one of `CLUSTERS`.
            apart: those alone between two different objects.
            by_chance: those alone to judges whose sides are drawn by chance.
        """
        names, found = self.objects.names, []
        for vote in self.votes:
            first, second = self.pair(vote)
            if (first == second and apart) or (by_chance and self.judges[int(vote["judge_index"])] not in _BY_CHANCE):
                continue
            found.append((names[first], names[second], vote["chosen_side"] == FIRST, self._cluster(vote, cluster)))
        return Choices.of(found)

    def _cluster(self, vote: Row, cluster: str) -> Hashable:
        if cluster == "step":
            return step_key(vote)
        return self.objects.prompts[vote["chain_index"]] if cluster == "prompt" else vote[_COLUMNS[cluster]]


def cluster_of(objects: Objects, cluster: str | None) -> str:
    """Return which votes belong together: prompt where there are several prompts, else chain; or what is asked for.

    Raises:
        RecordError: there are no prompts to go by, or no such cluster.
    """
    if cluster is not None and cluster not in CLUSTERS:
        raise RecordError(f"cluster must be one of {', '.join(CLUSTERS)}, not {cluster!r}")
    if cluster == "prompt" and not objects.has_prompts:
        raise RecordError("cluster cannot be prompt: the record's objects do not answer several prompts; use chain")
    return cluster or ("prompt" if objects.has_prompts else "chain")


def populations(record: Record, objects: Objects) -> list[Population]:
    """Return the record's counted votes by source and question; in the order of their judges.

    Raises:
        ValueError: a cell is not what its column holds.
        KeyError: there is no such column or step.
    """
    judges: list[dict[str, Any]] = record.config["judges"]
    found: dict[tuple[str, str], Population] = {}
    for number, judge in enumerate(judges):
        key = results.source_of(judge, judges), judge["question"].strip()
        found.setdefault(key, Population(*key, objects)).judges[number] = judge.get("order", "random")
    of_judge = {number: each for each in found.values() for number in each.judges}
    steps = {step_key(row) for row in record["steps"]}
    # One format and one time zone, so that times sort as text; votes without a time stay as they stand.
    for row in sorted(record["votes"], key=lambda row: row.get("cast_at", "")):
        if not row["number"]:
            continue
        if step_key(row) not in steps:
            raise KeyError(step_key(row))
        if row["chosen_side"] not in SIDES:
            raise ValueError(f"chosen_side must be first or second, not {row['chosen_side']!r}")
        if int(row["judge_index"]) not in of_judge:
            raise ValueError(f"judge must be 0 to {len(judges) - 1}, not {row['judge_index']}")
        of_judge[int(row["judge_index"])].votes.append(row)
    return [each for each in found.values() if each.votes]


def _distinct(names: list[str]) -> dict[int, str]:
    taken, seen = Counter(names), Counter[str]()
    distinct = {}
    for place, name in enumerate(names):
        seen[name] += 1
        distinct[place] = name if name and taken[name] == 1 else f"{name} ({seen[name]})".strip()
    return distinct


Asked = tuple[int, tuple[int, int]]
"""A question that was put: the judge, which fixes the order, and the two objects."""


@dataclass(frozen=True)
class Lean:
    """One source's lean to the first object.

    Args:
        source: who answers.
        found: the lean, or why it cannot be estimated.
        first: how many of the votes were for the first object.
    """

    source: str
    found: SourceLean | NoFit
    first: int
    votes: int


@dataclass(frozen=True)
class Agreement:
    """How far people agree, and each with their own earlier answers.

    Args:
        shared: by question that was put to two people or more, each one's answer: True for the first of the pair.
        repeated: one person's first and second answer to a question.
        kappa, low, high: Fleiss' kappa of the shared questions with its 95 % interval; NaN where there is none.
    """

    shared: dict[Asked, dict[str, bool]]
    repeated: list[tuple[bool, bool]]
    kappa: float
    low: float
    high: float

    @cached_property
    def repeated_kappa(self) -> float:
        """Cohen's kappa of the repeated questions; NaN where there are none, or one answer only."""
        if not self.repeated:
            return math.nan
        return cohen_kappa([before for before, _ in self.repeated], [now for _, now in self.repeated])


class Voters:
    """What the votes say: the leans of all sources, and each population's scores and agreement.

    Args:
        clusters: what the votes of a cluster share, such as "chain".
    """

    def __init__(self, found: list[Population], clusters: str, rng: np.random.Generator) -> None:
        self.populations, self.clusters = found, clusters
        self.scores = [self._fit(each) for each in found]
        self.agreement = [_agreement(each, rng) for each in found]

    @cached_property
    def leans(self) -> list[Lean]:
        """Each source's lean over all questions that it answers."""
        sources = dict.fromkeys(each.source for each in self.populations)
        return [self.lean([each for each in self.populations if each.source == source]) for source in sources]

    def lean(self, asked: list[Population]) -> Lean:
        """Return the lean of the source of these populations over their questions."""
        firsts = [vote["chosen_side"] == FIRST for each in asked for vote in each.votes]
        found: SourceLean | NoFit
        try:
            found = self._lean_of(asked)
        except NoFit as reason:
            found = reason
        return Lean(asked[0].source, found, sum(firsts), len(firsts))

    def scores_of(self, population: Population) -> Scores | NoFit:
        """Return the scores of a population, or why they cannot be fitted."""
        return next(fit for each, fit in zip(self.populations, self.scores, strict=True) if each is population)

    def _fit(self, population: Population) -> Scores | NoFit:
        try:
            return bradley_terry_intervals(population.choices(self.clusters, apart=True))
        except NoFit as reason:
            return reason

    def _lean_of(self, asked: list[Population]) -> SourceLean:
        if len(asked) == 1:
            fit = self.scores_of(asked[0])
            if isinstance(fit, Scores) and fit.lean is not None:
                return fit.lean
        by_chance = [found for each in asked if (found := each.choices(self.clusters, by_chance=True)).votes]
        return source_lean([each.choices(self.clusters) for each in asked], random_sides=by_chance)


@dataclass(frozen=True)
class Findings:
    """All that is found in a record.

    Args:
        analysed: the record with the samples that are analysed.
        samples: how many these are, in words.
        prompts: by chain.
        answer: which objects, with which share, and the verdict: always of the sampling phase.
    """

    record: Record
    analysed: Record
    samples: str
    properties: Followed
    prompts: dict[str, str]
    voters: Voters
    answer: results.Answer


def findings(
    record: Record,
    rng: np.random.Generator,
    column: str | None = None,
    cluster: str | None = None,
    all_samples: bool = False,
) -> Findings:
    """Return what is found in a record.

    Args:
        column: the property of the objects to follow along the chains; without it, all numeric ones (`chains.py`).
        cluster: which votes share a weight there: "prompt", "chain", "step" or "voter". Without it prompts where
            the objects answer several, else chains.
        all_samples: follow also the samples of the burn-in and of the warm-up with its burn-in.

    Raises:
        RecordError: the record lacks a column, a cell is not what its column holds, or a property or cluster that was
            asked for is not to be had; the message says why.
        MissingExtra: a library of the extra [analysis] is not installed.
    """
    try:
        analysed, samples = _analysed(record, all_samples)
        objects = Objects(record, read_config(record.config)[0].target_of)
        clusters = cluster_of(objects, cluster)
        return Findings(
            record,
            analysed,
            samples,
            followed(analysed, column),
            {row["chain_index"]: objects.prompts[row["chain_index"]] for row in analysed["samples"]},
            Voters(populations(analysed, objects), clusters, rng),
            results.answer(record),
        )
    except KeyError as error:
        raise RecordError(f"the record cannot be read: there is no column or row {error}") from error
    except RecordError:
        raise
    except (IndexError, ValueError) as error:
        raise RecordError(f"the record cannot be read: {error}") from error


def _analysed(record: Record, all_samples: bool) -> tuple[Record, str]:
    """Return a record with the samples of the sampling phase, or of all phases, and how many these are, in words."""
    samples = [row for row in record["samples"] if row["step"] != "0"]
    if all_samples:
        return record, f"Samples: {len(samples):,} of all phases"
    phases = Counter(row["phase"] for row in samples)
    left_out = ", ".join(f"{count:,} of the {phase}" for phase, count in phases.items() if phase != tables.SAMPLING)
    kept = [row for row in record["samples"] if row["phase"] == tables.SAMPLING]
    told = f"Samples: {phases[tables.SAMPLING]:,} of the sampling phase"
    return record.but(samples=kept), f"{told}; left out are {left_out}" if left_out else told


def _agreement(population: Population, rng: np.random.Generator) -> Agreement:
    first: dict[Asked, dict[str, bool]] = defaultdict(dict)
    repeated: list[tuple[bool, bool]] = []
    for vote in population.votes:
        pair, voter = population.pair(vote), vote["voter"]
        if voter and pair[0] != pair[1]:
            # The first of the two is the one that the chains came to first.
            one, other = sorted(pair)
            chose_former = (vote["chosen_side"] == FIRST) == (pair == (one, other))
            given = first[int(vote["judge_index"]), (one, other)]
            if voter in given:
                repeated.append((given[voter], chose_former))
            given.setdefault(voter, chose_former)
    shared = {asked: given for asked, given in first.items() if len(given) > 1}
    if not shared:
        return Agreement(shared, repeated, math.nan, math.nan, math.nan)
    counts = [[sum(given.values()), len(given) - sum(given.values())] for given in shared.values()]
    return Agreement(shared, repeated, fleiss_kappa(counts), *fleiss_kappa_interval(counts, rng))
