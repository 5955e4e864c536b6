"""manage.py experiment: one of the paper's experiments, from its campaigns to its tables."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import time
from argparse import ArgumentParser
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Literal

from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError

import sampler
from prefmh_web.embedded.serving import at_work, prepare_database
from prefmh_web.endpoints.models import Endpoint
from prefmh_web.experiments import campaigns, configs, evaluation, progress, run, scoring
from prefmh_web.experiments.configs import CONFIGS, vocabulary_in
from prefmh_web.scorers import Scorer
from sampler import judges

_DIFFERS, _UNUSABLE, _LIMIT, _BLOCKED = 1, 2, 3, 4
_STAGES = ("run", "evaluate", "report")
Inputs = Mapping[str, Sequence[sampler.ExperimentInput]]
_NUMBERS = ("steps", "burn-in", "keep", "prompts", "chains", "limit", "matches")


class Command(BaseCommand):
    """Exits with 1 when a replay differs, 2 for options that cannot be met, 3 at the limit, 4 when something waits."""

    help = "Run one of the paper's experiments as campaigns, and evaluate it. Run again, it goes on."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("experiment", choices=tuple(sampler.EXPERIMENTS), help="which one")
        parser.add_argument("--out", type=Path, help="the folder of the run")
        parser.add_argument("--scale", choices=("laptop", "paper"), default="paper", help="the preset (default: paper)")
        parser.add_argument("--methods", help="rows of the table, separated by commas")
        parser.add_argument("--seeds", help="whole numbers, separated by commas")
        for name in _NUMBERS:
            parser.add_argument(f"--{name}", type=int, metavar="N", help="instead of the preset's")
        parser.add_argument(
            "--data",
            type=Path,
            metavar="FILE",
            help="the prompts, one a line; translation: a TSV of sentences; molecules: fragments, one a line",
        )
        parser.add_argument("--exact", action="store_true", help="add rows with the exact base ratio (molecules)")
        parser.add_argument("--votes", default="sampled", help="sampled (the default) or log-probabilities")
        parser.add_argument("--evaluator-votes", default="sampled", help="the same, of the tournament")
        parser.add_argument(
            "--endpoint", action="append", default=[], metavar="ROLE=NAME", help="who writes, judges and evaluates"
        )
        parser.add_argument(
            "--scorer", action="append", default=[], metavar="ROLE=NAME", help="what gives objects a number (SCORERS)"
        )
        parser.add_argument("--max-requests", type=int, metavar="N", help="stop before request N + 1")
        parser.add_argument("--stage", choices=_STAGES, help="only this stage (default: all)")
        parser.add_argument("--owner", default="researcher", help="whose endpoints and campaigns (default: researcher)")
        parser.add_argument("--dry-run", action="store_true", help="print configs and sums, and ask nothing")
        parser.add_argument("--json", action="store_true", help="with --dry-run: the sums as one JSON object")

    def handle(self, *args: Any, **given: Any) -> None:
        with _reported():
            inputs, hashes = _inputs(given)
            options = _options(given, inputs)
            if given["dry_run"]:
                self._print_sums(options, as_json=given["json"])
                return
            self._run(given, options, inputs, hashes)

    def _run(
        self,
        given: Mapping[str, Any],
        options: sampler.ExperimentOptions,
        inputs: Inputs,
        hashes: Mapping[str, str],
    ) -> None:
        _check_out(given)
        if options.experiment == "translation" and not inputs:
            raise sampler.OptionError("--data", "must name the file of sentences: the paper's are not in this program")
        owner = _owner(given["owner"])
        named = _named(options, given["endpoint"])
        endpoints = {role: _endpoint(owner, name) for role, name in named.items() if not _is_made_here(role, options)}
        if evaluation.DETECTOR in endpoints:
            evaluation.check_detector(endpoints[evaluation.DETECTOR])
        if "evaluator" in endpoints:
            evaluation.check_votes(endpoints["evaluator"], options.evaluator_votes)
        scorers = _scorers(options, given["scorer"])
        document = sampler.settings_document(
            options,
            {name: judges.PRESETS[name].template.model_dump(mode="json") for name in sampler.preset_names(options)},
            inputs=inputs,
            models={role: configs.described_image_model(name) for role, name in named.items() if role not in endpoints}
            | {role: f"{each.name}: {each.model}" for role, each in endpoints.items()}
            | {role: scoring.described(each) for role, each in scorers.items()},
            hashes=hashes,
            commit=_commit(),
        )
        prompts = {name: [each.prompt for each in of_one] for name, of_one in inputs.items()}
        settings_hash = sampler.settings_hash(document)
        most, arms = given["max_requests"], _vocabulary(given)
        found = run.Run(options, owner, given["out"], settings_hash, named, prompts, most, scorers, arms)
        for part in found.parts():
            run.check(part)
        campaigns.settle(given["out"], document)
        with _at_work(), self._display(partial(progress.lines, options)) as display:
            for stage, work in (("run", run.sample), ("evaluate", run.evaluate), ("report", run.report)):
                if given["stage"] in (None, stage):
                    work(found, display)

    @contextmanager
    def _display(self, foretell: progress.Foretell = lambda rate: ()) -> Iterator[progress.Display]:
        """Show progress while the block runs."""

        def write(text: str) -> None:
            self.stdout.write(text, ending="")
            self.stdout.flush()

        columns = shutil.get_terminal_size().columns if self.stdout.isatty() else None
        display = progress.Display(write, time.monotonic, columns, foretell)
        try:
            yield display
        finally:
            display.end()

    def _print_sums(self, options: sampler.ExperimentOptions, *, as_json: bool) -> None:
        sums = sampler.planned_sums(options)
        if as_json:
            self.stdout.write(json.dumps(sums))
            return
        self.stdout.write(f"{options.of_experiment.title}, --scale {options.scale}")
        for method in ("all", *options.methods):
            counts = ", ".join(f"{counts[method]:,} {name.replace('_', ' ')}" for name, counts in sums.items())
            self.stdout.write(f"  {method:16} {counts}")
        for role, passes in sampler.scorer_passes(options).items():
            self.stdout.write(f"  scorer {role}: {passes:,} objects")


def _check_out(given: Mapping[str, Any]) -> None:
    if given["out"] is None:
        raise CommandError("--out must name the folder of the run", returncode=_UNUSABLE)
    if settings.EMBEDDED:
        prepare_database()


def _options(given: Mapping[str, Any], inputs: Inputs) -> sampler.ExperimentOptions:
    numbers = {name.replace("-", "_"): given[name.replace("-", "_")] for name in _NUMBERS}
    return sampler.ExperimentOptions.of(
        given["experiment"],
        given["scale"],
        methods=None if given["methods"] is None else given["methods"].split(","),
        seeds=None if given["seeds"] is None else _whole_numbers("--seeds", given["seeds"]),
        exact=given["exact"],
        votes=given["votes"],
        evaluator_votes=given["evaluator_votes"],
        available=[len(each) for each in inputs.values()] if inputs and (given["data"] or _is_own_set(given)) else None,
        **numbers,
    )


def _is_own_set(given: Mapping[str, Any]) -> bool:
    """Say whether a run takes sentences of our own, of which there are fewer than of the paper's."""
    return bool(given["experiment"] == "translation" and given["data"] is None and given["scale"] != "paper")


