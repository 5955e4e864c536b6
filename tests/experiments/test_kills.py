"""The whole of `manage.py experiment stories`, all methods, killed five times while requests are in flight."""

from __future__ import annotations

import json
import re
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

import sampler
from tests.support.experiment_sites import Site, kill
from tests.support.scripted_server import Script, Writer, anything_else, scripted_server

METHODS = ("base", "pointwise-sep", "pointwise-joint", "pref-joint", "pref-sep")
OPTIONS = ("stories", "--scale", "laptop", "--steps", "3", "--keep", "1", "--matches", "1")
# Each reply is held a little, so that some are always on their way.
HELD_S = 0.02
PATIENCE_S = 300
# Its tokens are drawn, then turned into words; and its prompt is turned into tokens the first time.
REQUESTS_A_TEXT = 3
# Whoever was killed keeps what it had claimed for a minute. The test takes the minute out of the database.
CLAIMS = {
    "campaigns_turn": ("until",),
    "campaigns_chain": ("waits_until", "foresees_until"),
    "campaigns_chainopening": ("claimed_until",),
}


class Gate:
    """A server that stops answering at the n-th request of a kind, until the one that asked is dead."""

    def __init__(self) -> None:
        self.seen: Counter[str] = Counter()
        self.under_way: Counter[str] = Counter()
        self._lock, self._open, self.reached = threading.Lock(), threading.Event(), threading.Event()
        self._open.set()
        self._moment: tuple[str, int] | None = None

    def __call__(self, body: dict) -> dict:
        what = kind(body)
        with self._lock:
            self.seen[what] += 1
            self.under_way[what] += 1
            if self._moment is not None and self.seen[self._moment[0]] >= self._moment[1] and what == self._moment[0]:
                self._moment = None
                self._open.clear()
                self.reached.set()
        time.sleep(HELD_S)
        self._open.wait(PATIENCE_S)
        with self._lock:
            self.under_way[what] -= 1
        is_chat = "messages" in body and "temperature" in body
        return anything_else(body) if is_chat else Writer()(body)

    def stop_at(self, what: str, number: int) -> None:
        """Stop answering when so many more requests of a kind have come."""
        with self._lock:
            self.reached.clear()
            self._moment = what, self.seen[what] + number

    def go_on(self) -> None:
        self._open.set()


def kind(body: dict) -> str:
    """Return what a request is for: rating, vote or evaluation; text; or the test of an endpoint, and all else."""
    # The writer's words are word0 to word49.
    if re.search(r"word\d", json.dumps(body.get("messages", ""))) and body.get("seed", 1) != 1:
        if body["model"] == "evaluator":
            return "evaluation"
        return "vote" if "A" in body["structured_outputs"]["choice"] else "rating"
    return "text" if body["model"] == "writer" and ("prompt" in body or "tokens" in body) else "other"


@pytest.fixture(scope="module")
def gate() -> Gate:
    return Gate()


@pytest.fixture(scope="module")
def server(gate) -> Iterator[Script]:
    with scripted_server(gate) as script:
        yield script


def test_a_run_that_is_killed_five_times_is_whole(gate, server, tmp_path):
    site = Site.made(tmp_path, server.url, "vllm", OPTIONS)
    rng = np.random.default_rng(20261124)
    # So many more of a kind. There are 32 ratings and 160 answers, and a vote at least for each of most of 12 steps.
    moments = [("rating", 2, 12), ("rating", 2, 12), ("vote", 1, 5), ("evaluation", 2, 60), ("evaluation", 2, 60)]
    lost: Counter[str] = Counter()
    for what, lowest, highest in moments:
        lost.update(_killed(site, gate, what, int(rng.integers(lowest, highest, endpoint=True))))
    ended = site.run()
    assert ended.returncode == 0, ended.stderr
    _assert_whole(site)
    _assert_counted(site, gate, lost)
    before = Counter(gate.seen)
    again = site.run()
    assert again.returncode == 0, again.stderr
    assert gate.seen == before


