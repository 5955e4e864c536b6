"""What is found in one exported campaign: read, measured and fitted once, for the report and for the page.

Statistics of states take the samples of the sampling phase, those of votes all counted votes of all phases. Votes are
read by population: one question, one source, an order pair of judges together. Scores are fitted together with the
position bias, so that neither is mistaken for the other; each question has scores of its own, each source one position
bias over all questions that it answers.

Numbers of states are arbitrary: another numbering of the same record must give the same report. So objects are told
apart by what people saw and stand in the order in which the chains came to them.

Which objects a campaign has found, with which share of the steps, how sure that is, and whether to believe it: the page
Results, results.csv in the export, the API and `diagnose` all show what `results_of` returns of the same rows.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from sampler.diagnostics.chains import Followed, followed
from sampler.diagnostics.scores import (
    MIN_CLUSTERS,
    Choices,
    NoFit,
    PositionBias,
    Scores,
    Vote,
    bradley_terry_intervals,
)
from sampler.diagnostics.verdict import LEVEL, ChainPath, ConvergenceVerdict, Share, indicators, shares, verdict_on
from sampler.diagnostics.votes import cohen_kappa, fleiss_kappa, fleiss_kappa_interval, source_bias
from sampler.record.commitment import read_config
from sampler.record.documents import EXTENDED, FINISHED_NOW, events_of
from sampler.record.record import Record, RecordError, malformed_in, step_key
from sampler.record.tables import FIRST, RESULTS, SAMPLES, SAMPLING, SIDES, STEPS, VOTES, Cell, Row

# A fit to more objects takes minutes.
_MAX_SCORED = 300
_NO_FIT = (
    "Scores cannot be fitted: some objects were never compared with the rest, or never won, or never lost. "
    "“python -m sampler diagnose” names them."
)


@dataclass(frozen=True)
class Score:
    """A Bradley-Terry score in nats, mean 0, with its interval at `LEVEL`; without one where clusters are too few."""

    estimate: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class QuestionResult:
    """What the votes on one question, of one kind of voter, say about the objects of one target.

    Args:
        source: who answers: people, a panelist, or a model by its endpoint.
        won, lost: by object, the counted votes for it, and those for its opponents.
        scores: by object; empty where they cannot be fitted.
        why_not: why they cannot.
    """

    target: str
    text: str
    source: str
    won: Counter[int]
    lost: Counter[int]
    scores: Mapping[Hashable, Score]
    why_not: str


@dataclass(frozen=True)
class CampaignResults:
    """What a campaign has found so far.

    Args:
        draws: decided steps of the sampling phase, of all chains.
        extended: how often the length was changed after the start, by an extension or by *Finish now*.
    """

    shares: list[Share]
    questions: list[QuestionResult]
    names: Mapping[int, str]
    verdict: ConvergenceVerdict
    draws: int
    extended: int

    @cached_property
    def targets(self) -> list[str]:
        """What tells the distributions apart that the chains sample, such as prompts; one empty text of one."""
        return list(dict.fromkeys(each.target for each in self.shares))

    def of_target(self, target: str) -> list[Share]:
        """Return the objects of a target, those with the largest share first."""
        return [each for each in self.shares if each.target == target]

    def asked_of(self, target: str) -> list[QuestionResult]:
        """Return what was asked about a target's objects."""
        return [each for each in self.questions if each.target == target]

    def as_json(self) -> dict[str, Any]:
        """Return all of it as JSON can say it; its rows by the columns of results.csv."""
        rows = [RESULTS.values(row) for row in islice(self.rows(), 1, None)]
        return {**self.verdict.as_json(), "draws": self.draws, "length_changes": self.extended, "rows": rows}

    def rows(self) -> Iterator[list[Cell]]:
        """Yield results.csv, its header first: a row for each target, question and object."""
        yield RESULTS.header
        for target in self.targets:
            nobody = QuestionResult(target, "", "", Counter(), Counter(), {}, "")
            for question in self.asked_of(target) or [nobody]:
                for share in self.of_target(target):
                    yield self._row(share, question)

    def _row(self, share: Share, question: QuestionResult) -> list[Cell]:
        score = question.scores.get(share.object)
        return RESULTS.row(
            target=share.target,
            question=question.text,
            source=question.source,
            object_index=share.object,
            content=self.names[share.object],
            steps=share.steps,
            share=share.share,
            share_low=share.low,
            share_high=share.high,
            first_step=share.first_step,
            last_step=share.last_step,
            votes_for=question.won[share.object] if question.text else None,
            votes_against=question.lost[share.object] if question.text else None,
            score=score and score.estimate,
            score_low=score and score.low,
            score_high=score and score.high,
        )


