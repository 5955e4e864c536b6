"""`manage.py experiment molecules`, whole, against a server whose replies are known; then run again."""

import json
import subprocess
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest

import sampler
from tests.support.installations import Site
from tests.support.models import Script, anything_else, scripted_server

CHAINS, STEPS = 2, 3
SIZE = ("--scale", "laptop", "--seeds", "0", "--chains", str(CHAINS), "--steps", str(STEPS))


@pytest.fixture(scope="module")
def server() -> Iterator[Script]:
    with scripted_server(anything_else) as script:
        yield script


@pytest.fixture(scope="module")
def site(tmp_path_factory, server) -> Site:
    """A site of its own, whose runs are judged by an endpoint."""
    options = ("molecules", *SIZE)
    return Site.made(tmp_path_factory.mktemp("site"), server.url, "vllm", options, roles={"judge": "judge"})


@pytest.fixture(scope="module")
def alone(site) -> Site:
    """The same site, whose runs ask nobody."""
    return replace(site, roles={})


def ran(site: Site, out: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return site.run("--out", str(out), *options)


@pytest.mark.skipif(find_spec("torch") is None, reason="needs the extra [gpu]")
def test_learned_proposals_stand_beside_campaigns_and_start_again_when_they_were_stopped(alone, tmp_path):
    out = tmp_path / "out"
    # What a killed run has left.
    (out / "records").mkdir(parents=True)
    (out / "records" / "mars-s0.part").write_text("PK")
    ended = ran(alone, out, "--methods", "mars", "--exact")
    assert ended.returncode == 0, ended.stderr
    names = sorted(path.name for path in (out / "records").iterdir())
    assert names == ["mars-exact-s0.zip", "mars-s0.zip"]
    for name, convention in (("mars-s0.zip", "paper"), ("mars-exact-s0.zip", "exact")):
        found = sampler.replay_file(out / "records" / name)
        assert not found.differences
        assert found.verdicts == CHAINS * STEPS
        with zipfile.ZipFile(out / "records" / name) as archive:
            assert json.loads(archive.read("lockstep/settings.json"))["convention"] == convention
    table = {row["method"] for row in alone.rows(out / "table.csv")}
    assert table == {"mars", "mars-exact"}
