"""`manage.py experiment stories` against a real model server: stopped at a limit, killed, and run to its end."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

import sampler
from tests.support.experiment_sites import Site, kill
from tests.support.model_server import model_server, write_model
from tests.support.ports import port_from
from tests.support.processes import wait_for

PATIENCE_S = 300
METHODS = "base,pref-sep"
LAPTOP = ("stories", "--scale", "laptop", "--methods", METHODS, "--steps", "2", "--keep", "1", "--matches", "1")


@pytest.fixture(scope="module")
def server(tmp_path_factory) -> Iterator[str]:
    with model_server(write_model(tmp_path_factory.mktemp("model") / "tiny.gguf"), port_from(23_000)) as url:
        yield url


@pytest.fixture
def site(tmp_path, server) -> Site:
    return Site.made(tmp_path, server, "llama.cpp", LAPTOP)


def test_a_run_that_is_stopped_killed_and_resumed_is_whole(site):
    stopped = site.run("--max-requests", "30")
    assert stopped.returncode == 3, stopped.stderr
    # Each of two campaigns has both prompts turned into tokens, at its start and afterwards: two requests each time.
    assert sum(int(row["requests"]) for row in site.rows("calls.csv")) <= 30 + 2 * 2 * 2 * 2
    process = site.begin()
    try:
        wait_for(lambda: (site.out / "records" / "base-s0.zip").exists(), "a record", PATIENCE_S)
    finally:
        kill(process)
    ended = site.run()
    assert ended.returncode == 0, ended.stderr
    for method in METHODS.split(","):
        assert not sampler.replay_file(site.out / "records" / f"{method}-s0.zip").differences
    options = sampler.options_of(json.loads((site.out / "settings.json").read_text()))
    # Two prompts, one kept state, four questions, two methods.
    assert len(site.rows("evaluation/scores.csv")) == 2 * 4 * 2
    assert len(site.rows("evaluation/votes.csv")) == sampler.tournament_votes(options)
    planned = sampler.planned_sums(options)["evaluation_requests"]
    for row in site.rows("calls.csv"):
        if row["stage"] == "evaluate":
            assert int(row["planned"]) == planned[row["method"]]
            # A reply that is none is asked for again.
            assert int(row["requests"]) - int(row["unparsable"]) == int(row["planned"])
    assert {row["method"] for row in site.rows("table.csv")} == set(METHODS.split(","))
    other = site.run("--seeds", "1")
    assert other.returncode == 2
    assert "options.seeds" in other.stderr