RESULTS_FROM: Mapping[str, Sequence[str]] = {
    SAMPLES.name: ("chain_index", "step", "state_index", "phase"),
    STEPS.name: ("verdict",),
    VOTES.name: (
        "chain_index", "step", "number", "judge_index", "first_state", "second_state", "chosen_state", "chosen_side"
    ),
}  # fmt: skip
"""All that `results_of` reads of the tables that grow with the votes, by their names."""


def results_of(record: Record) -> CampaignResults:
    """Return what the campaign of a record has found.

    Raises:
        ConfigError: the config cannot be read.
        RecordError: a cell is not what its column holds, or a table lacks a row.
        KeyError: a table lacks a column.
        ValueError: an object cannot be measured.
    """
    kept = [row for row in record["samples"] if row["step"] != "0" and row["phase"] == SAMPLING]
    objects = {row["state_index"]: int(row["object_index"]) for row in record["states"]}
    contents = {row["state_index"]: row["content"] for row in record["states"]}
    names = {int(row["object_index"]): contents[row["object_index"]] for row in record["states"]}
    config, _ = read_config(record.config)
    chains = _walked(kept, objects, config.target_of)
    listed = () if config.generates else dict.fromkeys(objects.values())
    return CampaignResults(
        shares(list(chains.values()), listed),
        list(_questions(record, objects, config.target_of)),
        names,
        _verdict(record.but(samples=kept), chains, config.left_out),
        len(kept),
        sum(1 for _ in events_of(record["events"], EXTENDED, FINISHED_NOW)),
    )


def _walked(
    samples: Sequence[Row], objects: Mapping[str, int], target_of: Callable[[int], str]
) -> dict[str, ChainPath]:
    by_chain: dict[str, list[Row]] = {}
    for row in samples:
        by_chain.setdefault(row["chain_index"], []).append(row)
    return {
        chain: ChainPath(
            target_of(int(chain)), int(rows[0]["step"]), np.array([objects[row["state_index"]] for row in rows])
        )
        for chain, rows in by_chain.items()
    }


def _verdict(record: Record, chains: Mapping[str, ChainPath], left_out: int) -> ConvergenceVerdict:
    """Judge by all that is measured of the objects; of a list also by its weights and by what is visited most."""
    found = followed(record)
    quantities: dict[str, Sequence[npt.ArrayLike]] = {
        each.name: [each.draws[chain] for chain in chains] for each in found.columns if not each.problem
    }
    if chains and record.config["space"]["kind"] == "catalog":
        quantities |= indicators(list(chains.values()))
    votes = sum(1 for row in record["votes"] if row["number"] and int(row["step"]) > left_out)
    why_not = f"{found.missing[0].upper()}{found.missing[1:]}." if found.missing and not quantities else ""
    return verdict_on(list(chains.values()), quantities, votes, why_not)


def _questions(record: Record, objects: Mapping[str, int], target_of: Callable[[int], str]) -> Iterator[QuestionResult]:
    """Yield each question of each target, in the order of the judges."""
    judges = record.config["judges"]
    asked = [(source_of(judge, judges), judge["question"].strip()) for judge in judges]
    votes: dict[tuple[str, str, str], list[Row]] = {}
    for row in record["votes"]:
        if row["number"]:
            key = target_of(int(row["chain_index"])), *asked[int(row["judge_index"])]
            votes.setdefault(key, []).append(row)
    for (target, source, text), rows in sorted(votes.items(), key=lambda item: asked.index(item[0][1:])):
        won = Counter(objects[row["chosen_state"]] for row in rows)
        shown = Counter(objects[row[side]] for row in rows for side in ("first_state", "second_state"))
        scores, why_not = _scores(rows, objects)
        yield QuestionResult(target, text, source, won, shown - won, scores, why_not)


def source_of(judge: Mapping[str, Any], judges: list[dict[str, Any]]) -> str:
    """Return who answers: people, a panelist, or a model by its endpoint, and its temperature where it has several."""
    source = judge.get("source") or {"kind": "people"}
    if source["kind"] == "panelist":
        return f"panelist {source['name']}"
    if source["kind"] != "model":
        return str(source["kind"])
    temperatures = {
        each["source"].get("temperature", 1.0)
        for each in judges
        if each.get("source") and each["source"].get("endpoint") == source["endpoint"]
    }
    at = f" at temperature {source.get('temperature', 1.0):g}" if len(temperatures) > 1 else ""
    return f"model {source['endpoint']}{at}"


