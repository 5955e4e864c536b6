"""`manage.py experiment images` with a model that answers from pixels: stopped at a limit, killed and run to the end."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator

import pytest

import sampler
from tests.support.experiment_sites import Site, kill
from tests.support.processes import wait_for
from tests.support.scripted_server import Script, scripted_server
from tests.support.seeing_server import pictures, sees, words

PATIENCE_S = 300
METHODS = ("base", "pointwise", "pref")
OBJECTS = ("salamander", "butterfly", "mushroom")
LAPTOP = ("images", "--scale", "laptop", "--steps", "4")
ROLES = {"judge": "judge", "detector": "detector"}
PATTERNS = ROLES | {"writer": "patterns"}


@pytest.fixture
def server() -> Iterator[Script]:
    with scripted_server(sees) as script:
        yield script


def asked(script: Script) -> Counter[str]:
    """Count what a server was asked about the objects of the experiment."""
    found: Counter[str] = Counter()
    for body in list(script.requests):
        shown, said = len(pictures(body)), words(body)
        if shown and any(name in said for name in OBJECTS) and body["seed"] != 1:
            found["vote" if shown == 2 else "detection" if "yes or no" in said else "rating"] += 1
    return found


def test_a_run_that_is_stopped_killed_and_resumed_is_whole(server, tmp_path):
    site = Site.made(tmp_path, server.url, "vllm", LAPTOP, roles=PATTERNS)
    planned = json.loads(site.run("--dry-run", "--json").stdout)
    assert not asked(server)
    stopped = site.run("--max-requests", "20")
    assert stopped.returncode == 3, stopped.stderr
    assert sum(int(row["requests"]) for row in site.rows("calls.csv")) <= 20
    process = site.begin()
    try:
        wait_for(lambda: asked(server)["vote"] > 5, "votes", PATIENCE_S)
    finally:
        kill(process)
    ended = site.run()
    assert ended.returncode == 0, ended.stderr
    assert_whole(site)
    assert_counted(site, planned)
    assert_seen(site, server)
    before = asked(server)
    again = site.run()
    assert again.returncode == 0, again.stderr
    assert asked(server) == before
    other = site.run("--steps", "5")
    assert other.returncode == 2
    assert "options.steps" in other.stderr


def assert_whole(site: Site) -> None:
    for method in METHODS:
        assert not sampler.replay_file(site.out / "records" / f"{method}-s0.zip").differences
        steps = sorted(path.name for path in (site.out / "images" / f"{method}-s0").iterdir())
        assert steps == [f"step-00000{step}.png" for step in range(1, 5)]
    scores = site.rows("evaluation/scores.csv")
    assert len({tuple(row[name] for name in sampler.outputs.SCORE_KEY) for row in scores}) == len(scores) == 3 * 4 * 3
    table = {(row["method"], row["column"]): row for row in site.rows("table.csv")}
    for method in METHODS:
        assert table[method, "all_three"]["value"] != ""
        assert table[method, "aesthetic"]["value"] == ""
        assert float(table[method, "all_three"]["published"]) > 0
    figures = {path.name for path in (site.out / "figures").iterdir()}
    assert {f"{name}.{end}" for name in ("trajectories", "dots") for end in ("svg", "png", "csv")} <= figures
