"""Runs of `manage.py experiment` that are killed while requests are in flight, and what must hold at their end.

A `Gate` stands before the models: it counts requests by kind, and from a chosen one on it answers nobody. So whoever is
killed then has requests in flight, and the gate's counts are the server's log of it. `KilledRun` kills, ends the claims
of the dead, and compares the gate's counts with what the run has stored and counted.
"""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

import sampler
from tests.support.experiment_sites import Site, kill
from tests.support.scripted_server import Answer

PATIENCE_S = 300
# Each reply is held a little, so that some are always on their way.
HELD_S = 0.02
# Its prompt is turned into tokens the first time, with llama.cpp by two requests; then it is drawn, and made words.
REQUESTS_A_TEXT, REQUESTS_A_PROMPT = 4, 2
# Of the test of an endpoint: its texts have four tokens at most, and this is its prompt. A judge's trial has this seed.
_TOKENS_OF_A_TEST, _PROMPT_OF_A_TEST, _SEED_OF_A_TRIAL = 4, "about the sea.", 1
# Whoever was killed keeps what it had claimed for a minute. Tests take the minute out of the database.
CLAIMS = {
    "campaigns_turn": ("until",),
    "campaigns_chain": ("waits_until", "foresees_until"),
    "campaigns_chainopening": ("claimed_until",),
    "campaigns_campaignscorer": ("claimed_until",),
}
# What `Score` writes at a time.
_SCORED_AT_ONCE = 32

Kind = Literal["rating", "vote", "evaluation", "text", "other"]
PURPOSES: tuple[Kind, ...] = ("rating", "vote", "evaluation", "text")


class Moment(NamedTuple):
    """When to kill: once so many more requests of a kind have come, drawn between two numbers. None: of any kind."""

    kind: Kind | None
    lowest: int
    highest: int

    def drawn(self, rng: np.random.Generator) -> int:
        return int(rng.integers(self.lowest, self.highest, endpoint=True))


class Gate:
    """What requests pass on their way to a model, and can be held by.

    Args:
        experiment: by whose questions requests are told apart.
        held_s: how long each is held at least.
    """

    def __init__(self, experiment: str, held_s: float = HELD_S) -> None:
        self.seen: Counter[str] = Counter()
        self.under_way: Counter[str] = Counter()
        self.reached = threading.Event()
        self._lock, self._open = threading.Lock(), threading.Event()
        self._open.set()
        self._moment: tuple[Kind | None, int] | None = None
        self._held_s = held_s
        found = sampler.EXPERIMENTS[experiment]
        self._temperature = {each.name: each.value for each in found.settings}.get("temperature")
        judged = {asked: method for method in found.methods for asked in method.judges}
        self._questions = {asked.question: method.rule for asked, method in judged.items()}
        self._evaluated = {asked.question for asked in (*found.rated, *found.compared)}
        self._evaluators = found.evaluated_by

    @contextmanager
    def passing(self, body: dict) -> Iterator[None]:
        """Count a request, and wait where nobody is answered."""
        what = self.kind(body)
        with self._lock:
            self.seen[what] += 1
            self.under_way[what] += 1
            if self._moment is not None and what != "other" and self._counted(self._moment[0]) >= self._moment[1]:
                self._moment = None
                self._open.clear()
                self.reached.set()
        try:
            time.sleep(self._held_s)
            self._open.wait(PATIENCE_S)
            yield
        finally:
            with self._lock:
                self.under_way[what] -= 1

    def before(self, answer: Answer) -> Answer:
        """Return what answers so, to whoever has passed."""

        def passed(body: dict) -> dict:
            with self.passing(body):
                return answer(body)

        return passed

    def stop_at(self, what: Kind | None, number: int) -> None:
        """Answer nobody once so many more requests of a kind have come; None: of any, those of tests aside."""
        with self._lock:
            self.reached.clear()
            self._moment = what, self._counted(what) + number

    def _counted(self, what: Kind | None) -> int:
        return self.seen[what] if what is not None else self.seen.total() - self.seen["other"]

    def go_on(self) -> None:
        self._open.set()

    def kind(self, body: dict) -> Kind:
        """Say what a request is for; the test of an endpoint and the trial of a judge are "other"."""
        said = json.dumps(body.get("messages", ""), ensure_ascii=False)
        if "messages" not in body or "temperature" not in body:
            return "text" if self._is_of_a_text(body, said) else "other"
        if body["seed"] == _SEED_OF_A_TRIAL:
            return "other"
        if body["model"] in self._evaluators and any(question in said for question in self._evaluated):
            return "evaluation"
        rules = [rule for question, rule in self._questions.items() if question in said]
        return "other" if not rules else "rating" if rules[0] == "pointwise" else "vote"

    def _is_of_a_text(self, body: dict, said: str) -> bool:
        """Say whether a text of the run is drawn, or turned into words, or its prompt into tokens."""
        if "temperature" in body:
            return body["temperature"] == self._temperature
        if "tokens" in body:
            return len(body["tokens"]) > _TOKENS_OF_A_TEST
        # llama.cpp applies the template first, and is asked about its end token, too, which is no prompt.
        is_prompt = "messages" in body or bool(body.get("add_special"))
        return is_prompt and _PROMPT_OF_A_TEST not in said + body.get("content", "")