def _whole_numbers(option: str, text: str) -> list[int]:
    if not all(each.strip().isdigit() for each in text.split(",")):
        raise CommandError(f"{option} must be whole numbers with commas between, not {text!r}", returncode=_UNUSABLE)
    return [int(each) for each in text.split(",")]


def _inputs(given: Mapping[str, Any]) -> tuple[Inputs, dict[str, str]]:
    """Return the prompts by direction, with what is known of them, and the hashes of files.

    Raises:
        OptionError: a file cannot be used.
    """
    experiment, path = given["experiment"], given["data"]
    content = None if path is None else path.read_bytes()
    hashes = {} if content is None else {"--data": hashlib.sha256(content).hexdigest()}
    if experiment == "translation":
        if content is not None:
            return sampler.read_sentences(content, path.name), hashes
        # The paper's are not in this repository; their sums are.
        return ({} if given["scale"] == "paper" else sampler.own_sentences()), {}
    if experiment == "molecules":
        _vocabulary(given)
        return {}, hashes
    if content is not None:
        lines = [line.strip() for line in content.decode("utf-8").splitlines() if line.strip()]
        return {"": [sampler.ExperimentInput(line) for line in lines]}, hashes
    if experiment == "stories":
        return {"": [sampler.ExperimentInput(scenario.prompt) for scenario in sampler.STORY_SCENARIOS]}, {}
    return {}, {}


