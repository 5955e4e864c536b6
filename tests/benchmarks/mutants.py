"""Which wrong programs the tests find: single changes of the code, each with the tests run against it.

    python -m tests.benchmarks.mutants [--count 60] [--seed 0] [--only TEXT] [--json FILE]

Sites are drawn by the seed from the engine, the acceptance rule, the rules, permissions and the record; the `NAMED`
changes, which people have tried by hand, come first. Each mutant is a change of one expression in a copy of the
tracked files, and is killed if a test of its `AREAS` fails there. `EQUIVALENT` names those that change nothing that
anybody could notice, with the reason; they are not counted.
"""

import argparse
import ast
import json
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

AREAS: dict[str, tuple[str, ...]] = {
    "sampler/acceptance.py": (
        "tests/sampler/test_acceptance.py",
        "tests/sampler/rules",
    ),
    "sampler/chain.py": ("tests/sampler/test_chain.py", "tests/sampler/record"),
    "sampler/rules/": ("tests/sampler/rules", "tests/sampler/test_acceptance.py"),
    "sampler/record/": (
        "tests/sampler/record",
        "tests/campaigns/record",
        "tests/campaigns/engine/test_on_demand.py",
        "tests/campaigns/engine/test_panel.py",
        "tests/campaigns/engine/test_suspension.py",
        "tests/campaigns/lifecycle/test_extension.py",
        "tests/flows/test_budget.py",
        "tests/flows/test_context.py",
        "tests/flows/test_unjudged.py",
        "tests/participants",
    ),
    "prefmh_web/campaigns/record/": (
        "tests/campaigns/record",
        "tests/sampler/record",
        "tests/console/test_results.py",
        "tests/flows/test_unjudged.py",
        "tests/flows/test_warm_up.py",
    ),
    "prefmh_web/campaigns/engine/": (
        "tests/campaigns",
        "tests/participants",
        "tests/operations/test_metrics.py",
        "tests/voting",
        "tests/flows/test_turns_scheduled.py",
        "tests/flows/test_models_judge.py",
        "tests/flows/test_models_write.py",
        "tests/flows/test_model_costs.py",
    ),
    "prefmh_web/campaigns/lifecycle/access.py": (
        "tests/security/test_access.py",
        "tests/console",
        "tests/campaigns",
        "tests/participants",
    ),
    "prefmh_web/api/": ("tests/security/test_access.py", "tests/api"),
    "sampler/config.py": ("tests/sampler/test_config.py", "tests/sampler/record", "tests/campaigns/lifecycle"),
}
"""Files or folders, and the tests that answer for them."""
_ENGINE, _API = "prefmh_web/campaigns/engine", "prefmh_web/api"
NAMED = (
    # A viewer extends a campaign, or lists its people.
    (f"{_API}/campaigns.py", 'Right.OWN if wanted.action == "extend" else Right.RUN', "Right.WATCH"),
    (f"{_API}/records.py", "campaign_for(request, campaign_id, Right.RUN)", "campaign_for(request, campaign_id)"),
    # The deadline of a lease is not asked again under the lock; an abandoned lease keeps its long one.
    (f"{_ENGINE}/leases.py", "Lease.Ending.EXPIRED, expires_at__lte=now)", "Lease.Ending.EXPIRED)"),
    (f"{_ENGINE}/leases.py", "update(expires_at=deadline, is_orphan=True)", "update(is_orphan=True)"),
    # A panelist's lease is given to anybody.
    (f"{_ENGINE}/open_comparisons.py", " if judge.panelist == panelist]", "]"),
    # Chains that are being opened are not counted.
    (f"{_ENGINE}/on_demand.py", "campaign.chains.count() - still_wanted", "campaign.chains.count()"),
    # The burn-in is counted among the samples.
    ("sampler/config.py", 'return "burn-in"\n', 'return "sampling"\n'),
)
"""A file, a piece of it, and what takes its place."""
EQUIVALENT: dict[str, str] = {
    "prefmh_web/campaigns/engine/transitions.py: comparison.verdict is None and vote.counted"
    " -> (comparison.verdict is None or vote.counted)": "a decided step's judges get a hint that finds nothing to do",
    "prefmh_web/campaigns/record/export.py: 16 -> (17)": "a file is written in pieces of another size",
    "prefmh_web/campaigns/engine/transitions.py: 8 -> (9)": "more steps that need no vote are made in one task",
    "prefmh_web/campaigns/record/export.py: buffer.tell() > _CHARACTERS_PER_CHUNK"
    " -> (buffer.tell() >= _CHARACTERS_PER_CHUNK)": "a file is sent in pieces of another size",
    "prefmh_web/campaigns/record/export.py: 400_000 -> (400001)": "one row more is held in memory",
    "prefmh_web/campaigns/lifecycle/access.py: 3 -> (4)": "the rights keep their order",
    "sampler/acceptance.py: judges * most.bit_length() <= _PLAIN_BITS"
    " -> (judges * most.bit_length() < _PLAIN_BITS)": "one of two ways to compute the same",
    "sampler/chain.py: rng.random() < self.preference(current, proposal)"
    " -> (rng.random() <= self.preference(current, proposal))": "no number that is drawn is a preference",
    "sampler/record/record.py: 300 -> (301)": "an estimate of memory",
    "sampler/record/commitment.py: 0 -> (1)": "nothing is drawn from the seed that stands for an unknown one",
    "sampler/record/commitment.py: False -> (True)": "other letters are written as JSON's escapes",
}
"""By a mutant's name, why it changes nothing that anybody could notice."""
_LONGEST_S = 900
_SWAPPED: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.And: ast.Or, ast.Or: ast.And,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add,
}  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    """A change of one file.

    Args:
        path: of the file.
        line: where it is changed.
        before, after: the piece, and what takes its place.
        start, end: of the piece, in characters.
    """

    path: str
    line: int
    before: str
    after: str
    start: int
    end: int

    @property
    def name(self) -> str:
        """The file and the change, as a line of the list."""
        return f"{self.path}: {' '.join(self.before.split())} -> {' '.join(self.after.split())}"

    def write(self, root: Path) -> None:
        """Change the file below a root."""
        text = (root / self.path).read_text(encoding="utf-8")
        (root / self.path).write_text(text[: self.start] + self.after + text[self.end :], encoding="utf-8")