@dataclass
class KilledRun:
    """A run, who answers it, and what was lost when it was killed.

    Args:
        site: where it is run.
        gate: before its models.
        scorers: by role, the file in which its program writes each line that it is told.
        lost: the most requests that can have been lost so far, by what they were for.
        killed: the kinds of request that were in flight, a row for each kill.
        takes_claims_away: whether the minute of the dead is taken out of the database; otherwise it is waited for.
    """

    site: Site
    gate: Gate
    scorers: dict[str, Path] = field(default_factory=dict)
    lost: Counter[str] = field(default_factory=Counter)
    killed: list[dict[str, int]] = field(default_factory=list)
    takes_claims_away: bool = True

    def kill_at(self, moment: Moment, rng: np.random.Generator) -> None:
        """Run the command until a moment, and kill it there with its requests in flight."""
        self.gate.stop_at(moment.kind, moment.drawn(rng))
        process = self.site.begin()
        try:
            assert self.gate.reached.wait(PATIENCE_S), (self.site.folder / "command.log").read_text()
            assert process.poll() is None
        finally:
            kill(process)
        # The server's log: nobody was answered since, so these are in flight.
        in_flight = {what: count for what, count in self.gate.under_way.items() if count and what != "other"}
        assert in_flight.get(moment.kind) if moment.kind else in_flight
        self.killed.append(in_flight)
        self.lost.update(claimed(self.site.database))
        if self.takes_claims_away:
            end_claims(self.site.database)
        self.gate.go_on()

    def end(self) -> None:
        """Run the command to its end; and again, when nothing is left to ask."""
        ended = self.site.run()
        assert ended.returncode == 0, ended.stderr
        before, told = Counter(self.gate.seen), {path: path.read_bytes() for path in self.scorers.values()}
        again = self.site.run()
        assert again.returncode == 0, again.stderr
        assert self.gate.seen == before
        assert {path: path.read_bytes() for path in told} == told

    @property
    def options(self) -> sampler.ExperimentOptions:
        return sampler.options_of(json.loads((self.site.out / "settings.json").read_text()))

    @property
    def records(self) -> list[Path]:
        """The records that there must be, by name."""
        options = self.options
        parts = [(method, direction.name, seed) for method in options.methods for direction in options.directions
                 for seed in options.seeds]  # fmt: skip
        return sorted(self.site.out / "records" / sampler.outputs.record_name(*part) for part in parts)

    def assert_whole(self) -> None:
        """Look whether verdicts follow from the records, no answer stands twice, and nothing is missing."""
        assert sorted((self.site.out / "records").iterdir()) == self.records
        for path in self.records:
            assert not sampler.replay_file(path).differences
        options, outputs = self.options, sampler.outputs
        scores, votes = self._rows("evaluation/scores.csv"), self._rows("evaluation/votes.csv")
        assert len({tuple(row[name] for name in outputs.SCORE_KEY) for row in scores}) == len(scores)
        assert len({tuple(row[name] for name in outputs.VOTE_KEY) for row in votes}) == len(votes)
        assert len(votes) == sampler.tournament_votes(options)
        kept = min(sampler.scorer_passes(options).values(), default=0)
        given = len(self.scorers) * kept
        assert len(scores) + len(votes) == sampler.planned_sums(options)["evaluation_requests"]["all"] + given
        assert {row["method"] for row in self.site.rows("table.csv")} == set(options.methods)
        assert {path.suffix for path in self.site.out.glob("table.*")} == {".csv", ".md", ".tex"}
        assert {path.suffix for path in (self.site.out / "figures").iterdir()} == {".svg", ".png", ".csv"}

    def _rows(self, path: str) -> list[dict[str, str]]:
        """Read a table; experiments whose states nobody is asked about have none."""
        return self.site.rows(path) if (self.site.out / path).exists() else []

    def repeated(self) -> Counter[str]:
        """Return the requests that were made again, by what they were for, as calls.csv has them."""
        found: Counter[str] = Counter()
        for row in self.site.rows("calls.csv"):
            found[self._purpose(row)] += int(row["repeated"] or 0)
        return found

    def beyond(self) -> dict[str, int]:
        """Return the requests that came to the server beyond those whose outcome is stored, by what they were for."""
        made: Counter[str] = Counter()
        for row in self.site.rows("calls.csv"):
            made[self._purpose(row)] += int(row["requests"])
        records = [sampler.read_record(path) for path in self.records]
        # Trials of judges are in calls.csv as well.
        made["rating"] = sum(int(row["asks"]) for record in records for row in record.ratings)
        made["vote"] = sum(int(row["asks"]) for record in records for row in record.votes)
        return {what: self.gate.seen[what] - made[what] for what in PURPOSES}

    def _purpose(self, row: dict[str, str]) -> str:
        if row["role"] == "judge":
            return (
                "rating" if sampler.EXPERIMENTS[self.options.experiment].method(row["method"]).rates_states else "vote"
            )
        return "text" if row["role"] == "writer" else "evaluation" if row["stage"] == "evaluate" else row["role"]

    def assert_counted(self) -> None:
        """Compare what the server was asked with what is stored and counted.

        Nothing that is stored was asked for again. What the server was asked beyond it is what the kills lost: what is
        counted as repeated is at least that, and no more than what was claimed when the process died. Of votes less may
        be repeated than was lost: a verdict may follow from the others.
        """
        repeated, beyond = self.repeated(), self.beyond()
        in_flight = {what for each in self.killed for what in each}
        for what in PURPOSES:
            told = what, beyond, repeated, self.lost
            assert beyond[what] >= 0 or what == "text", told
            assert max(beyond[what], repeated[what]) <= self.lost[what], told
            if what != "vote":
                assert beyond[what] <= repeated[what], told
                assert repeated[what] > 0 or what not in in_flight, told
        for role, path in self.scorers.items():
            self._assert_told_once(role, path)

    def _assert_told_once(self, role: str, path: Path) -> None:
        """Compare what a scorer was told with its numbers: a batch that was under way at a kill is told again."""
        told = len(path.read_text().splitlines())
        rows = [row for row in self.site.rows("calls.csv") if row["role"] == role]
        numbers = sum(int(row["requests"]) for row in rows)
        assert numbers == sampler.scorer_passes(self.options)[role]
        assert 0 <= told - numbers <= _SCORED_AT_ONCE * len(self.killed)


