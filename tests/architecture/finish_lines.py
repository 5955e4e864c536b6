"""How the packages stand: `python -m tests.architecture.finish_lines` prints each measure beside its target.

The measures count what made the code hard to change: flags that say which kind of thing this is, recipes read as raw
dictionaries, imports between modules. With `--json` the output is for programs. Exits with 1 where a target is missed.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

import grimp

ROOT = Path(__file__).parents[2]
WEB, SAMPLER, TEMPLATES = ROOT / "prefmh_web", ROOT / "sampler", ROOT / "templates"

_SOURCE_FLAGS = r"is_painted_by_a_model|is_written_by_a_model|waits_for_a_model|has_catalog|space_kind"
_FLAGS_ALLOWED = ("campaigns/models/", "campaigns/proposals/", "campaigns/catalogs/")
# Tables that only `engine/` may name in SQL of its own; `record/` may COPY them.
_ENGINE_TABLES = r"(campaigns_vote|annotate_lease|campaigns_lease|campaigns_comparison)\b"
_SQL = re.compile(rf"\b(FROM|JOIN|UPDATE|INTO)\s+{_ENGINE_TABLES}", re.IGNORECASE)
_MODELS = {
    "Annotator", "Campaign", "Catalog", "Chain", "Comparison", "Endpoint", "Invitation", "Judge", "Lease", "Membership",
    "PrefetchedProposal", "Rating", "State", "Turn", "Vote",
}  # fmt: skip
_CALLERS_OF_CAST_VOTE = {"campaigns/engine/leases.py", "campaigns/model_judges/turns.py"}
_MOST_README_WORDS = 650
# What stood before the packages were rearranged: test functions, statements a vote by the judge's N.
_TESTS_BEFORE = 1062
# With those that begin with WITH: a vote makes three.
_STATEMENTS_BEFORE = {3: 14, 1: 15}


@dataclass(frozen=True)
class Line:
    """One measure: what was found, what is allowed, and whether that holds."""

    measure: str
    found: str
    target: str
    holds: bool


def lines() -> Iterator[Line]:
    """Yield every measure."""
    yield _none("lines with objects_kind", _lines_with(r"\bobjects_kind\b"))
    yield _none(
        "source flags outside campaigns/{models,proposals,catalogs}", _lines_with(_SOURCE_FLAGS, _FLAGS_ALLOWED)
    )
    yield _none("lines with is_rated", _lines_with(r"\bis_rated\b"))
    yield _none("lines that read a recipe as a dictionary", _lines_with(r"recipe\[|recipe\.get\("))
    yield _none("isinstance on recipes in sampler/record", _isinstance_on_recipes(SAMPLER / "record"))
    yield _within(
        "folders with SQL of their own on votes, leases, comparisons", _folders_with_sql(), {"campaigns/engine"}
    )
    yield _within("callers of cast_vote", _callers("cast_vote"), _CALLERS_OF_CAST_VOTE)
    yield _none("signals of our own", _lines_with(r"= Signal\("))
    yield _none("caches that hold rows of the database", list(_caches_with_rows()))
    yield from _graph("prefmh_web.campaigns", modules=15, imports=42, layers=8)
    yield from _graph("sampler", modules=18, imports=66, layers=9)
    contracts = len(_pyproject()["tool"]["importlinter"]["contracts"])
    yield Line("import contracts", str(contracts), "at least 6", contracts >= 6)
    checked = _pyproject()["tool"]["mypy"]["files"]
    yield Line("mypy checks", " ".join(checked), "sampler prefmh_web", {"sampler", "prefmh_web"} <= set(checked))
    overrides = _pyproject()["tool"]["mypy"]["overrides"]
    yield _none(
        "modules that mypy passes over",
        [name for each in overrides if "ignore_errors" in each for name in each["module"]],
    )
    words = len((ROOT / "README.md").read_text().split())
    yield Line("words in README.md", str(words), f"at most {_MOST_README_WORDS}", words <= _MOST_README_WORDS)
    yield _none("test files in tests/sampler that belong in a folder", list(_tests_of_no_root_module()))
    tests = sum(1 for _ in _test_functions())
    yield Line("test functions", str(tests), f"at least {_TESTS_BEFORE}", tests >= _TESTS_BEFORE)
    yield from _statements_a_vote()


def _none(measure: str, found: list[str]) -> Line:
    shown = f"{len(found)}: {', '.join(found[:5])}" if found else "0"
    return Line(measure, shown, "0", not found)


def _within(measure: str, found: set[str], allowed: set[str]) -> Line:
    return Line(measure, " ".join(sorted(found)), " ".join(sorted(allowed)), found <= allowed)


def _sources(*folders: Path) -> Iterator[Path]:
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            if path.suffix in (".py", ".html") and "migrations" not in path.parts:
                yield path


def _lines_with(pattern: str, allowed: tuple[str, ...] = ()) -> list[str]:
    wanted = re.compile(pattern)
    return [
        f"{path.relative_to(ROOT)}:{number}"
        for path in _sources(WEB, TEMPLATES)
        if not any(f"prefmh_web/{folder}" in str(path) for folder in allowed)
        for number, line in enumerate(path.read_text().splitlines(), start=1)
        if wanted.search(line)
    ]


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def _isinstance_on_recipes(folder: Path) -> list[str]:
    return [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in _sources(folder)
        for node in ast.walk(_tree(path))
        if isinstance(node, ast.Call)
        and ast.unparse(node.func) == "isinstance"
        and any("Recipe" in ast.unparse(argument) for argument in node.args[1:])
    ]


def _folders_with_sql() -> set[str]:
    found = {str(path.parent.relative_to(WEB)) for path in _sources(WEB) if _SQL.search(path.read_text())}
    return found - {"campaigns/record"}


def _callers(name: str) -> set[str]:
    return {
        str(path.relative_to(WEB))
        for path in _sources(WEB)
        if path.suffix == ".py"
        for node in ast.walk(_tree(path))
        if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] == name
    }


def _caches_with_rows() -> Iterator[str]:
    """Yield the cached functions whose arguments or result are rows of the database."""
    for path in _sources(WEB):
        if path.suffix != ".py":
            continue
        for node in ast.walk(_tree(path)):
            if isinstance(node, ast.FunctionDef) and any("cache" in ast.unparse(each) for each in node.decorator_list):
                signature = [ast.unparse(node.returns)] if node.returns else []
                signature += [ast.unparse(each.annotation) for each in node.args.args if each.annotation]
                if _MODELS & set(re.findall(r"\w+", " ".join(signature))):
                    yield f"{path.relative_to(ROOT)}:{node.lineno} {node.name}"


def _graph(package: str, modules: int, imports: int, layers: int) -> Iterator[Line]:
    """Yield how many modules a package has, how many pairs import each other, and how many layers they stand in.

    A folder counts as one module, and so does the package's own `__init__`. In layers, cycles count as none.
    """
    graph = grimp.build_graph("prefmh_web", "sampler", cache_dir=None)
    depth = package.count(".") + 2
    edges: set[tuple[str, str]] = set()
    rooms: set[str] = set()
    of_root = graph.find_modules_directly_imported_by(package) | set(_imports_of_stub(package))
    root = {package} if of_root else set()
    for module in root | graph.find_descendants(package):
        if "migrations" in module:
            continue
        mine = ".".join(module.split(".")[:depth])
        rooms.add(mine)
        for imported in of_root if module == package else graph.find_modules_directly_imported_by(module):
            other = ".".join(imported.split(".")[:depth])
            if imported.startswith(f"{package}.") and other != mine:
                edges.add((mine, other))
    yield Line(f"{package}: modules", str(len(rooms)), f"at most {modules}", len(rooms) <= modules)
    yield Line(f"{package}: imports between them", str(len(edges)), f"at most {imports}", len(edges) <= imports)
    deep = _layers(rooms - {package}, {edge for edge in edges if package not in edge})
    yield Line(f"{package}: layers", str(deep or "a cycle"), f"at most {layers}", 0 < deep <= layers)


def _imports_of_stub(package: str) -> Iterator[str]:
    """Yield the modules that the package's `__init__.pyi` imports; graphs are made of the `.py` files only."""
    stub = ROOT / package.replace(".", "/") / "__init__.pyi"
    if not stub.exists():
        return
    for node in ast.walk(_tree(stub)):
        if isinstance(node, ast.ImportFrom):
            yield from [f"{package}.{node.module or name.name}" for name in node.names]


