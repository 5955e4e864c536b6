"""Revisions of this repository: this one, or another one in a checkout and an environment of its own."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.support.installations import HERE, Checkout


@dataclass(frozen=True)
class Revision:
    """A commit, where its code lies, and whether that code has been changed since."""

    commit: str
    checkout: Checkout
    is_changed: bool


def this_one() -> Revision:
    """Return what lies here, changes that are not committed included."""
    return Revision(commit_of("HEAD"), HERE, bool(_git("status", "--porcelain").strip()))


def commit_of(name: str) -> str:
    """Return the full number of a commit."""
    return _git("rev-parse", "--verify", f"{name}^{{commit}}").decode().strip()


@contextlib.contextmanager
def checked_out(name: str, environments: Path | None) -> Iterator[Revision]:
    """Put a revision into a folder, with what its servers need; the folder goes afterwards.

    Args:
        name: whatever git takes for a commit.
        environments: a folder that keeps the environment, under the commit's number, for the next time.
    """
    commit = commit_of(name)
    with tempfile.TemporaryDirectory(prefix="prefmh-revision-") as folder:
        root = Path(folder) / "checkout"
        with tarfile.open(fileobj=io.BytesIO(_git("archive", commit))) as archive:
            _unpack(archive, root)
        environment = (environments.resolve() if environments else Path(folder)) / commit
        yield Revision(commit, Checkout(root, _python_with_its_needs(root, environment)), is_changed=False)


def _python_with_its_needs(root: Path, environment: Path) -> str:
    """Return the Python of an environment with what the Dockerfile of a revision installs, made unless it is there."""
    is_complete = environment / "is-complete"
    if not is_complete.exists():
        # The same Python as here; `prefmh` itself runs from its checkout.
        command = ["uv", "sync", "--quiet", "--no-dev", "--extra", "server", "--no-install-project"]
        own = {"UV_PROJECT_ENVIRONMENT": str(environment)}
        subprocess.run([*command, "--python", sys.executable], cwd=root, env=os.environ | own, check=True)
        is_complete.touch()
    return str(environment / "bin" / "python")


def _git(*command: str) -> bytes:
    return subprocess.run(["git", *command], cwd=HERE.root, stdout=subprocess.PIPE, check=True).stdout


def _unpack(archive: tarfile.TarFile, folder: Path) -> None:
    """Write what an archive of our own holds into a folder.

    Nothing is written outside of it from Python 3.11.4 on; earlier ones, as Debian 12 has, know no filters.
    """
    archive.extraction_filter = getattr(tarfile, "data_filter", lambda member, _: member)
    archive.extractall(folder)
