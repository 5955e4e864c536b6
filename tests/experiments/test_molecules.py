"""`manage.py experiment molecules` with learned proposals, which asks nobody; begun where another run was killed."""

import json
import zipfile
from importlib.util import find_spec

import pytest

import sampler
from tests.support.installations import Site

CHAINS, STEPS = 2, 3
SIZE = ("--scale", "laptop", "--seeds", "0", "--chains", str(CHAINS), "--steps", str(STEPS))


@pytest.mark.skipif(find_spec("torch") is None, reason="needs the extra [gpu]")
def test_learned_proposals_stand_beside_campaigns_and_start_again_when_they_were_stopped(tmp_path):
    site = Site(tmp_path, ("molecules", *SIZE, "--methods", "mars", "--exact"), roles={})
    records = site.out / "records"
    # What a killed run has left.
    records.mkdir(parents=True)
    (records / "mars-s0.part").write_text("PK")
    ended = site.experiment()
    assert ended.returncode == 0, ended.stderr
    names = sorted(path.name for path in records.iterdir())
    assert names == ["mars-exact-s0.zip", "mars-s0.zip"]
    for name, convention in (("mars-s0.zip", "paper"), ("mars-exact-s0.zip", "exact")):
        found = sampler.replay_file(records / name)
        assert not found.differences
        assert found.verdicts == CHAINS * STEPS
        with zipfile.ZipFile(records / name) as archive:
            assert json.loads(archive.read("lockstep/settings.json"))["convention"] == convention
    assert {row["method"] for row in site.rows("table.csv")} == {"mars", "mars-exact"}