def _scores(rows: Sequence[Row], objects: Mapping[str, int]) -> tuple[Mapping[Hashable, Score], str]:
    """Return the scores that fit the votes, or none and why not."""
    choices = Choices.of(_votes(rows, objects))
    if len(choices.items) > _MAX_SCORED:
        return {}, f"Scores are fitted to at most {_MAX_SCORED} objects; these are {len(choices.items):,}."
    try:
        fit = bradley_terry_intervals(choices, LEVEL)
    except NoFit as reason:
        return {}, _NO_FIT if choices.score_refusal() else f"Scores cannot be fitted: {reason}."
    is_trusted = fit.clusters >= MIN_CLUSTERS
    found: dict[Hashable, Score] = {}
    for index, item in enumerate(choices.items):
        low, high = (float(end[index]) if is_trusted else None for end in (fit.low, fit.high))
        found[item] = Score(float(fit.estimate[index]), low, high)
    return found, ""


def _votes(rows: Sequence[Row], objects: Mapping[str, int]) -> Iterator[Vote]:
    """Yield the votes on two different objects. Those of a chain share a cluster, or those of a step where chains are
    too few for an interval.
    """
    several = len({row["chain_index"] for row in rows}) >= MIN_CLUSTERS
    for row in rows:
        first, second = objects[row["first_state"]], objects[row["second_state"]]
        if first != second:
            cluster = row["chain_index"] if several else (row["chain_index"], row["step"])
            yield first, second, row["chosen_side"] == "first", cluster


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
        self._index: dict[tuple[str, str], int] = {}
        chains = {row["chain_index"] for row in (*record["samples"], *record["steps"])}
        self.prompts = {chain: target_of(int(chain)) for chain in chains}
        """By chain; of other objects than texts they are empty."""
        short: list[str] = []
        for row in sorted(record["steps"], key=step_key):
            for state in (row["current_state"], row["proposal_state"]):
                known = self.prompts[row["chain_index"]], self._same[state]
                if self._index.setdefault(known, len(short)) == len(short):
                    short.append((content[state].splitlines() or [""])[0][:_NAME_LENGTH])
        self.names = _distinct(short)
        """What to call each object: the first line of its content, and which it is of those that read alike."""

    def index(self, chain: str, state: str) -> int:
        """Return the object's number: 0 for the one that the chains came to first."""
        return self._index[self.prompts[chain], self._same[state]]

    @property
    def has_prompts(self) -> bool:
        """True where the record's texts answer more than one prompt."""
        return len(set(self.prompts.values())) > 1


@dataclass
class Population:
    """One source's answers to one question, an order pair of judges together: one set of scores."""

    source: str
    question: str
    objects: Objects
    cluster: str
    """What the votes of a cluster share: one of `CLUSTERS`."""
    judges: dict[int, str] = field(default_factory=dict)
    """The order of each judge by its number."""
    votes: list[Row] = field(default_factory=list)
    """Those that counted, in the order in which they were given."""

    def pair(self, vote: Row) -> tuple[int, int]:
        """Return the numbers of the two objects of a vote, in the order in which they stood."""
        first, second = (
            self.objects.index(vote["chain_index"], vote[side]) for side in ("first_state", "second_state")
        )
        return first, second

    def choices(self, *, by_chance: bool = False) -> Choices:
        """Return the votes; `by_chance` those alone to judges whose sides are drawn by chance."""
        asked = (vote for vote in self.votes if not by_chance or self.judges[int(vote["judge_index"])] in _BY_CHANCE)
        return Choices.of(map(self._choice, asked))

    @cached_property
    def apart(self) -> Choices:
        """The votes between two different objects."""
        return Choices.of(choice for choice in map(self._choice, self.votes) if choice[0] != choice[1])

    @cached_property
    def scores(self) -> Scores | NoFit:
        """The objects' scores, or why they cannot be fitted."""
        try:
            return bradley_terry_intervals(self.apart)
        except NoFit as reason:
            return reason

    def _choice(self, vote: Row) -> Vote:
        first, second = self.pair(vote)
        names, cluster = self.objects.names, _COLUMNS.get(self.cluster, "")
        of = step_key(vote) if self.cluster == "step" else self.objects.prompts[vote["chain_index"]]
        return names[first], names[second], vote["chosen_side"] == FIRST, vote[cluster] if cluster else of


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


