"""What a campaign has found: which objects, with which share of the steps, how sure, and whether to believe it.

The page Results, results.csv in the export, the API and `diagnose` all show what `answer` returns of the same rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from sampler.diagnostics.chains import Followed, followed
from sampler.diagnostics.scores import FEWEST_CLUSTERS, Choices, NoFit, Vote, bradley_terry_intervals
from sampler.diagnostics.verdict import LEVEL, Share, Verdict, Walked, indicators, shares, verdict_on
from sampler.record.commitment import read_config
from sampler.record.documents import EXTENDED, FINISHED_NOW, events_of
from sampler.record.record import Record
from sampler.record.tables import RESULTS, SAMPLING, Cell, Row

# A fit to more objects takes minutes.
_MOST_SCORED = 300
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
class Question:
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
class Answer:
    """What a campaign has found so far.

    Args:
        draws: decided steps of the sampling phase, of all chains.
        extended: how often the length was changed after the start, by an extension or by *Finish now*.
    """

    shares: list[Share]
    questions: list[Question]
    names: Mapping[int, str]
    verdict: Verdict
    draws: int
    extended: int

    @cached_property
    def targets(self) -> list[str]:
        """What tells the distributions apart that the chains sample, such as prompts; one empty text of one."""
        return list(dict.fromkeys(each.target for each in self.shares))

    def of_target(self, target: str) -> list[Share]:
        """Return the objects of a target, those with the largest share first."""
        return [each for each in self.shares if each.target == target]

    def asked_of(self, target: str) -> list[Question]:
        """Return what was asked about a target's objects."""
        return [each for each in self.questions if each.target == target]

    def told(self) -> dict[str, Any]:
        """Return all of it as JSON can say it; its rows by the columns of results.csv."""
        rows = [RESULTS.values(row) for row in islice(self.rows(), 1, None)]
        return {**self.verdict.told(), "draws": self.draws, "length_changes": self.extended, "rows": rows}

    def rows(self) -> Iterator[list[Cell]]:
        """Yield results.csv, its header first: a row for each target, question and object."""
        yield RESULTS.header
        for target in self.targets:
            nobody = Question(target, "", "", Counter(), Counter(), {}, "")
            for question in self.asked_of(target) or [nobody]:
                for share in self.of_target(target):
                    yield self._row(share, question)

    def _row(self, share: Share, question: Question) -> list[Cell]:
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


def answer(record: Record) -> Answer:
    """Return what the campaign of a record has found.

    Raises:
        ConfigError: the config cannot be read.
        RecordError: a cell is not what its column holds, or a table lacks a row.
        KeyError: a table lacks a column.
        ValueError: an object cannot be measured.
    """
    kept = [row for row in record["samples"] if row["step"] != "0" and row["phase"] == SAMPLING]
    objects = {row["state_index"]: int(row["object_index"]) for row in record["states"]}
    names = {int(row["state_index"]): row["content"] for row in record["states"]}
    config, _ = read_config(record.config)
    chains = _walked(kept, objects, config.target_of)
    listed = () if config.generates else dict.fromkeys(objects.values())
    return Answer(
        shares(list(chains.values()), listed),
        list(_questions(record, objects, config.target_of)),
        names,
        _verdict(record.but(samples=kept), chains, config.left_out),
        len(kept),
        sum(1 for _ in events_of(record["events"], EXTENDED, FINISHED_NOW)),
    )


def _walked(samples: Sequence[Row], objects: Mapping[str, int], target_of: Callable[[int], str]) -> dict[str, Walked]:
    by_chain: dict[str, list[Row]] = {}
    for row in samples:
        by_chain.setdefault(row["chain_index"], []).append(row)
    return {
        chain: Walked(
            target_of(int(chain)), int(rows[0]["step"]), np.array([objects[row["state_index"]] for row in rows])
        )
        for chain, rows in by_chain.items()
    }


def _verdict(record: Record, chains: Mapping[str, Walked], left_out: int) -> Verdict:
    """Judge by all that is measured of the objects; of a list also by its weights and by what is visited most."""
    found = followed(record)
    quantities: dict[str, Sequence[npt.ArrayLike]] = {
        each.name: [each.draws[chain] for chain in chains] for each in found.columns if not each.problem
    }
    if chains and record.config["space"]["kind"] == "catalog":
        quantities |= indicators(list(chains.values()))
    votes = sum(1 for row in record["votes"] if row["number"] and int(row["step"]) > left_out)
    return verdict_on(list(chains.values()), quantities, votes, "" if quantities else _why_not(found))


def _why_not(found: Followed) -> str:
    return f"{found.missing[0].upper()}{found.missing[1:]}." if found.missing else ""


def _questions(record: Record, objects: Mapping[str, int], target_of: Callable[[int], str]) -> Iterator[Question]:
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
        yield Question(target, text, source, won, shown - won, scores, why_not)


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
    if len(choices.items) > _MOST_SCORED:
        return {}, f"Scores are fitted to at most {_MOST_SCORED} objects; these are {len(choices.items):,}."
    try:
        fit = bradley_terry_intervals(choices, LEVEL)
    except NoFit:
        return {}, _NO_FIT
    is_trusted = fit.clusters >= FEWEST_CLUSTERS
    found: dict[Hashable, Score] = {}
    for place, item in enumerate(choices.items):
        low, high = (float(end[place]) if is_trusted else None for end in (fit.low, fit.high))
        found[item] = Score(float(fit.estimate[place]), low, high)
    return found, ""


def _votes(rows: Sequence[Row], objects: Mapping[str, int]) -> Iterator[Vote]:
    """Yield the votes on two different objects. Those of a chain share a cluster, or those of a step where chains are
    too few for an interval.
    """
    several = len({row["chain_index"] for row in rows}) >= FEWEST_CLUSTERS
    for row in rows:
        first, second = objects[row["first_state"]], objects[row["second_state"]]
        if first != second:
            cluster = row["chain_index"] if several else (row["chain_index"], row["step"])
            yield first, second, row["chosen_side"] == "first", cluster
