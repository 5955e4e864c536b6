"""What installing the program brings, and how far ahead it trusts its libraries."""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = tomllib.loads((ROOT / "pyproject.toml").read_text())
EXTRAS = PACKAGE["project"]["optional-dependencies"]
NEEDED = [Requirement(each) for each in PACKAGE["project"]["dependencies"]]
OURS = ("prefmh_web", "sampler")


def test_the_main_command_installs_no_group_of_the_developers():
    assert PACKAGE["tool"]["uv"].get("default-groups", ["dev"]) == []


def test_the_readme_and_the_checks_ask_for_the_developers_tools_by_name():
    tools = re.compile(
        r"uv run (?!--)(?:python -m (?:tests|sampler)|pytest|ruff|mypy|lint-imports)|uv sync --quiet$", re.M
    )
    for path in (ROOT / "README.md", *(ROOT / ".ci").iterdir(), *(ROOT / "docker").iterdir()):
        assert not tools.findall(path.read_text()), path


@pytest.mark.parametrize("wanted", [*NEEDED, *(Requirement(each) for name in EXTRAS for each in EXTRAS[name])], ids=str)
def test_each_library_has_an_upper_bound(wanted):
    assert any(each.operator in ("<", "<=", "==", "~=") for each in wanted.specifier), f"{wanted} has none"


def test_the_main_install_holds_every_library_that_our_code_imports():
    provided = _with_what_they_need({canonicalize_name(each.name) for each in NEEDED})
    # Loaded where several processes share a PostgreSQL and a Redis, which the extra `server` is for.
    on_a_server = {"transport/layers.py", "transport/shared_redis.py", "transport/postgresql/base.py"}
    owners = packages_distributions()
    missing = {
        f"{path.relative_to(ROOT)}: {module}"
        for package in OURS
        for path in (ROOT / package).rglob("*.py")
        if path.relative_to(ROOT / package).as_posix() not in on_a_server
        for module in _imported(path)
        if module not in (*OURS, *sys.stdlib_module_names)
        and not provided & {canonicalize_name(owner) for owner in owners.get(module, ())}
    }
    assert not missing


def _imported(path: Path) -> Iterator[str]:
    """Yield the top-level modules that a file names in import statements, in functions too.

    What an extra brings is imported by name, through `analysis_library` and `needs`, which say how to install it; what
    only type checkers see is imported by nobody.
    """
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            node.body = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (each.name.partition(".")[0] for each in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield node.module.partition(".")[0]


def _with_what_they_need(names: set[str]) -> set[str]:
    found, left = set(), set(names)
    while left:
        name = left.pop()
        found.add(name)
        needs = [Requirement(each) for each in requires(name) or ()]
        left |= {
            canonicalize_name(each.name) for each in needs if each.marker is None or each.marker.evaluate({"extra": ""})
        } - found
    return found