def claimed(path: Path) -> Counter[str]:
    """Return the most requests that whoever has just died can have lost, by what they were for: what it had claimed."""
    with closing(sqlite3.connect(path)) as database:
        [[now]] = database.execute("SELECT quote(datetime('now'))")
        [[ratings, votes]] = database.execute(
            "SELECT coalesce(sum(asked) FILTER (WHERE state_id IS NOT NULL), 0), "
            f"coalesce(sum(asked) FILTER (WHERE state_id IS NULL), 0) FROM campaigns_turn WHERE until > {now}"
        )
        waiting, ahead = (f"coalesce({column}, '') > {now}" for column in CLAIMS["campaigns_chain"])
        [[texts]] = database.execute(f"SELECT coalesce(sum(({waiting}) + 2 * ({ahead})), 0) FROM campaigns_chain")
        starting = database.execute(
            "SELECT recipe FROM campaigns_campaign WHERE status = 'draft' AND starting_since IS NOT NULL"
        ).fetchall()
        [[answers]] = database.execute(
            "SELECT count(*) FROM experiments_evaluationanswer WHERE value IS NULL AND asked > 0 "
            "AND key NOT LIKE 'scorer:%'"
        )
    found = Counter({"rating": ratings, "vote": votes, "text": REQUESTS_A_TEXT * texts, "evaluation": answers})
    for [recipe] in starting:
        found.update(_of_a_start(json.loads(recipe)))
    return found


def _of_a_start(recipe: dict) -> dict[str, int]:
    """Return the most requests that a start sends: a text for each chain, prompts as tokens, a trial of each judge."""
    prompts = recipe["space"].get("prompts", ())
    what = "rating" if recipe["rule"]["kind"] == "pointwise" else "vote"
    return {
        "text": REQUESTS_A_TEXT * recipe["chains"] + REQUESTS_A_PROMPT * max(0, len(prompts) - recipe["chains"])
        if prompts
        else 0,
        what: len(recipe["judges"]),
    }


def end_claims(path: Path) -> None:
    """End what whoever was killed had claimed for another minute."""
    with closing(sqlite3.connect(path)) as database:
        for table, columns in CLAIMS.items():
            for column in columns:
                database.execute(f"UPDATE {table} SET {column} = datetime({column}, '-1 hour')")
        database.execute("DELETE FROM endpoints_slot")
        database.commit()
