"""`manage.py experiment` on a site of its own: an account that has endpoints, and commands that can be killed."""

from __future__ import annotations

import csv
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_OWNER = """
import sys
import django
django.setup()
from django.core.management import call_command
call_command("migrate", verbosity=0)
from django.contrib.auth.models import User
from prefmh_web.endpoints.models import Endpoint
owner = User.objects.create(username="researcher")
url, dialect, *names = sys.argv[1:]
for name in names:
    Endpoint.objects.create(owner=owner, name=name, base_url=url, model=name, dialect=dialect)
"""
ROLES = ("writer", "judge", "evaluator")


@dataclass(frozen=True)
class Site:
    """A data folder with the account `researcher`, who has an endpoint of each role's name.

    Args:
        folder: empty; the run's own folder is `out` in it.
        options: of each command, the experiment's name first.
        roles: who has each role.
        also: further settings of the site.
    """

    folder: Path
    options: Sequence[str]
    roles: Mapping[str, str] = field(default_factory=lambda: {role: role for role in ROLES})
    also: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def made(cls, folder: Path, url: str, dialect: str, options: Sequence[str], **given: Mapping[str, str]) -> Site:
        """Make the account and its endpoints, which share a server."""
        site = cls(folder, options, **given)
        subprocess.run(
            [sys.executable, "-c", _OWNER, url, dialect, *site.roles.values()],
            cwd=ROOT, env=site.environment, check=True, timeout=300,
        )  # fmt: skip
        return site

    @property
    def out(self) -> Path:
        return self.folder / "out"

    @property
    def database(self) -> Path:
        return self.folder / "data" / "prefmh.sqlite3"

    @property
    def environment(self) -> dict[str, str]:
        allowed = {"ENDPOINT_ALLOWED_HOSTS": "127.0.0.1", "ENDPOINT_ALLOW_PRIVATE": "127.0.0.1/32"}
        settings = {"PREFMH_DATA": str(self.folder / "data"), "DJANGO_SETTINGS_MODULE": "prefmh_web.settings"}
        return {**os.environ, **allowed, **settings, **self.also}

    def command(self, *more: str) -> list[str]:
        roles = [f"--endpoint={role}={name}" for role, name in self.roles.items()]
        return [sys.executable, "manage.py", "experiment", *self.options, "--out", str(self.out), *roles, *more]

    def run(self, *more: str) -> subprocess.CompletedProcess[str]:
        """Run the command to its end."""
        return subprocess.run(
            self.command(*more),
            cwd=ROOT,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=500,
            check=False,
        )

    def python(self, *arguments: str, environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
        """Run a program of this project to its end, in an environment that need not be the site's."""
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            timeout=500,
            check=False,
        )

    def begin(self) -> subprocess.Popen[bytes]:
        """Begin the command, in a process group of its own."""
        with (self.folder / "command.log").open("ab") as log:
            return subprocess.Popen(
                self.command(), cwd=ROOT, env=self.environment, stdout=log, stderr=log, start_new_session=True
            )

    def rows(self, path: str) -> list[dict[str, str]]:
        """Read a table of the run."""
        with (self.out / path).open(newline="") as file:
            return list(csv.DictReader(file))


def kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a command and its children, as a machine that goes down does."""
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
