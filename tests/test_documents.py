"""What the documents promise: a short README, links that lead somewhere, a citation file that tools can read."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = sorted([ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").glob("*.md")])
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.+)$", re.M)


def test_the_readme_has_at_most_800_words():
    assert len((ROOT / "README.md").read_text().split()) <= 800


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_link_within_the_project_leads_somewhere(document):
    links = [link for link in _LINK.findall(document.read_text()) if "://" not in link]
    assert [link for link in links if not _leads_somewhere(document, link)] == []


def test_the_citation_file_follows_its_format():
    checked = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.citation-file-format"]
    told = subprocess.run([*checked, "CITATION.cff"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert told.returncode == 0, told.stdout


def _leads_somewhere(document: Path, link: str) -> bool:
    path, _, anchor = link.partition("#")
    target = document.parent / path if path else document
    return target.exists() and (not anchor or anchor in map(_anchor, _HEADING.findall(target.read_text())))


def _anchor(heading: str) -> str:
    """Return the anchor that GitHub gives a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


@pytest.mark.parametrize(
    "script", [path for path in (ROOT / ".ci").iterdir() if path.is_file()], ids=lambda path: path.name
)
def test_what_ci_runs_is_there(script):
    named = re.findall(r"(?<=\s)tests/[\w/]+(?:\.py)?", script.read_text())
    assert [path for path in named if not (ROOT / path).exists()] == []
