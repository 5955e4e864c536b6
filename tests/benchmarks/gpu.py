"""What a GPU computes for this product, checked and measured: a run of a few minutes on a machine lent for as long.

    python -m tests.benchmarks.gpu --out FOLDER --archive gpu-packages.tar.xz       which `.ci/gpu_archive` packs
    python -m tests.benchmarks.gpu --out FOLDER --tiny --device cpu

Weights are random and made on the device, so nothing is carried along but packages. Each part is a process of its own
with a limit of its own, the most valuable ones first; what one leaves of its time goes to those behind it:

    versions   what is here; without CUDA nothing else is tried
    card       bytes copied and products in bfloat16 a second: what the floor of the speed is made of
    distribution
               texts are drawn from the one that they are said to be drawn from: each row again, alone, without a
               cache, in float32; wrong models and a wrong temperature must be found
    batches    the same rows in batches of other sizes
    again      and in another process
    speed      tokens a second beside the floor: weights and cache are read once a step, or products take longer; and
               with each step repeated as one CUDA graph, which the product does not do yet
    images     SDXL-Turbo's shape, saved and loaded as a site does: the same latent gives the same pixels; speed
    editor     MARS's learned editor: its record replays on the CPU; speed beside the CPU's
    tests      `tests/gpu`
    campaign   a campaign on SQLite whose writer is a model here: killed in a batch, finished, replayed

A part that fails or takes too long is recorded and the next one begun; so is what it had found. FOLDER gets one JSON
line for each finding at once, `gpu.json` with all of them at the end, and `profile.txt`. The last output is a table.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module, metadata
from pathlib import Path

import torch

from tests.benchmarks.gpu_run import ROOT, TINY, Run, fastest, findings, shown


def versions(run: Run) -> None:
    """Say what is here.

    Raises:
        RuntimeError: CUDA is wanted and not there.
    """
    run.found("python", platform.python_version())
    for name in ("torch", "transformers", "numpy"):
        run.found(name, metadata.version(name))
    if run.device == "cuda":
        if not torch.cuda.is_available():
            raise RuntimeError("there is no CUDA here")
        card = torch.cuda.get_device_properties(0)
        run.found("card", f"{card.name}, {card.total_memory / 2**30:.0f} GiB, CUDA {torch.version.cuda}")


def card(run: Run) -> None:
    """Measure how fast bytes are copied and matrices multiplied."""
    source = torch.zeros(run.size.copied, dtype=torch.bfloat16, device=run.device)
    target, width = torch.empty_like(source), run.size.product
    one, other = (torch.randn(width, width, device=run.device, dtype=torch.bfloat16) for _ in range(2))
    # Each byte is read and written.
    run.found("bytes a second", 2 * source.nbytes / fastest(run, lambda: target.copy_(source)))
    run.found("operations a second", 2 * width**3 / fastest(run, lambda: one @ other))


def tests(run: Run) -> None:
    """Run the tests of the models but for the one that starts a tiny run; that one, only the quickest."""
    names = ["tests/gpu/test_choice.py"] if run.size is TINY else ["tests/gpu", "--ignore=tests/gpu/test_gpu_run.py"]
    several = ["-n", "0" if run.size is TINY else "6"]
    command = [sys.executable, "-m", "pytest", *several, "-q", "-W", "default", *names]
    with (run.folder / "tests.txt").open("w+", encoding="utf-8") as file:
        done = subprocess.run(command, cwd=ROOT, stdout=file, stderr=subprocess.STDOUT, check=False)
        file.seek(0)
        last = (file.read().strip().splitlines() or ["no output"])[-1]
    run.found("tests/gpu", last, "all pass", done.returncode == 0)


def _in(module: str) -> Callable[[str], Callable[[Run], None]]:
    """Return what finds a part in a module: only its own process needs what that imports."""
    return lambda part: getattr(import_module(f"tests.benchmarks.{module}"), part)


PARTS: dict[str, tuple[Callable[[str], Callable[[Run], None]], int]] = {
    "versions": (lambda _: versions, 15),
    "card": (lambda _: card, 15),
    "distribution": (_in("gpu_texts"), 75),
    "batches": (_in("gpu_texts"), 45),
    "again": (_in("gpu_texts"), 20),
    "speed": (_in("gpu_texts"), 55),
    "images": (_in("gpu_images"), 70),
    "editor": (_in("gpu_editor"), 30),
    "tests": (lambda _: tests, 45),
    "campaign": (_in("gpu_campaign"), 50),
}
"""The parts in order, where each is, and its seconds on a GPU: 7 minutes in all."""


def _run_part(part: str, arguments: argparse.Namespace, environment: Mapping[str, str], until: float) -> None:
    """Run a part in a process group of its own until a moment at most, and record how it failed if it did."""
    command = [sys.executable, "-m", "tests.benchmarks.gpu", "--part", part, "--device", arguments.device]
    command += ["--out", str(arguments.out), *(["--tiny"] if arguments.tiny else [])]
    print(part, flush=True)
    run, begun = Run(part, arguments), time.monotonic()
    with (arguments.out / f"{part}.log").open("w+", encoding="utf-8") as log:
        process = subprocess.Popen(command, cwd=ROOT, env=environment, stderr=log, start_new_session=True)
        try:
            failed = process.wait(timeout=max(0.0, until - begun))
        except subprocess.TimeoutExpired:
            run.found(f"{part}: out of time", until - begun, "seconds are enough", good=False)
            failed = 0
        finally:
            # With what it has started.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        log.seek(0)
        if failed:
            last = (log.read().strip().splitlines() or [f"it ended with {failed}"])[-1]
            run.found(f"{part}: failed", last, "no error", good=False)
    run.found(f"{part}: seconds", time.monotonic() - begun)


def _table(lines: Sequence[dict]) -> str:
    marks = {True: "good", False: "BAD", None: ""}
    return "\n".join(
        f"{line['part']:9} {marks[line['good']]:4} {line['name']}: {shown(line['value'])}"
        + (f" (wanted: {line['wanted']})" if line["wanted"] else "")
        for line in lines
    )


def main() -> int:
    """Run all parts, or one in this process; 1 where something is not as wanted."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="a folder for what is found; it need not exist")
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    parser.add_argument("--tiny", action="store_true", help="small shapes, for a look at the script itself")
    parser.add_argument("--archive", type=Path, help="packages, as .ci/gpu_archive packs them")
    parser.add_argument("--part", choices=PARTS, help="only this one, in this process")
    arguments = parser.parse_args()
    arguments.out = arguments.out.resolve()
    arguments.out.mkdir(parents=True, exist_ok=True)
    if arguments.part:
        find, _ = PARTS[arguments.part]
        find(arguments.part)(Run(arguments.part, arguments))
        return 0
    (arguments.out / "findings.jsonl").write_text("", encoding="utf-8")
    with tempfile.TemporaryDirectory(prefix="prefmh-gpu-") as packages:
        if arguments.archive:
            with tarfile.open(arguments.archive) as archive:
                archive.extractall(packages, filter="data")
        path = os.pathsep.join([packages, os.environ.get("PYTHONPATH", "")])
        until = time.monotonic()
        for part, (_, seconds) in PARTS.items():
            # Elsewhere nobody waits for the machine, and it may be busy.
            until += seconds * (1 if arguments.device == "cuda" else 10)
            _run_part(part, arguments, os.environ | {"PYTHONPATH": path}, until)
            if part == "versions" and any(line["good"] is False for line in findings(arguments.out)):
                break
    lines = findings(arguments.out)
    (arguments.out / "gpu.json").write_text(json.dumps(lines, indent=1), encoding="utf-8")
    print(_table(lines))
    return int(any(line["good"] is False for line in lines))


if __name__ == "__main__":
    sys.exit(main())
