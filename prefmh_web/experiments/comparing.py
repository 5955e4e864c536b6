"""`manage.py experiment compare`: records of any campaigns against each other, with a model voting blind.

Which states meet follows from the records (`sampler/experiments/comparing.py`). Votes are asked for, stored and counted
like those of an evaluation. The voter gets the question and two objects: no name of a file, record or method.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any

from django.contrib.auth.models import User
from django.db.models import Sum

import sampler
from prefmh_web.endpoints import judge_calls
from prefmh_web.endpoints.models import Endpoint
from prefmh_web.experiments import calls, evaluation, folder, standing
from prefmh_web.experiments.given_pictures import GivenPictures, given_pictures
from prefmh_web.experiments.models import EvaluationAnswer
from prefmh_web.experiments.progress import Display
from prefmh_web.experiments.voting import Voting
from prefmh_web.objects import OBJECT_KINDS, StoredObject
from sampler import judges

COMPARE = sampler.COMPARE
ROLE = "judge"
_PRESET = "own"
_TAKEN = {
    "experiment", "records", "question", "out", "matches", "endpoint", "max_requests", "owner", "dry_run", "json",
    "evaluator_votes", "people", "answers",
}  # fmt: skip
outputs = sampler.outputs


@dataclass(frozen=True)
class Comparing:
    """One comparison of records: an `Asking` of `evaluation`.

    Args:
        records: what meets.
        question: which the voter answers about each pair.
        owner: of the endpoint.
        evaluator: who votes.
        out: the folder.
        commit: of this project.
        most_requests: how many it may have taken in all, those of earlier runs included.
        source: how votes are asked for.
    """

    records: sampler.ComparedRecords
    question: str
    owner: User
    evaluator: Endpoint
    out: Path
    commit: str = ""
    most_requests: int | None = None
    source: sampler.VoteSource = "sampled"

    @cached_property
    def document(self) -> dict[str, Any]:
        """What settings.json holds."""
        judge = f"{self.evaluator.name}: {self.evaluator.model}"
        words = self.prompt.template.model_dump(mode="json")
        return sampler.comparison_document(self.records, self.question, words, judge, self.commit, self.source)

    @cached_property
    def settings(self) -> str:
        """The hash of settings.json."""
        return sampler.settings_hash(self.document)

    @property
    def prompt(self) -> judges.OwnPrompt:
        """The words around the objects."""
        return judges.OwnPrompt(judges.PRESETS[_PRESET].template, self.question)

    @property
    def answers(self) -> Any:
        """The rows of this comparison."""
        return EvaluationAnswer.objects.filter(owner=self.owner, settings=self.settings)

    @property
    def requests(self) -> int:
        """How many requests it has taken."""
        return self.answers.aggregate(all=Sum("requests"))["all"] or 0

    def run(self, display: Display) -> None:
        """Ask for every vote that is missing, and write all files.

        Raises:
            OptionError: the voter cannot see what the records hold.
            RecordError: a record has no pictures, or one that cannot be used.
            OtherSettings: the folder holds something else.
            Blocked, LimitReached: as `evaluation.ask_missing`.
        """
        _check_shown(self.records.kind, self.evaluator)
        with given_pictures(self.records) as pictures:
            self._ask(display, list(self.votes(pictures)))
        for path in sampler.write_report(self.out):
            display.say(str(path))

    def _ask(self, display: Display, votes: list[evaluation.Wanted]) -> None:
        folder.settle(self.out, self.document)
        folder.write_table(self.out, outputs.PAIRS, evaluation.match_rows(self.records.met()))
        if self.records.left_out:
            display.say(f"{len(self.records.left_out):,} that not every record has are left out: see settings.json")
        try:
            now = partial(standing.of_comparison, self.answers)
            evaluation.ask_missing(self, votes, lambda *counts: display.show(partial(now, *counts)))
        finally:
            planned = self.records.planned()
            folder.write_table(self.out, outputs.VOTES, evaluation.answered_votes(self, votes))
            folder.write_table(self.out, outputs.CALLS, calls.answer_rows(self, self.records.ids, planned))

    def votes(self, pictures: GivenPictures) -> Iterator[evaluation.Wanted]:
        """Yield every vote, in the order in which they are asked.

        Args:
            pictures: of the objects that meet, where these are images.
        """
        records = dict(zip(self.records.ids, self.records.records, strict=True))
        # A state meets several others: its picture is read once.
        shown = cache(lambda record, state: self._shown(record, records[record].objects[state], pictures))
        voting = Voting(self.evaluator, self.source, self.settings)
        for slot in self.records.schedule():
            match = slot.match
            one, other = shown(match.one, match.one_state), shown(match.other, match.other_state)
            pair = judge_calls.Pair(self.records.kind, self.question, other, one, prompt=self.prompt)
            key = (match.key, slot.about, "yes" if slot.one_first else "no", "0")
            first = match.one if slot.one_first else match.other
            ask = voting.asks(pair, slot.one_first, "|".join(key))
            yield evaluation.Wanted(EvaluationAnswer.Kind.VOTE, key, first, ask)

    def _shown(self, record: str, found: sampler.ComparedObject, pictures: GivenPictures) -> judges.Exhibit:
        if self.records.kind == "images":
            return judges.Exhibit(text="", picture=judges.Picture("image/png", pictures.read(record, found.state)))
        sees = bool(self.evaluator.can_images)
        return OBJECT_KINDS[self.records.kind].exhibit(StoredObject(found.content), sees_pictures=sees)


def read(given: Mapping[str, Any]) -> sampler.ComparedRecords:
    """Return the records that a command names, matched.

    Raises:
        OptionError, RecordError, RecipeError: they cannot be compared, or not read.
    """
    if not (given["question"] or "").strip():
        raise sampler.OptionError("--question", 'must say what the voter answers, as in --question "Which is better?"')
    records = [sampler.read_compared(path) for path in given["records"]]
    return sampler.ComparedRecords.of(records, given["matches"])


def judge_named(given: Sequence[str]) -> str:
    """Return the name of the endpoint that votes.

    Raises:
        OptionError: none is named, or for another role.
    """
    role, _, name = given[0].partition("=") if len(given) == 1 else ("", "", "")
    if role != ROLE or not name:
        raise sampler.OptionError("--endpoint", f"must be {ROLE}=NAME, once: who votes")
    return name


def check_options(given: Mapping[str, Any], defaults: Mapping[str, Any]) -> None:
    """Refuse options that mean nothing here: those of other experiments to `compare`, and its own to them.

    Raises:
        OptionError: there is one.
    """
    named = {name for name, default in defaults.items() if given[name] != default}
    if given["experiment"] == COMPARE:
        foreign, why = sorted(named - _TAKEN), "must be left out: compare does not take it"
    else:
        foreign, why = (
            sorted(named & {"records", "question", "people", "answers"}),
            "must be left out: only compare takes it",
        )
    if foreign:
        option = foreign[0] if foreign[0] == "records" else f"--{foreign[0].replace('_', '-')}"
        raise sampler.OptionError(option, why)


def check_people(given: Mapping[str, Any]) -> None:
    """Refuse options that say how a model votes where people do, and the other way round.

    Raises:
        OptionError: there is one.
    """
    if given["people"] and (given["endpoint"] or given["max_requests"] is not None):
        name = "--endpoint" if given["endpoint"] else "--max-requests"
        raise sampler.OptionError(name, "must be left out where people vote")
    if given["people"] and given["evaluator_votes"] != "sampled":
        raise sampler.OptionError("--evaluator-votes", "must be left out where people vote")
    if not given["people"] and given["answers"] is not None:
        raise sampler.OptionError("--answers", "must be left out where a model votes; --people lets people vote")


def _check_shown(kind: str, endpoint: Endpoint) -> None:
    if kind == "images" and not endpoint.can_images:
        raise sampler.OptionError(
            "--endpoint", f"must name a model that sees pictures; the test of {endpoint.name!r} has not found that it "
            "does",
        )  # fmt: skip
