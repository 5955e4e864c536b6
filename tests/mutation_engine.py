"""Do the tests notice when the engine is wrong? `python -m tests.mutation_engine` draws mutants of it by a seed.

mutmut makes the mutants, as for `tests.mutation`, but cannot run the engine's tests: it forks a process whose threads
and databases stay behind. Here each mutant is applied to a copy of the checkout in which the tests run afresh, on
SQLite and, when none of these has noticed anything, on PostgreSQL. First they run without a mutant: where they fail
then, they would notice anything. Prints the mutants that no test has noticed, with their change, and those whose tests
did not end in time: they loop for ever, or the machine is too slow to say. Exits with 1 where fewer than nine in ten
are caught.
"""

from __future__ import annotations

import argparse
import random
import re
import subprocess
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

ROOT = Path(__file__).parents[1]
SETTINGS = """[tool.mutmut]
source_paths = ["prefmh_web"]
only_mutate = ["prefmh_web/campaigns/engine/*"]

[tool.importlinter]"""
GENERATE = """
from pathlib import Path
import mutmut.__main__ as mutmut
mutmut.set_mutant_under_test("mutant_generation")
Path("mutants").mkdir()
mutmut.copy_src_dir()
mutmut.setup_source_paths()
mutmut.create_mutants(1)
"""
# The nearest first.
TESTS = [
    "tests/campaigns/engine", "tests/annotate", "tests/campaigns/lifecycle", "tests/security/test_invitations.py",
    "tests/flows/test_ratings_that_meet.py", "tests/campaigns/proposals/test_claims.py",
    "tests/console/test_tryouts.py",
]  # fmt: skip
ON_POSTGRESQL = ["tests/campaigns/engine", "tests/annotate"]
MOST_S = 900
LEAST_CAUGHT = 0.9
CAUGHT, SURVIVES, TIMED_OUT = "caught", "survives", "timed out"


class Copy:
    """A copy of the last commit, with all mutants of the engine."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._run("git", "clone", "--quiet", str(ROOT), str(folder), cwd=ROOT)
        project = folder / "pyproject.toml"
        project.write_text(
            re.sub(r"\[tool\.mutmut\].*?\[tool\.importlinter\]", SETTINGS, project.read_text(), flags=re.S)
        )
        self._run(sys.executable, "-c", GENERATE)

    def names(self) -> list[str]:
        """Return the names of all mutants, in order."""
        listed = self._run(sys.executable, "-m", "mutmut", "results", "--all", "true").stdout
        return sorted(line.strip().partition(": ")[0] for line in listed.splitlines() if ": " in line)

    def outcome(self, name: str) -> str:
        """Apply a mutant and run the tests; return what became of it."""
        self._run(sys.executable, "-m", "mutmut", "apply", name)
        try:
            return SURVIVES if self.passes() else CAUGHT
        except subprocess.TimeoutExpired:
            return TIMED_OUT
        finally:
            self._run("git", "checkout", "--quiet", "prefmh_web")

    def passes(self) -> bool:
        """Return whether all tests pass.

        Raises:
            subprocess.TimeoutExpired: they have not ended in time.
        """
        return self._passes("pytest", *TESTS) and self._passes("tests.support.server_stack", *ON_POSTGRESQL)

    def show(self, name: str) -> str:
        """Return the change of a mutant."""
        return self._run(sys.executable, "-m", "mutmut", "show", name).stdout

    def _passes(self, module: str, *tests: str) -> bool:
        # Unsorted: the nearest tests notice most.
        command = [sys.executable, "-m", module, "-x", "-q", "-n", "0", "-p", "no:cacheprovider", *tests]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, timeout=MOST_S, check=False)
        return done.returncode == 0

    def _run(self, *command: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(command, cwd=cwd or self.folder, check=True, capture_output=True, text=True)


def main() -> int:
    """Draw mutants, run the tests on each and print the survivors; return 1 if too many survive."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=100, metavar="N", help="mutants to draw (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="of the draw (default: %(default)s)")
    parser.add_argument("--processes", type=int, default=2, metavar="N", help="(default: %(default)s)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="prefmh-mutants-") as folder:
        copies = [Copy(Path(folder) / str(place)) for place in range(options.processes)]
        if not copies[0].passes():
            sys.exit("the tests fail without a mutant")
        names = copies[0].names()
        drawn = random.Random(options.seed).sample(names, min(options.count, len(names)))
        outcomes = _outcomes(copies, drawn)
        for name in (name for name, outcome in outcomes.items() if outcome == SURVIVES):
            print(f"\n{copies[0].show(name)}", end="")
    counts = Counter(outcomes.values())
    share = counts[CAUGHT] / len(drawn)
    print(
        f"\n{len(drawn)} of {len(names)} mutants: {share:.1%} caught, {counts[SURVIVES]} survive, "
        f"{counts[TIMED_OUT]} timed out"
    )
    return 0 if share >= LEAST_CAUGHT else 1


def _outcomes(copies: list[Copy], drawn: list[str]) -> dict[str, str]:
    free: SimpleQueue[Copy] = SimpleQueue()
    for copy in copies:
        free.put(copy)

    def outcome(name: str) -> str:
        copy = free.get()
        try:
            found = copy.outcome(name)
        finally:
            free.put(copy)
        print(f"{found:<9} {name}", flush=True)
        return found

    with ThreadPoolExecutor(len(copies)) as workers:
        return dict(zip(drawn, workers.map(outcome, drawn), strict=True))


if __name__ == "__main__":
    sys.exit(main())