def main() -> int:
    """Print each mutant and whether it was killed; return 1 where fewer than 95 % were."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=60, help="mutants, the named ones among them (default: 60)")
    parser.add_argument("--seed", type=int, default=0, help="of the sites (default: 0)")
    parser.add_argument("--only", default="", help="mutants whose name has this in it")
    parser.add_argument("--json", type=Path, metavar="FILE", help="to write")
    options = parser.parse_args()
    files = [each for each in _tracked() if any(each.startswith(area) for area in AREAS) and each.endswith(".py")]
    sites = [site for path in files for site in _sites(path) if site.name not in EQUIVALENT]
    named = [_named(*each) for each in NAMED]
    drawn = random.Random(options.seed).sample(sites, max(0, options.count - len(named)))
    found = []
    for mutant in [each for each in (*named, *drawn) if options.only in each.name]:
        outcome = _outcome(mutant)
        found.append({**asdict(mutant), "outcome": outcome})
        print(f"{outcome:9} {mutant.path}:{mutant.line} {mutant.name.partition(': ')[2]}", flush=True)
        if options.json:
            options.json.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    killed = sum(each["outcome"] != "survived" for each in found)
    print(f"{killed} of {len(found)} killed")
    return int(killed < 0.95 * len(found))


def _outcome(mutant: Mutant) -> str:
    """Run the tests of a mutant's area in a copy with the change; return killed, survived or timeout."""
    tests = next(tests for area, tests in AREAS.items() if mutant.path.startswith(area))
    with tempfile.TemporaryDirectory(prefix="mutant-") as folder:
        root = Path(folder)
        for path in _tracked():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, root / path)
        mutant.write(root)
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-n", "2", *tests]
        try:
            done = subprocess.run(command, cwd=root, capture_output=True, timeout=_LONGEST_S, check=False)
        except subprocess.TimeoutExpired:
            return "timeout"
    return "killed" if done.returncode else "survived"


