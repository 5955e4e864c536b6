"""manage.py experiment: one of the paper's experiments, from its campaigns to its tables."""

from __future__ import annotations

import hashlib
import json
import subprocess
import time
from argparse import ArgumentParser
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError

import sampler
from prefmh_web.embedded import at_work, prepare_database
from prefmh_web.endpoints.models import Endpoint
from prefmh_web.experiments import campaigns, configs, evaluation, run, simulated
from prefmh_web.experiments.campaigns import QUALITY, Display, requests_in_all
from prefmh_web.scorers import Scorer, offered
from sampler import OptionError, outputs

_STATUSES: Mapping[type[Exception], int] = {
    run.RecordDiffers: 1,
    **dict.fromkeys((sampler.MissingExtra, OSError, ValueError), 2),
    campaigns.LimitReached: 3,
    campaigns.Blocked: 4,
}
_STAGES = {"run": run.sample, "evaluate": run.evaluate, "report": run.report}
_NUMBERS = ("steps", "burn-in", "keep", "prompts", "chains", "matches")
Inputs = Mapping[str, Sequence[sampler.ExperimentInput]]


class Command(BaseCommand):
    """Exits with 1 when a replay differs, 2 for options that cannot be met, 3 at the limit, 4 when something waits."""

    help = "Run one of the paper's experiments as campaigns, and evaluate it. Run again, it goes on."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("experiment", choices=tuple(sampler.EXPERIMENTS), help="which one")
        parser.add_argument("--out", type=Path, help="the folder of the run")
        parser.add_argument("--scale", choices=("laptop", "paper"), default="paper", help="the preset (default: paper)")
        parser.add_argument(
            "--methods", type=lambda text: text.split(","), help="rows of the table, separated by commas"
        )
        parser.add_argument("--seeds", type=_seeds, help="whole numbers, separated by commas")
        for name in _NUMBERS:
            parser.add_argument(f"--{name}", type=int, metavar="N", help="instead of the preset's")
        parser.add_argument(
            "--data",
            type=Path,
            metavar="FILE",
            help="the prompts, one a line; translation: a TSV of sentences; molecules: fragments, one a line",
        )
        parser.add_argument("--exact", action="store_true", help="add rows with the exact base ratio (molecules)")
        parser.add_argument("--votes", help="sampled (the default) or log-probabilities")
        parser.add_argument(
            "--endpoint", action="append", default=[], metavar="ROLE=NAME", help="who writes, judges and evaluates"
        )
        parser.add_argument(
            "--scorer", action="append", default=[], metavar="ROLE=NAME", help="what gives objects a number (SCORERS)"
        )
        parser.add_argument(
            "--simulated", action="store_true", help="let stand-ins that need no model have the roles not named"
        )
        parser.add_argument("--max-requests", type=int, metavar="N", help="stop before request N + 1")
        parser.add_argument("--stage", choices=tuple(_STAGES), help="only this stage (default: all)")
        parser.add_argument("--owner", default="researcher", help="whose endpoints and campaigns (default: researcher)")
        parser.add_argument("--dry-run", action="store_true", help="print the sums, and ask nothing")

    def handle(self, *args: Any, **given: Any) -> None:
        with _reported():
            content = given["data"].read_bytes() if given["data"] else None
            inputs = _inputs(given, content)
            options = _options(given, inputs)
            if given["dry_run"]:
                self._print_sums(options, given)
                return
            if given["stage"] in (None, "report"):
                sampler.check_report(options.experiment)
            if given["out"] is None:
                raise OptionError("--out", "must name the folder of the run")
            owner = _owner(given)
            with simulated.served(owner, options.of_experiment) if given["simulated"] else nullcontext():
                found = self._checked(given, owner, options, inputs, content)
                stages = [given["stage"]] if given["stage"] else _STAGES
                display = Display(self._say, time.monotonic, requests_in_all(found))
                with at_work() if settings.EMBEDDED else nullcontext():
                    for stage in stages:
                        _STAGES[stage](found, display)

    def _checked(
        self,
        given: Mapping[str, Any],
        owner: User,
        options: sampler.ExperimentOptions,
        inputs: Inputs,
        content: bytes | None,
    ) -> configs.Run:
        """Return the run, whose folder has its settings.json, once it is known that it can be run.

        Raises:
            OptionError, MissingExtra, ValueError: it cannot.
        """
        if options.experiment == "translation" and not inputs:
            raise OptionError("--data", "must name the file of sentences: the paper's are not in this program")
        roles, measures = simulated.names(options.of_experiment) if given["simulated"] else ({}, {})
        named = _roles(options, roles, given["endpoint"])
        scorers = _scorers(options, measures, given["scorer"])
        document = sampler.settings_document(
            options,
            inputs=inputs,
            models={role: _described(owner, options, role, name) for role, name in named.items()}
            | {role: ": ".join(scorer.description().values()) for role, scorer in scorers.items()},
            hashes={} if content is None else {"--data": hashlib.sha256(content).hexdigest()},
            commit=_commit(),
        )
        found = configs.Run(
            options, owner, given["out"], sampler.settings_hash(document), named, inputs, scorers,
            configs.vocabulary_in(given["data"] if options.experiment == "molecules" else None),
            given["max_requests"],
        )  # fmt: skip
        for part in found.parts:
            run.check(part)
        _settle(given["out"], document)
        return found

    def _say(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()

    def _print_sums(self, options: sampler.ExperimentOptions, given: Mapping[str, Any]) -> None:
        sums = sampler.planned_sums(options)
        roles, _ = simulated.names(options.of_experiment) if given["simulated"] else ({}, {})
        writer = {**roles, **_split("--endpoint", given["endpoint"], options.of_experiment.roles)}.get("writer", "")
        if not configs.is_asked(writer):
            del sums["writer_requests"]
        self.stdout.write(f"{options.of_experiment.title}, --scale {options.scale}")
        for method in ("all", *options.methods):
            counts = ", ".join(f"{counts[method]:,} {name.replace('_', ' ')}" for name, counts in sums.items())
            self.stdout.write(f"  {method:16} {counts}")
        for role in options.of_experiment.scorers:
            self.stdout.write(f"  scorer {role}: {sampler.planned_scores(options, role)['all']:,} objects")


def _owner(given: Mapping[str, Any]) -> User:
    """Return whose run it is.

    Raises:
        OptionError: there is no such account, or stand-ins are wanted that the site's workers could not ask.
    """
    if settings.EMBEDDED:
        prepare_database()
    elif given["simulated"]:
        raise OptionError("--simulated", "must be left out where DATABASE_URL is set: workers cannot ask this process")
    owner = User.objects.filter(username=given["owner"]).first()
    if owner is None:
        raise OptionError("--owner", f"must name an account; there is no {given['owner']!r}")
    return owner


def _seeds(text: str) -> list[int]:
    return [int(each) for each in text.split(",")]


def _options(given: Mapping[str, Any], inputs: Inputs) -> sampler.ExperimentOptions:
    names = ("methods", "seeds", "exact", "votes", *(name.replace("-", "_") for name in _NUMBERS))
    # Of stories, the prompts of this program are as many as the paper's.
    is_counted = inputs and (given["data"] or given["experiment"] == "translation")
    available = [len(each) for each in inputs.values()] if is_counted else None
    named = {name: given[name] for name in names}
    return sampler.ExperimentOptions.of(given["experiment"], given["scale"], available=available, **named)


def _inputs(given: Mapping[str, Any], content: bytes | None) -> Inputs:
    """Return the prompts by direction, with what is known of them; empty where there are none.

    Raises:
        OptionError: a file cannot be used.
    """
    experiment = given["experiment"]
    if experiment == "translation":
        if content is not None:
            return sampler.read_sentences(content, given["data"].name)
        # The paper's are not in this repository; their sums are.
        return {} if given["scale"] == "paper" else sampler.own_sentences()
    if experiment != "stories":
        return {}
    if content is None:
        return {"": [sampler.ExperimentInput(scenario.prompt) for scenario in sampler.STORY_SCENARIOS]}
    lines = outputs.text_in(content, given["data"].name).splitlines()
    return {"": [sampler.ExperimentInput(line.strip()) for line in lines if line.strip()]}


def _split(option: str, given: Sequence[str], roles: Sequence[str]) -> dict[str, str]:
    """Return names by role.

    Raises:
        OptionError: one is not ROLE=NAME, or of no such role.
    """
    found = {}
    for text in given:
        role, _, name = text.partition("=")
        if role not in roles or not name or role in found:
            known = ", ".join(roles) or "none"
            raise OptionError(option, f"must be ROLE=NAME, once for each role of {known}, not {text!r}")
        found[role] = name
    return found


def _roles(options: sampler.ExperimentOptions, simulated: Mapping[str, str], given: Sequence[str]) -> dict[str, str]:
    """Return who has each role that this run needs, by name: a stand-in where nobody is named."""
    experiment = options.of_experiment
    named = {**simulated, **_split("--endpoint", given, experiment.roles)}
    asked = [*(asked for method in options.chosen for asked in method.judges), *experiment.rated]
    needed = {each.role for each in (*asked, *(experiment.compared if options.matches else ()))}
    needed |= {"writer"} & set(experiment.roles)
    if lacking := sorted(needed - named.keys()):
        raise OptionError("--endpoint", f"must name who is the {' and the '.join(lacking)}")
    return {role: name for role, name in sorted(named.items()) if role in needed}


def _described(owner: User, options: sampler.ExperimentOptions, role: str, name: str) -> str:
    """Return what settings.json says of who has a role.

    Raises:
        OptionError: there is no such endpoint or image model, or it cannot do this.
    """
    if role == "writer" and (own := configs.described_writer(name, options.of_experiment.objects)):
        return own
    known = {each.name: each for each in Endpoint.objects.filter(owner=owner)}
    if name not in known:
        raise OptionError("--endpoint", f"{owner} has no endpoint {name!r}, but {', '.join(known) or 'none'}")
    if role == evaluation.DETECTOR:
        evaluation.check_detector(known[name])
    return f"{name}: {known[name].model}"


def _scorers(
    options: sampler.ExperimentOptions, simulated: Mapping[str, str], given: Sequence[str]
) -> dict[str, Scorer]:
    """Return the scorer of each role that is named or simulated."""
    experiment = options.of_experiment
    named = {**simulated, **_split("--scorer", given, experiment.scorers)}
    if QUALITY not in named and any(method.kind == "quest" for method in options.chosen):
        raise OptionError("--scorer", "must name who is the quality: QUEST goes by its numbers")
    there = offered(experiment.objects) if named else {}
    for name in named.values():
        if name not in there:
            known = ", ".join(sorted(there)) or "none"
            raise OptionError(
                "--scorer", f"must name a scorer that this site offers for {experiment.objects} ({known}), not "
                f"{name!r}; declare it in SCORERS",
            )  # fmt: skip
    return {role: there[name] for role, name in sorted(named.items())}


def _settle(folder: Path, document: dict[str, Any]) -> None:
    """Write settings.json, or check that the folder's is of this run.

    Raises:
        OptionError: it is not.
    """
    path = folder / outputs.SETTINGS
    if not path.exists():
        with outputs.replaced(path) as unfinished:
            unfinished.write_text(sampler.settings_text(document), encoding="utf-8")
        return
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise OptionError("--out", f"must be another folder: {path} cannot be read ({error})") from error
    if changed := sampler.changed_settings(stored, document):
        listed = "".join(f"\n  {each}" for each in changed)
        raise OptionError(
            "--out", f"must be another folder, or the settings the same: {folder} holds a run with{listed}"
        )


def _commit() -> str:
    found = subprocess.run(
        ["git", "rev-parse", "HEAD"],  # noqa: S607 - wherever git is
        cwd=settings.BASE_DIR, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return found.stdout.strip()


@contextmanager
def _reported() -> Iterator[None]:
    """Turn what went wrong into a message and the exit status that says of which kind it is."""
    try:
        yield
    except tuple(_STATUSES) as error:
        status = next(status for kind, status in _STATUSES.items() if isinstance(error, kind))
        raise CommandError(str(error), returncode=status) from error