def _layers(rooms: Iterable[str], edges: set[tuple[str, str]]) -> int:
    """Return the length of the longest chain of imports; 0 where they go round."""
    below = {room: {other for mine, other in edges if mine == room} for room in rooms}
    heights: dict[str, int] = {}
    while len(heights) < len(below):
        ready = [room for room in below if room not in heights and below[room] <= heights.keys()]
        if not ready:
            return 0
        heights |= {room: 1 + max((heights[other] for other in below[room]), default=0) for room in ready}
    return max(heights.values())


def _tests_of_no_root_module() -> Iterator[str]:
    roots = {path.stem for path in SAMPLER.glob("*.py")}
    for path in sorted((ROOT / "tests/sampler").glob("test_*.py")):
        name = path.stem.removeprefix("test_")
        if not any(name == root or name.startswith(f"{root}_") for root in roots):
            yield path.name


def _test_functions() -> Iterator[ast.AST]:
    for path in (ROOT / "tests").rglob("test_*.py"):
        for node in ast.walk(_tree(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
                yield node


def _statements_a_vote() -> Iterator[Line]:
    """Yield what the test of query counts holds each vote to."""
    tree = _tree(ROOT / "tests/campaigns/engine/test_query_counts.py")
    [pinned] = [
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "PER_VOTE"
    ]
    for budget, before in _STATEMENTS_BEFORE.items():
        now = max(pinned[budget])
        yield Line(f"statements a vote, N = {budget}", str(now), f"at most {before}", now <= before)


@cache
def _pyproject() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def main() -> int:
    """Print every measure; return 1 if a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print JSON")
    as_json = parser.parse_args().json
    found = list(lines())
    if as_json:
        print(json.dumps([asdict(line) for line in found], indent=2))
    else:
        for line in found:
            print(f"{'ok  ' if line.holds else 'MISS'} {line.measure}: {line.found} (target: {line.target})")
    return 0 if all(line.holds for line in found) else 1


if __name__ == "__main__":
    sys.exit(main())
