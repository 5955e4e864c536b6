"""The run for a machine with a GPU, gone through with tiny shapes on the CPU."""

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.benchmarks import gpu

ROOT = Path(__file__).parents[2]


def run(folder, *options, **variables):
    """Return how it ended, and what it found."""
    command = [sys.executable, "-m", "tests.benchmarks.gpu", "--out", str(folder), *options]
    done = subprocess.run(
        command, cwd=ROOT, env=os.environ | variables, capture_output=True, text=True, check=False, timeout=1200
    )
    return done, json.loads((folder / "gpu.json").read_text())


def test_every_part_finds_what_it_should(tmp_path):
    done, found = run(tmp_path, "--tiny", "--device", "cpu")
    assert done.returncode == 0, done.stdout + done.stderr
    parts = {line["part"] for line in found if line["good"]}
    assert parts == {"distribution", "batches", "again", "speed", "images", "editor", "tests", "campaign"}
    assert sum(line["name"].startswith("control: ") for line in found) == 5
    assert any("share of the floor" in line["name"] for line in found)


def test_a_part_that_fails_or_takes_too_long_is_recorded_and_the_next_one_begun(tmp_path, monkeypatch, capsys):
    (tmp_path / "diffusers.py").write_text("raise ImportError('no such library here')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    seconds = {"card": 0, "images": 60, "again": 60, "versions": 60}
    monkeypatch.setattr(gpu, "PARTS", {part: (gpu.PARTS[part][0], limit) for part, limit in seconds.items()})
    monkeypatch.setattr(sys, "argv", ["gpu", "--tiny", "--device", "cpu", "--out", str(tmp_path / "out")])
    assert gpu.main() == 1
    found = json.loads((tmp_path / "out" / "gpu.json").read_text())
    failed = {line["part"]: (line["name"], line["value"]) for line in found if line["good"] is False}
    assert failed["card"][0] == "card: out of time"
    assert failed["images"] == ("images: failed", "ImportError: no such library here")
    # What it compares with is not there.
    assert failed["again"] == ("again: failed", "KeyError: 'float32: rows drawn'")
    assert any(line["name"] == "torch" for line in found)
    assert capsys.readouterr().out.count("BAD") == len(failed)


def test_without_cuda_it_fails_at_once_and_says_why(tmp_path):
    done, found = run(tmp_path, CUDA_VISIBLE_DEVICES="")
    assert done.returncode == 1
    assert {line["part"] for line in found} == {"versions"}
    [failure] = [line["value"] for line in found if line["good"] is False]
    assert failure == "RuntimeError: there is no CUDA here"
