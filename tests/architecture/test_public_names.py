"""The sampler's public names: all there, and loaded only once they are used."""

import ast
import subprocess
import sys
from pathlib import Path

import sampler

ROOT = Path(__file__).parents[2]
STUB = ast.parse((ROOT / "sampler/__init__.pyi").read_text())


def test_what_type_checkers_see_is_what_there_is():
    seen = [alias.name for node in STUB.body if isinstance(node, ast.ImportFrom) for alias in node.names]
    assert set(seen) == set(sampler.__all__) == set(dir(sampler))
    assert all(getattr(sampler, name) is getattr(sampler, name) for name in seen)


def test_no_function_has_the_name_of_a_module():
    """Whoever imports the module would put it in the function's place."""
    assert set(sampler.__all__) & {path.stem for path in (ROOT / "sampler").iterdir()} == {"diagnostics"}


def test_commands_start_without_the_large_libraries():
    """Importing them takes longer than Django does, and `doctor` has two seconds."""
    told = python(
        "import sys, django; django.setup(); import prefmh_web.management.commands.doctor;"
        "print({'rdkit', 'scipy', 'sklearn', 'matplotlib', 'torch'} & set(sys.modules))"
    )
    assert told == "set()"


def test_processes_that_serve_load_everything_before_the_first_request():
    told = python("import sys, prefmh_web.asgi; print({'rdkit', 'scipy'} - set(sys.modules))")
    assert told == "set()"


def python(code: str) -> str:
    variables = {"DJANGO_SETTINGS_MODULE": "prefmh_web.settings", "PATH": "/usr/bin:/bin"}
    ended = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=variables, capture_output=True, text=True, check=True
    )
    return ended.stdout.strip()
