"""manage.py campaign: a campaign from its file, and what becomes of it."""

from __future__ import annotations

import json
import time
from argparse import ArgumentParser
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import User
from django.core.files.base import File
from django.core.management.base import BaseCommand, CommandError

from prefmh_web import config_files, drafts
from prefmh_web.campaigns import lifecycle
from prefmh_web.campaigns.lifecycle import changes
from prefmh_web.campaigns.models import Campaign, Catalog
from prefmh_web.config import json_schema, settings_page
from prefmh_web.config_yaml import Problem, SetupError
from prefmh_web.transport import sockets

_REFUSED, _UNUSABLE = 1, 2
_LOOK_EVERY_S = 0.2
_LAST_WAIT_S = 3.0
_LONGEST_KEY = 100


class Command(BaseCommand):
    """Exits with 0 when it is done, 1 when the setup or the campaign's state does not allow it, 2 for wrong usage."""

    help = "Check a campaign's file, create the campaign, start, pause, resume, extend and export it."

    def add_arguments(self, parser: ArgumentParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
        for name, told in (("check", "say what is wrong with FILE"), ("create", "create a draft and print its number")):
            action = actions.add_parser(name, help=told)
            action.add_argument("file", type=Path, metavar="FILE", help="campaign.yaml, or a ZIP with it")
            if name == "check":
                told = (
                    "whose endpoints and campaigns it may name (default: that is not checked, and no database needed)"
                )
                action.add_argument("--owner", help=told)
            if name == "create":
                action.add_argument("--owner", default="researcher", help="whose campaign it is (default: researcher)")
                told = "for the file to be read, at most (default: 600)"
                action.add_argument("--wait", type=float, default=600, metavar="SECONDS", help=told)
                action.add_argument("--once", default="", metavar="KEY", help="create one campaign only under this key")
        for name in ("start", "pause", "resume", "extend", "export"):
            action = actions.add_parser(name, help=f"{name} a campaign")
            action.add_argument("number", type=int, metavar="NUMBER", help="as create has printed it")
            if name == "start":
                action.add_argument("--wait", type=float, default=600, metavar="SECONDS", help="at most (default: 600)")
            if name == "extend":
                action.add_argument("--steps", type=int, required=True, help="so many more for each chain")
            if name == "export":
                told = "write the setup there, with the uploaded file as a ZIP; otherwise campaign.yaml is printed"
                action.add_argument("--out", type=Path, metavar="FILE", help=told)
        actions.add_parser("schema", help="print the JSON Schema of campaign.yaml")
        actions.add_parser("settings", help="print every setting as a page of Markdown")
        for action in actions.choices.values():
            action.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **given: Any) -> None:
        with self._reported(given):
            done: Callable[[dict[str, Any]], dict[str, Any]] = getattr(self, f"_{given['action']}")
            told = done(given)
            sockets.wait_until_sent(_LAST_WAIT_S)
            if given["json"] and told:
                self.stdout.write(json.dumps({"ok": True, **told}))

    def _check(self, given: dict[str, Any]) -> dict[str, Any]:
        owner = _owner(given["owner"]) if given["owner"] else None
        missing: list[Problem] = []
        path = given["file"]
        with path.open("rb") as file, config_files.opened(file, path.parent, missing.append, owner) as (setup, _):
            warnings = self._warned([*map(str, missing), *(drafts.warnings(setup, owner) if owner else ())])
        self._say(given, f"{given['file']}: nothing is wrong.")
        return {"name": setup.name, "warnings": warnings}

    def _create(self, given: dict[str, Any]) -> dict[str, Any]:
        owner, key = _owner(given["owner"]), given["once"]
        if len(key) > _LONGEST_KEY:
            raise CommandError(f"--once: a key has at most {_LONGEST_KEY} characters", returncode=_UNUSABLE)
        path = given["file"]
        with path.open("rb") as file, config_files.opened(file, path.parent, owner=owner) as (setup, uploaded):
            warnings = self._warned(drafts.warnings(setup, owner))
            is_new = not (key and Campaign.objects.filter(owner=owner, creation_key=key).exists())
            campaign = drafts.create(setup, owner, None if uploaded is None else File(uploaded), key=key)
        self._say(given, str(campaign.pk))
        _wait_for_file(campaign, time.monotonic() + given["wait"])
        if refusal := Catalog.objects.filter(campaign=campaign, status=Catalog.Status.REFUSED).first():
            raise lifecycle.NotPossible(
                f"Campaign {campaign.pk} is created, but its file gave no objects: {refusal.error}"
            )
        return {"campaign": campaign.pk, "created": is_new, "warnings": warnings}

    def _start(self, given: dict[str, Any]) -> dict[str, Any]:
        campaign, until = _campaign(given), time.monotonic() + given["wait"]
        _wait_for_file(campaign, until)
        lifecycle.request_start(campaign)
        campaign.refresh_from_db()
        # Where models are asked first, a worker starts it: in one process a thread of this command.
        while campaign.is_draft:
            if campaign.start_trouble and campaign.starting_since is None:
                raise lifecycle.NotPossible(campaign.start_trouble)
            if time.monotonic() >= until:
                raise lifecycle.NotPossible(f"It is still being started: {campaign.start_progress}.")
            time.sleep(_LOOK_EVERY_S)
            campaign.refresh_from_db()
        return self._status(given, campaign)

    def _pause(self, given: dict[str, Any]) -> dict[str, Any]:
        campaign = _campaign(given)
        lifecycle.pause(campaign)
        return self._status(given, campaign)

    def _resume(self, given: dict[str, Any]) -> dict[str, Any]:
        campaign = _campaign(given)
        lifecycle.resume(campaign)
        return self._status(given, campaign)

    def _extend(self, given: dict[str, Any]) -> dict[str, Any]:
        campaign = _campaign(given)
        changes.extend(campaign, given["steps"])
        return self._status(given, campaign) | {"steps": campaign.config.steps}

    def _export(self, given: dict[str, Any]) -> dict[str, Any]:
        campaign, out = _campaign(given), given["out"]
        if out is None:
            self.stdout.write(config_files.text_of(config_files.config_of(campaign)), ending="")
            return {}
        ending, pieces = config_files.write(campaign)
        if out.suffix != ending:
            raise CommandError(f"--out: the file of this campaign must end with {ending}", returncode=_UNUSABLE)
        unfinished = out.with_name(f"{out.name}.part")
        with unfinished.open("wb") as file:
            file.writelines(pieces)
        unfinished.replace(out)
        self._say(given, str(out))
        return {"campaign": campaign.pk, "file": str(out)}

    def _schema(self, _given: dict[str, Any]) -> dict[str, Any]:
        self.stdout.write(json.dumps(json_schema(), indent=2, ensure_ascii=False))
        return {}

    def _settings(self, _given: dict[str, Any]) -> dict[str, Any]:
        self.stdout.write(settings_page(), ending="")
        return {}

    def _status(self, given: dict[str, Any], campaign: Campaign) -> dict[str, Any]:
        self._say(given, f"Campaign {campaign.pk} is {campaign.status}.")
        return {"campaign": campaign.pk, "status": str(campaign.status)}

    def _warned(self, told: Iterable[str]) -> list[str]:
        found = list(told)
        for each in found:
            self.stderr.write(f"Warning: {each}")
        return found

    def _say(self, given: dict[str, Any], text: str) -> None:
        if not given["json"]:
            self.stdout.write(text)

    @contextmanager
    def _reported(self, given: dict[str, Any]) -> Iterator[None]:
        """Turn what went wrong into a message and the exit status that says of which kind it is."""
        try:
            yield
        except SetupError as error:
            lines = [str(each) for each in error.problems]
            self._as_json(given, [vars(each) for each in error.problems])
            told = "\n".join(f"{given['file']}: {line}" for line in lines)
            raise CommandError(told, returncode=_REFUSED) from error
        except lifecycle.NotPossible as reason:
            self._as_json(given, [{"message": str(reason)}])
            raise CommandError(str(reason), returncode=_REFUSED) from reason
        except OSError as error:
            # Nothing names a pipe, or the file that a full disk does not take.
            where = error.filename or "a file or the output"
            raise CommandError(f"{where}: {error.strerror}", returncode=_UNUSABLE) from error

    def _as_json(self, given: dict[str, Any], problems: list[dict[str, Any]]) -> None:
        if given["json"]:
            self.stdout.write(json.dumps({"ok": False, "problems": problems}))


def _wait_for_file(campaign: Campaign, until: float) -> None:
    """Wait until the uploaded file has been read: in one process, a thread of this command reads it."""
    reading = Catalog.objects.filter(campaign=campaign, status=Catalog.Status.READING)
    while reading.exists() and time.monotonic() < until:
        time.sleep(_LOOK_EVERY_S)


def _owner(name: str) -> User:
    found = get_user_model().objects.filter(username=name).first()
    if found is None:
        raise CommandError(f"--owner: there is no account {name!r}; make one, or name another", returncode=_UNUSABLE)
    return found


def _campaign(given: dict[str, Any]) -> Campaign:
    found = Campaign.objects.filter(pk=given["number"]).first()
    if found is None:
        raise CommandError(f"there is no campaign {given['number']}", returncode=_UNUSABLE)
    return found
