"""What the parts of the run for a machine with a GPU share: their sizes, and how they write down what they find."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parents[2]
SEED = 20261128


@dataclass(frozen=True)
class Size:
    """How large a run is.

    Args:
        models: hidden size, layers, heads, key-value heads, inner size and vocabulary of each model whose speed is
            measured; the distribution of the first one is checked.
        rows: of the largest batch.
        new: tokens drawn for each row; `timed` of them where only time counts.
        compared: rows that are drawn in batches of every size.
        prefix: the longest prefix, in tokens.
        firsts: rows of one prompt whose first tokens are counted.
        batches: rows of a batch whose speed is measured; `beside`, whose tokens are compared.
        copied, product: numbers copied, and rows of the square matrices multiplied.
        pictures: drawn between two of the same latent.
        molecules: chains and steps of the learned editor, and how many of these steps are taken on the CPU too.
        campaign: chains, steps and tokens of a text of a whole campaign.
    """

    models: dict[str, tuple[int, int, int, int, int, int]]
    rows: int
    new: int
    timed: int
    compared: int
    prefix: int
    firsts: int
    batches: tuple[int, ...]
    beside: tuple[int, ...]
    copied: int
    product: int
    pictures: int
    molecules: tuple[int, int, int]
    campaign: tuple[int, int, int]


REAL = Size(
    {"1.2 B": (2048, 16, 32, 8, 8192, 128_256), "8 B": (4096, 32, 32, 8, 14_336, 128_256)},
    rows=256, new=192, timed=64, compared=32, prefix=150, firsts=20_000, batches=(1, 16, 64, 256),
    beside=(1, 7, 64), copied=2**30, product=8192, pictures=100, molecules=(200, 30, 5), campaign=(64, 8, 48),
)  # fmt: skip
TINY = Size(
    {"tiny": (32, 2, 4, 2, 64, 400)},
    rows=24, new=12, timed=6, compared=6, prefix=9, firsts=2000, batches=(1, 24), beside=(1, 7),
    copied=2**20, product=128, pictures=3, molecules=(4, 4, 2), campaign=(8, 6, 8),
)  # fmt: skip


class Run:
    """One part's findings, each written down as soon as it is there."""

    def __init__(self, part: str, arguments: argparse.Namespace) -> None:
        self.part, self.folder, self.device = part, arguments.out, arguments.device
        self.size = TINY if arguments.tiny else REAL

    def found(self, name: str, value: object, wanted: str = "", good: bool | None = None) -> None:
        """Write a finding down.

        Args:
            name: what was looked at.
            value: what JSON can hold.
            wanted: in words; empty for what is only reported.
            good: whether the value is as wanted; None likewise.
        """
        line = {"part": self.part, "name": name, "value": value, "wanted": wanted, "good": good}
        with (self.folder / "findings.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        print(f"  {name}: {shown(value)}", flush=True)

    def at_most(self, name: str, value: float, bound: float) -> None:
        """Write a finding down that is good up to a bound."""
        self.found(name, value, f"<= {bound}", value <= bound)

    def above(self, name: str, value: float, bound: float) -> None:
        """Write a finding down that is good above a bound."""
        self.found(name, value, f"> {bound}", value > bound)

    def earlier(self, name: str) -> object:
        """Return what was found under a name, by any part; raises KeyError where nothing was."""
        return {line["name"]: line["value"] for line in findings(self.folder)}[name]


def findings(folder: Path) -> list[dict]:
    """Return all findings so far."""
    return [json.loads(line) for line in (folder / "findings.jsonl").read_text(encoding="utf-8").splitlines()]


def fastest(run: Run, work: Callable[[], object], times: int = 5) -> float:
    """Return the seconds of the fastest of some calls, after one that is not timed."""
    wait = torch.cuda.synchronize if run.device == "cuda" else lambda: None
    taken = []
    for _ in range(times + 1):
        begun = time.perf_counter()
        work()
        wait()
        taken.append(time.perf_counter() - begun)
    return min(taken[1:])


def shown(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