def _killed(site: Site, gate: Gate, what: str, number: int) -> Counter[str]:
    """Kill the command at a moment; return the most requests whose replies it can have lost, by kind."""
    gate.stop_at(what, number)
    process = site.begin()
    try:
        assert gate.reached.wait(PATIENCE_S), (site.folder / "command.log").read_text()
        assert process.poll() is None
    finally:
        kill(process)
    # The server's log: nobody was answered since, so these are in flight.
    assert gate.under_way[what] >= 1
    lost = _claimed(site.database)
    gate.go_on()
    return lost


def _claimed(path: Path) -> Counter[str]:
    """Return the requests that whoever died had claimed, and end its claims."""
    with closing(sqlite3.connect(path)) as database:
        [[asked]] = database.execute("SELECT coalesce(sum(asked), 0) FROM campaigns_turn")
        [[texts]] = database.execute(
            "SELECT coalesce(sum((waits_until IS NOT NULL) + 2 * (foresees_until IS NOT NULL)), 0) FROM campaigns_chain"
        )
        [[answers]] = database.execute(
            "SELECT count(*) FROM experiments_evaluationanswer WHERE value IS NULL AND asked > 0"
        )
        for table, columns in CLAIMS.items():
            for column in columns:
                database.execute(f"UPDATE {table} SET {column} = datetime({column}, '-1 hour')")
        database.execute("DELETE FROM endpoints_slot")
        database.commit()
    return Counter({"judge": asked, "text": REQUESTS_A_TEXT * texts, "evaluation": answers})


def _assert_whole(site: Site) -> None:
    records = sorted(path.name for path in (site.out / "records").iterdir())
    assert records == sorted(f"{method}-s0.zip" for method in METHODS)
    for name in records:
        assert not sampler.replay_file(site.out / "records" / name).differences
    options = sampler.options_of(json.loads((site.out / "settings.json").read_text()))
    planned = sampler.planned_sums(options)["evaluation_requests"]["all"]
    scores, votes = site.rows("evaluation/scores.csv"), site.rows("evaluation/votes.csv")
    assert len({tuple(row[name] for name in sampler.outputs.SCORE_KEY) for row in scores}) == len(scores)
    assert len({tuple(row[name] for name in sampler.outputs.VOTE_KEY) for row in votes}) == len(votes)
    assert len(votes) == sampler.tournament_votes(options)
    assert len(scores) + len(votes) == planned
    table = site.rows("table.csv")
    assert {row["method"] for row in table} == set(METHODS)
    assert {path.suffix for path in (site.out / "figures").iterdir()} == {".svg", ".png", ".csv"}


def _assert_counted(site: Site, gate: Gate, lost: Counter[str]) -> None:
    """Compare what the server was asked with what is stored and counted."""
    calls = site.rows("calls.csv")
    stored = _replies_in_records(site)
    texts = sum(int(row["requests"]) for row in calls if row["role"] == "writer")
    answers = sum(int(row["requests"]) for row in calls if row["stage"] == "evaluate")
    repeated: Counter[str] = Counter()
    for row in calls:
        repeated[row["role"]] += int(row["repeated"])
    assert {row["method"] for row in calls} == set(METHODS)
    # Nothing that is stored was asked for again. What the server was asked beyond it is what the kills lost: what is
    # counted as repeated is at least that, and no more than what was claimed when the process died.
    assert gate.seen["text"] - texts <= repeated["writer"] <= lost["text"]
    assert 0 <= gate.seen["rating"] + gate.seen["vote"] - stored <= repeated["judge"] <= lost["judge"]
    assert repeated["judge"] > 0
    assert 0 <= gate.seen["evaluation"] - answers <= lost["evaluation"]
    assert gate.seen["evaluation"] - answers <= repeated["evaluator"] <= lost["evaluation"]


def _replies_in_records(site: Site) -> int:
    found = 0
    for method in METHODS:
        record = sampler.read_record(site.out / "records" / f"{method}-s0.zip")
        found += sum(int(row["asks"]) for table in (record.votes, record.ratings) for row in table)
    return found