def _tracked() -> list[str]:
    listed = subprocess.run(["git", "ls-files"], capture_output=True, text=True, check=True).stdout
    return [path for path in listed.splitlines() if Path(path).is_file()]


def _named(path: str, before: str, after: str) -> Mutant:
    text = Path(path).read_text(encoding="utf-8")
    if text.count(before) != 1:
        raise ValueError(f"{path} must have {before!r} once")
    start = text.index(before)
    return Mutant(path, text.count("\n", 0, start) + 1, before, after, start, start + len(before))


def _sites(path: str) -> Iterator[Mutant]:
    """Yield every change of one expression of a file: a comparison, a condition, a sum, a number, a truth, a call whose
    value nobody takes.
    """
    text = Path(path).read_text(encoding="utf-8")
    lines = [0]
    for line in text.splitlines(keepends=True):
        lines.append(lines[-1] + len(line.encode()))
    data = text.encode()
    tree = ast.parse(text)
    quiet = {id(inner) for node in ast.walk(tree) for inner in _said(node)}
    for node in ast.walk(tree):
        if id(node) in quiet or not isinstance(node, ast.expr | ast.Expr):
            continue
        if (after := _changed(node)) is not None:
            start, end = (
                len(data[: lines[row - 1] + column].decode())
                for row, column in ((node.lineno, node.col_offset), (node.end_lineno or 0, node.end_col_offset or 0))
            )
            yield Mutant(path, node.lineno, text[start:end], after, start, end)


def _said(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what of a node tells people something or types, and decides nothing."""
    if isinstance(node, ast.JoinedStr | ast.Raise):
        yield from ast.walk(node)
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        for part in (node.args, node.returns, *node.decorator_list):
            yield from ast.walk(part) if part else ()
    if isinstance(node, ast.ClassDef):
        # Whether a dataclass is frozen.
        for part in node.decorator_list:
            yield from ast.walk(part)
    if isinstance(node, ast.AnnAssign):
        yield from ast.walk(node.annotation)
    # That two sequences are of one length is only checked by it.
    if isinstance(node, ast.keyword) and node.arg == "strict":
        yield from ast.walk(node.value)
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and "logger" in ast.unparse(node.value.func):
        yield from ast.walk(node)


def _changed(node: ast.AST) -> str | None:
    """Return a node's text with one thing changed; None where this script changes nothing."""
    match node:
        case ast.Compare(ops=[one]) if type(one) in _SWAPPED:
            other = ast.Compare(node.left, [_SWAPPED[type(one)]()], node.comparators)  # type: ignore[list-item]
        case ast.BoolOp(op=one):
            other = ast.BoolOp(_SWAPPED[type(one)](), node.values)  # type: ignore[arg-type, assignment]
        case ast.BinOp(op=one) if type(one) in _SWAPPED:
            other = ast.BinOp(node.left, _SWAPPED[type(one)](), node.right)  # type: ignore[arg-type, assignment]
        case ast.UnaryOp(op=ast.Not()):
            other = node.operand  # type: ignore[assignment]
        case ast.IfExp():
            other = node.orelse  # type: ignore[assignment]
        case ast.Constant(value=bool()):
            other = ast.Constant(not node.value)  # type: ignore[assignment]
        case ast.Constant(value=int()):
            other = ast.Constant(node.value + 1)  # type: ignore[assignment, operator]
        case ast.Expr(value=ast.Call()):
            return "pass"
        case _:
            return None
    return f"({ast.unparse(other)})"


if __name__ == "__main__":
    sys.exit(main())
