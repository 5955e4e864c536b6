"""The run for a machine with a GPU, gone through with tiny shapes on the CPU."""

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def run(folder, *options, **variables):
    """Return how it ended, and what it found."""
    command = [sys.executable, "-m", "tests.benchmarks.gpu", "--out", str(folder), *options]
    done = subprocess.run(
        command, cwd=ROOT, env=os.environ | variables, capture_output=True, text=True, check=False, timeout=600
    )
    return done, json.loads((folder / "gpu.json").read_text())


def test_every_part_finds_what_it_should(tmp_path):
    done, found = run(tmp_path, "--tiny", "--device", "cpu")
    assert done.returncode == 0, done.stdout + done.stderr
    parts = {line["part"] for line in found if line["good"]}
    assert parts == {"law", "batches", "again", "tests"}
    assert sum(line["name"].startswith("control: ") for line in found) == 4
    assert any("share of the floor" in line["name"] for line in found)


def test_without_cuda_it_fails_at_once_and_says_why(tmp_path):
    done, found = run(tmp_path, CUDA_VISIBLE_DEVICES="")
    assert done.returncode == 1
    assert {line["part"] for line in found} == {"versions"}
    [failure] = [line["value"] for line in found if line["good"] is False]
    assert failure == "RuntimeError: there is no CUDA here"