def _vocabulary(given: Mapping[str, Any]) -> Literal["default"] | tuple[str, ...]:
    """Return the fragments of an experiment on molecules.

    Raises:
        OptionError: the file cannot be used.
    """
    has_own = given["experiment"] == "molecules" and given["data"] is not None
    return vocabulary_in(given["data"]) if has_own else "default"


def _owner(name: str) -> User:
    found = get_user_model().objects.filter(username=name).first()
    if found is None:
        raise CommandError(f"--owner: there is no account {name!r}; make one, or name another", returncode=_UNUSABLE)
    return found


def _named(options: sampler.ExperimentOptions, given: Sequence[str]) -> dict[str, str]:
    """Return who has each role that this run needs, by name."""
    experiment = options.of_experiment
    if experiment.name not in CONFIGS:
        raise CommandError(
            f"{experiment.name} cannot be run by this version, which has {' and '.join(sorted(CONFIGS))}; --dry-run "
            "prints its sums",
            returncode=_UNUSABLE,
        )
    named = dict(_role(each, experiment) for each in given)
    needed = {asked.role for method in options.chosen for asked in method.judges}
    needed |= {asked.role for asked in experiment.rated}
    if options.matches:
        needed |= {asked.role for asked in experiment.compared}
    if "writer" in experiment.roles:
        needed.add("writer")
    if lacking := sorted(needed - named.keys()):
        raise CommandError(f"--endpoint must name who is the {' and the '.join(lacking)}", returncode=_UNUSABLE)
    return {role: name for role, name in sorted(named.items()) if role in needed}


def _is_made_here(role: str, options: sampler.ExperimentOptions) -> bool:
    """Say whether a role is no endpoint's: pictures are made by a model of this site."""
    return role == "writer" and options.of_experiment.objects == "images"


def _role(text: str, experiment: sampler.Experiment) -> tuple[str, str]:
    role, _, name = text.partition("=")
    if role not in experiment.roles or not name:
        roles = ", ".join(experiment.roles)
        raise CommandError(f"--endpoint must be ROLE=NAME with a role of {roles}, not {text!r}", returncode=_UNUSABLE)
    return role, name


def _scorers(options: sampler.ExperimentOptions, given: Sequence[str]) -> dict[str, Scorer]:
    """Return the scorer of each role that is named."""
    named: dict[str, str] = {}
    for text in given:
        role, _, name = text.partition("=")
        if not name or role in named:
            raise CommandError(f"--scorer must be ROLE=NAME, once for each role, not {text!r}", returncode=_UNUSABLE)
        named[role] = name
    if scoring.QUALITY not in named and any(method.rule == "quest" for method in options.chosen):
        raise CommandError("--scorer must name who is the quality: QUEST goes by its numbers", returncode=_UNUSABLE)
    return scoring.found(options.of_experiment, named)


def _endpoint(owner: User, name: str) -> Endpoint:
    found = Endpoint.objects.filter(owner=owner, name=name).first()
    if found is None:
        known = ", ".join(Endpoint.objects.filter(owner=owner).values_list("name", flat=True)) or "none"
        raise CommandError(f"--endpoint: {owner} has no endpoint {name!r}, but {known}", returncode=_UNUSABLE)
    return found


def _commit() -> str:
    found = subprocess.run(
        ["git", "rev-parse", "HEAD"],  # noqa: S607 - wherever git is
        cwd=settings.BASE_DIR, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return found.stdout.strip()


@contextmanager
def _at_work() -> Iterator[None]:
    """Do the work of tasks here where this is all there is; on servers it is done elsewhere, and this only waits."""
    if not settings.EMBEDDED:
        yield
        return
    with at_work():
        yield


@contextmanager
def _reported() -> Iterator[None]:
    """Turn what went wrong into a message and the exit status that says of which kind it is."""
    try:
        yield
    except run.RecordDiffers as error:
        raise CommandError(str(error), returncode=_DIFFERS) from error
    except (sampler.OptionError, sampler.MissingExtra, campaigns.OtherSettings, OSError, ValueError) as error:
        raise CommandError(str(error), returncode=_UNUSABLE) from error
    except campaigns.LimitReached as error:
        raise CommandError(
            "--max-requests is reached; run the same command with a higher number to go on", returncode=_LIMIT
        ) from error
    except campaigns.Blocked as error:
        raise CommandError(str(error), returncode=_BLOCKED) from error
