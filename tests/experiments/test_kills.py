"""`manage.py experiment` whole, killed at random moments while requests are in flight, and run again: one with a
tournament, and one whose writer and scorers are asked.
"""

import json
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import sampler
from tests.support.installations import ROLES, Site
from tests.support.models import Writer, anything_else, declared, scripted_server

PATIENCE_S = 300
# Each reply is held a little, so that some are always on their way.
HELD_S = 0.02
# Whoever was killed keeps what it had claimed for a minute. Tests take the minute out of the database.
CLAIMS = {
    "campaigns_turn": "until",
    "campaigns_chain": "claimed_until",
    "campaigns_chainondemand": "claimed_until",
    "campaigns_campaignscorer": "claimed_until",
    "campaigns_catalog": "claimed_until",
}
# A judge's trial has this seed.
_SEED_OF_A_TRIAL = 1


def writes_and_judges(body: dict) -> dict:
    is_chat = "messages" in body and "temperature" in body
    return anything_else(body) if is_chat else Writer()(body)


class Moment(NamedTuple):
    """When to kill: once so many more requests of a kind have come, drawn between two numbers."""

    kind: str
    lowest: int
    highest: int


class Gate:
    """What requests pass on their way to a model: it counts them by kind, and from a chosen one on it answers nobody.

    Args:
        experiment: by whose questions requests are told apart.
    """

    def __init__(self, experiment: str) -> None:
        self.seen: Counter[str] = Counter()
        self.under_way: Counter[str] = Counter()
        self.reached = threading.Event()
        self._lock, self._open = threading.Lock(), threading.Event()
        self._open.set()
        self._moment: tuple[str, int] | None = None
        found = sampler.EXPERIMENTS[experiment]
        self._questions = {
            asked.question: "rating" if method.kind == "pointwise" else "vote"
            for method in found.methods
            for asked in method.judges
        }
        evaluated = (*found.rated, *found.compared)
        self._evaluators, self._evaluated = ({getattr(each, of) for each in evaluated} for of in ("role", "question"))

    def __call__(self, body: dict) -> dict:
        """Answer a request, in time."""
        what = self._kind(body)
        with self._lock:
            self.seen[what] += 1
            self.under_way[what] += 1
            if self._moment is not None and self.seen[self._moment[0]] >= self._moment[1]:
                self._moment = None
                self._open.clear()
                self.reached.set()
        try:
            time.sleep(HELD_S)
            self._open.wait(PATIENCE_S)
            return writes_and_judges(body)
        finally:
            with self._lock:
                self.under_way[what] -= 1

    def stop_at(self, kind: str, number: int) -> None:
        """Answer nobody once so many more requests of a kind have come."""
        with self._lock:
            self.reached.clear()
            self._moment = kind, self.seen[kind] + number

    def go_on(self) -> None:
        self._open.set()

    def _kind(self, body: dict) -> str:
        """Say what a request is for; the test of an endpoint and the trial of a judge are "other"."""
        said = json.dumps(body.get("messages", ""), ensure_ascii=False)
        if "messages" not in body or "temperature" not in body:
            return "text" if "temperature" in body else "other"
        if body["seed"] == _SEED_OF_A_TRIAL:
            return "other"
        if body["model"] in self._evaluators and any(question in said for question in self._evaluated):
            return "evaluation"
        return next((kind for question, kind in self._questions.items() if question in said), "other")


@dataclass(frozen=True)
class Case:
    """A small form of one experiment, and where it is killed.

    Args:
        moments: so many more requests of a kind, of which each part of a run has enough.
    """

    options: Sequence[str]
    moments: Sequence[Moment]
    roles: Mapping[str, str] = field(default_factory=lambda: {role: role for role in ROLES})
    scorers: Sequence[str] = ()