def populations(record: Record, objects: Objects, cluster: str) -> list[Population]:
    """Return the record's counted votes by source and question; in the order of their judges.

    Args:
        cluster: what the votes of a cluster share: one of `CLUSTERS`.

    Raises:
        ValueError: a cell is not what its column holds.
        KeyError: there is no such column or step.
    """
    judges: list[dict[str, Any]] = record.config["judges"]
    found: dict[tuple[str, str], Population] = {}
    for number, judge in enumerate(judges):
        key = source_of(judge, judges), judge["question"].strip()
        found.setdefault(key, Population(*key, objects, cluster)).judges[number] = judge.get("order", "random")
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
    for index, name in enumerate(names):
        seen[name] += 1
        distinct[index] = name if name and taken[name] == 1 else f"{name} ({seen[name]})".strip()
    return distinct


AskedPair = tuple[int, tuple[int, int]]
"""A question that was put: the judge, which fixes the order, and the two objects."""


@dataclass(frozen=True)
class SourceBias:
    """One source's bias to the first object.

    Args:
        source: who answers.
        found: the position bias, or why it cannot be estimated.
        first: how many of the votes were for the first object.
    """

    source: str
    found: PositionBias | NoFit
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

    shared: dict[AskedPair, dict[str, bool]]
    repeated: list[tuple[bool, bool]]
    kappa: float
    low: float
    high: float

    @cached_property
    def repeated_kappa(self) -> float:
        """Cohen's kappa of the repeated questions; NaN where there are none, or one answer only."""
        return cohen_kappa(self.repeated)


def bias_of(asked: Sequence[Population]) -> SourceBias:
    """Return the position bias of the source of these populations over their questions."""
    firsts = [vote["chosen_side"] == FIRST for each in asked for vote in each.votes]
    found: PositionBias | NoFit
    scores = asked[0].scores
    if len(asked) == 1 and isinstance(scores, Scores) and scores.bias is not None:
        found = scores.bias
    else:
        by_chance = [votes for each in asked if (votes := each.choices(by_chance=True)).votes]
        try:
            found = source_bias([each.choices() for each in asked], random_sides=by_chance)
        except NoFit as reason:
            found = reason
    return SourceBias(asked[0].source, found, sum(firsts), len(firsts))


@dataclass(frozen=True)
class Findings:
    """All that is found in a record.

    Args:
        samples: how many are analysed, in words.
        prompts: by chain.
        agreement: of each population, in their order.
        clusters: what the votes of a cluster share, such as "chains".
        results: which objects, with which share, and the verdict: always of the sampling phase.
    """

    record: Record
    samples: str
    properties: Followed
    prompts: dict[str, str]
    populations: list[Population]
    agreement: list[Agreement]
    clusters: str
    results: CampaignResults

    @cached_property
    def biases(self) -> list[SourceBias]:
        """Each source's position bias over all questions that it answers."""
        sources = dict.fromkeys(each.source for each in self.populations)
        return [bias_of([each for each in self.populations if each.source == source]) for source in sources]


def findings(record: Record, rng: np.random.Generator, cluster: str | None = None) -> Findings:
    """Return what is found in a record.

    Args:
        cluster: which votes share a weight there: "prompt", "chain", "step" or "voter". Without it prompts where
            the objects answer several, else chains.

    Raises:
        RecordError: the record lacks a column, a cell is not what its column holds, or a cluster that was asked for is
            not to be had; the message says why.
        MissingExtra: a library of the extra [analysis] is not installed.
    """
    try:
        sampling = record.but(samples=[row for row in record["samples"] if row["phase"] == SAMPLING])
        objects = Objects(record, read_config(record.config)[0].target_of)
        clusters = cluster_of(objects, cluster)
        found = populations(record, objects, clusters)
        return Findings(
            record,
            _samples(record),
            followed(sampling),
            {row["chain_index"]: objects.prompts[row["chain_index"]] for row in sampling["samples"]},
            found,
            [_agreement(each, rng) for each in found],
            f"{clusters}s",
            results_of(record),
        )
    except RecordError:
        raise
    except (KeyError, IndexError, ValueError) as error:
        said = f"there is no row {error} of another table" if isinstance(error, KeyError) else error
        raise RecordError(f"the record cannot be read: {next(malformed_in(record), said)}") from error


def _samples(record: Record) -> str:
    """Return how many samples each phase has, in words."""
    phases = Counter(row["phase"] for row in record["samples"] if row["step"] != "0")
    left_out = ", ".join(f"{count:,} of the {phase}" for phase, count in phases.items() if phase != SAMPLING)
    told = f"Samples: {phases[SAMPLING]:,} of the sampling phase"
    return f"{told}; left out are {left_out}" if left_out else told


def _agreement(population: Population, rng: np.random.Generator) -> Agreement:
    first: dict[AskedPair, dict[str, bool]] = defaultdict(dict)
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
