"""What reading an upload takes of memory and time: uploads as large as they may be, and some that are meant to harm.

    python -m tests.benchmarks.uploads [--case NAME ...] [--json FILE]

Each case is made on the disk and then read by a process of its own, with a graph of the 8 nearest neighbours where it
gives a catalog. Memory is the most that this process ever held (resident) beyond what it held with all libraries
loaded; the bound is what a site should set aside for its worker of files, and the command exits with 1 beyond it.
"""

from __future__ import annotations

import argparse
import io
import json
import resource
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from PIL import Image

from sampler import OBJECT_KINDS, CatalogError

MIB = 2**20
BOUND_MIB = 1024
NEIGHBOURS = 8


def words(rng: np.random.Generator, vocabulary: int, count: int) -> str:
    """Return words drawn by a Zipf law, as a language's are, from a vocabulary of this size."""
    drawn = np.exp(rng.random(count) * np.log(vocabulary)).astype(int)
    return " ".join(np.char.add("w", drawn.astype(str)).tolist())


def texts(count: int, characters: int, vocabulary: int) -> Iterator[bytes]:
    rng = np.random.default_rng(1)
    yield b"text\n"
    for number in range(count):
        yield f"{number} {words(rng, vocabulary, characters // 4)}"[:characters].encode() + b"\n"


def unique_words(size: int, per_text: int = 2000) -> Iterator[bytes]:
    yield b"text\n"
    at = 0
    while at * 8 < size:
        yield " ".join(f"{number:x}q" for number in range(10**7 + at, 10**7 + at + per_text)).encode() + b"\n"
        at += per_text


def symbols(characters: int, per_text: int = 10_000) -> Iterator[bytes]:
    """Texts in which each of many thousand signs is a word by itself, in four bytes of memory each."""
    rng = np.random.default_rng(2)
    signs = np.arange(0x1F000, 0x1F000 + 65_000) % 60_000 + 0xF0000
    yield b"text\n"
    for _ in range(characters // per_text):
        yield "".join(map(chr, rng.choice(signs, per_text, replace=False).tolist())).encode() + b"\n"


def repeated(row: bytes, rows: int, header: bytes = b"text\n") -> Iterator[bytes]:
    yield header
    yield b"one\ntwo\n"
    for _ in range(rows // 1000):
        yield row * 1000


def archive(fill: Callable[[zipfile.ZipFile], None]) -> Iterator[bytes]:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as opened:
        fill(opened)
    yield data.getvalue()


def photographs(opened: zipfile.ZipFile) -> None:
    rng = np.random.default_rng(3)
    for number in range(150):
        picture = io.BytesIO()
        Image.fromarray(rng.integers(0, 256, (600, 800, 3), dtype=np.uint8)).save(picture, "PNG")
        opened.writestr(f"{number}.png", picture.getvalue())


def bomb(opened: zipfile.ZipFile) -> None:
    for number in range(3):
        opened.writestr(f"{number}.png", bytes(200 * MIB), compress_type=zipfile.ZIP_BZIP2)


def many_names(opened: zipfile.ZipFile) -> None:
    for number in range(300_000):
        opened.writestr(f"{number:07}{'x' * 20}.png", b"")


CASES: dict[str, tuple[str, Callable[[], Iterator[bytes]]]] = {
    "20,000 texts of 2,400 characters": ("texts", lambda: texts(20_000, 2_400, 50_000)),
    "2,500 texts of 19,000 characters": ("texts", lambda: texts(2_500, 19_000, 100_000)),
    "20,000 texts of 9,500 characters, too many": ("texts", lambda: texts(20_000, 9_500, 50_000)),
    "11 MB of words that are all different": ("texts", lambda: unique_words(11 * MIB)),
    "48 MB of words that are all different": ("texts", lambda: unique_words(48 * MIB)),
    "10 million signs": ("texts", lambda: symbols(10_000_000)),
    "a million rows that repeat": ("texts", lambda: repeated(b"one\n", 999_000)),
    "100 million rows that repeat": ("texts", lambda: repeated(b"a\n", 100_000_000)),
    "a row of 200 MB": ("texts", lambda: repeated(b"x" * 1000, 200_000)),
    "a cell of 200 MB": ("texts", lambda: repeated(b"x" * 1000 + b"\n", 200_000, header=b'text\n"')),
    "a column nobody reads, 200 MB": (
        "texts",
        lambda: repeated(b"one," + b"x" * 999 + b"\n", 200_000, b"text,n\n"),
    ),
    "200 MB of photographs": ("images", lambda: archive(photographs)),
    "a bomb": ("images", lambda: archive(bomb)),
    "300,000 files": ("images", lambda: archive(many_names)),
}


def read(kind: str, path: Path) -> dict[str, object]:
    """Read one file in this process and say what it took."""
    # Loaded before: what the libraries take is no upload's.
    warm = b"text\n" + b"".join(b"word %d other\n" % number for number in range(200))
    OBJECT_KINDS["texts"].neighbours(OBJECT_KINDS["texts"].read(io.BytesIO(warm), lambda done, total: None).items, 8)
    before, begun = peak_mib(), time.perf_counter()
    found = OBJECT_KINDS[kind]
    with path.open("rb") as file, tempfile.TemporaryFile(dir=path.parent) as pictures:
        try:
            reading = found.read(file, lambda done, total: None, pictures)
            found.neighbours(reading.items, NEIGHBOURS)
            outcome = f"{len(reading.items):,} objects"
        except CatalogError as error:
            outcome = str(error)
    return {"seconds": time.perf_counter() - begun, "memory_mib": peak_mib() - before, "outcome": outcome}


def peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(name: str, folder: Path) -> dict[str, object]:
    kind, content = CASES[name]
    path = folder / "upload"
    with path.open("wb") as file:
        for piece in content():
            file.write(piece)
    size = path.stat().st_size / MIB
    command = [sys.executable, "-m", "tests.benchmarks.uploads", "--read", kind, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{name}: {done.stderr[-2000:]}")
    found = json.loads(done.stdout)
    return {"case": name, "size_mib": size, "mib_per_mib": found["memory_mib"] / size, **found}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--case", nargs="*", choices=CASES, default=list(CASES))
    parser.add_argument("--json", type=Path, help="write the figures to this file as well")
    parser.add_argument("--read", nargs=2, metavar=("KIND", "FILE"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.read:
        print(json.dumps(read(options.read[0], Path(options.read[1]))))
        return 0
    figures = []
    print(f"{'':<44}{'MiB':>8}{'memory':>10}{'per MiB':>9}{'seconds':>9}  outcome")
    for name in options.case:
        with tempfile.TemporaryDirectory() as folder:
            found = measure(name, Path(folder))
        figures.append(found)
        print(
            f"{name:<44}{found['size_mib']:>8.1f}{found['memory_mib']:>10.0f}{found['mib_per_mib']:>9.1f}"
            f"{found['seconds']:>9.1f}  {found['outcome'][:80]}",
            flush=True,
        )
    if options.json:
        options.json.write_text(json.dumps({"bound_mib": BOUND_MIB, "cases": figures}, indent=2) + "\n")
    return int(max(found["memory_mib"] for found in figures) > BOUND_MIB)


if __name__ == "__main__":
    sys.exit(main())