CASES = {
    # 32 ratings and 160 answers of the evaluator, and a vote at least for each of most of 12 steps.
    "stories": Case(
        ("--steps", "3", "--keep", "1", "--matches", "1"),
        (Moment("rating", 2, 12), Moment("vote", 1, 5), Moment("evaluation", 2, 60)),
    ),
    # First in the start of a campaign. In each of two directions 40 ratings, and 6 steps of 3 votes at least.
    "translation": Case(
        ("--methods", "quest-0.1,pointwise,pref", "--prompts", "2", "--steps", "3", "--burn-in", "1", "--keep", "2"),
        (Moment("text", 1, 4), Moment("rating", 2, 20), Moment("vote", 1, 8)),
        {"writer": "writer", "judge": "judge"},
        scorers=("quality", "xcomet"),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_run_that_is_killed_is_whole(name, tmp_path):
    case, gate = CASES[name], Gate(name)
    programs = declared(tmp_path, case.scorers)
    options = [name, "--scale", "laptop", *case.options, *(f"--scorer={role}={role}" for role in case.scorers)]
    in_flight, lost, rng = set(), Counter(), np.random.default_rng(20261124)
    with scripted_server(gate) as server:
        site = Site(tmp_path, options, server.url, case.roles, programs.environment)
        for moment in case.moments:
            kill_at(site, gate, moment, rng)
            in_flight |= {what for what, count in gate.under_way.items() if count}
            lost += claimed(site)
            end_claims(site)
            gate.go_on()
        assert_ended(site, gate, programs.told.values())
    assert_whole(site, case.scorers)
    assert_repeated(site, in_flight, lost)


def kill_at(site: Site, gate: Gate, moment: Moment, rng: np.random.Generator) -> None:
    """Run the command until a moment, and kill it there with its requests in flight."""
    gate.stop_at(moment.kind, int(rng.integers(moment.lowest, moment.highest, endpoint=True)))
    process = site.process("experiment", *site.command())
    process.start()
    try:
        assert gate.reached.wait(PATIENCE_S), process.log()
        process.assert_runs()
    finally:
        process.kill()
    assert gate.under_way[moment.kind]


def claimed(site: Site) -> Counter[str]:
    """Return the most ratings, votes and answers that whoever has just died can have lost: what it had claimed."""
    [(ratings, votes)] = site.query(
        "SELECT coalesce(sum(asked) FILTER (WHERE state_id IS NOT NULL), 0),"
        " coalesce(sum(asked) FILTER (WHERE state_id IS NULL), 0)"
        " FROM campaigns_turn WHERE until > datetime('now')"
    )
    [(answers,)] = site.query(
        "SELECT count(*) FROM experiments_evaluationanswer WHERE value IS NULL AND asked > 0"
        " AND role IN ('evaluator', 'detector')"
    )
    starting = site.query(
        "SELECT config_data FROM campaigns_campaign WHERE status = 'draft' AND starting_since IS NOT NULL"
    )
    found = Counter({"rating": ratings, "vote": votes, "evaluation": answers})
    for [data] in starting:
        # A trial of each judge.
        config = json.loads(data)
        found["rating" if config["rule"]["kind"] == "pointwise" else "vote"] += len(config["judges"])
    return found


def end_claims(site: Site) -> None:
    """End what whoever was killed had claimed for another minute."""
    for table, column in CLAIMS.items():
        site.query(f"UPDATE {table} SET {column} = datetime({column}, '-1 hour')")


def assert_ended(site: Site, gate: Gate, told: Sequence[Path]) -> None:
    """Run the command to its end; and again, when nothing is left to ask."""
    ended = site.experiment()
    assert ended.returncode == 0, ended.stderr
    before, lines = Counter(gate.seen), {path: path.read_bytes() for path in told}
    again = site.experiment()
    assert again.returncode == 0, again.stderr
    assert gate.seen == before
    assert {path: path.read_bytes() for path in lines} == lines


def options_of(site: Site) -> sampler.ExperimentOptions:
    return sampler.options_of(json.loads((site.out / "settings.json").read_text()))


def assert_whole(site: Site, scorers: Sequence[str]) -> None:
    """Look whether verdicts follow from the records, no answer stands twice, and nothing is missing."""
    options, outputs = options_of(site), sampler.outputs
    parts = [
        (method, direction.name, seed)
        for method in options.methods
        for direction in options.directions
        for seed in options.seeds
    ]
    records = sorted(site.out / "records" / outputs.record_name(*part) for part in parts)
    assert sorted((site.out / "records").iterdir()) == records
    for path in records:
        assert not sampler.replay_file(path).differences
    scores, votes = (
        site.rows(path) if (site.out / path).exists() else []
        for path in ("evaluation/scores.csv", "evaluation/votes.csv")
    )
    assert len({tuple(row[name] for name in outputs.SCORE_KEY) for row in scores}) == len(scores)
    assert len({tuple(row[name] for name in outputs.VOTE_KEY) for row in votes}) == len(votes)
    assert len(votes) == len(sampler.tournament_schedule(options))
    kept = min((sampler.planned_scores(options, role)["all"] for role in scorers), default=0)
    given = len(scorers) * kept
    assert len(scores) + len(votes) == sampler.planned_sums(options)["evaluation_requests"]["all"] + given
    assert {row["method"] for row in site.rows("table.csv")} == set(options.methods)
    assert {path.suffix for path in site.out.glob("table.*")} == {".csv", ".md", ".tex"}
    assert {path.suffix for path in (site.out / "figures").iterdir()} == {".svg", ".png", ".csv"}


def assert_repeated(site: Site, in_flight: set[str], lost: Counter[str]) -> None:
    """What is counted as repeated was under way at a kill, and is no more than what was claimed then. Of votes none may
    be repeated: a verdict may follow from the others.
    """
    methods, repeated = sampler.EXPERIMENTS[options_of(site).experiment], Counter()
    for row in site.rows("calls.csv"):
        if row["role"] == "judge":
            what = "rating" if methods.method(row["method"]).kind == "pointwise" else "vote"
        else:
            what = "text" if row["role"] == "writer" else "evaluation" if row["stage"] == "evaluate" else row["role"]
        repeated[what] += int(row["repeated"] or 0)
    for what in ("rating", "vote", "evaluation"):
        assert repeated[what] <= lost[what], (what, repeated, lost)
        assert repeated[what] > 0 or what not in in_flight or what == "vote", (what, repeated, in_flight)
