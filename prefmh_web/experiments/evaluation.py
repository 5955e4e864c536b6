"""What models and scorers are asked about the kept states of a run.

Ratings of each, which of two they prefer, what a detector sees, and numbers of the site's scorers (`--scorer`).

Everything to be asked follows from the options and the records. Each answer is a row, made before its request and
filled when the reply comes: a run that was killed asks for what is missing, and counts what it asks for again.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from itertools import islice
from typing import Any

import numpy as np
from django.db import close_old_connections
from django.db.models import F

import sampler
from prefmh_web.campaigns import objects
from prefmh_web.campaigns.models import State
from prefmh_web.endpoints import judge_calls, limits
from prefmh_web.endpoints.calls import called
from prefmh_web.endpoints.errors import EndpointError, TryLater
from prefmh_web.endpoints.models import Endpoint
from prefmh_web.endpoints.servers import Dialect
from prefmh_web.experiments.campaigns import QUALITY, Blocked, LimitReached, answers_of, asked_of_models, taken
from prefmh_web.experiments.configs import Run
from prefmh_web.experiments.models import EvaluationAnswer, ExperimentCampaign
from prefmh_web.objects import OBJECT_KINDS, StoredObject
from prefmh_web.scorers import NoScore, Scorer, ScorerError, ScorerInterrupted
from sampler import StateKey, judges, outputs

DETECTOR, EVALUATOR = "detector", "evaluator"
SCALE = judges.RatingScale(1, 10)
BATCH = 32
"""Objects that a scorer is asked about before their numbers are stored."""
_AT_ONCE = 64
# With pauses as the server asks for them: some ten minutes.
_TRIES, _LONGEST_PAUSE_S = 20, 60.0
_CONTEXT = "{{context}}"
Came = tuple[float, int] | EndpointError
"""An answer and the replies that it took, or why there is none. A vote is 1 for the pair's proposal."""
Show = Callable[[int, int], None]
"""Called with how many answers there are, and how many there will be."""


@dataclass(frozen=True)
class KeptStates:
    """What stands in the kept states of a run, from its records.

    Raises:
        RecordError: a record is missing or cannot be read.
    """

    run: Run

    @cached_property
    def by_key(self) -> Mapping[StateKey, tuple[str, int]]:
        """The content of each kept state and its number in its record."""
        found = {}
        for part in self.run.parts:
            kept = set(sampler.kept_steps(self.run.options, part.method))
            for row in sampler.read_samples(part.record):
                if (step := int(row["step"])) in kept:
                    key = StateKey(part.method.name, part.direction, part.seed, int(row["chain_index"]), step)
                    found[key] = row["content"], int(row["state_index"])
        return found

    @cached_property
    def qualities(self) -> Mapping[StateKey, float]:
        """What the records say of the kept states: the numbers of the role `QUALITY`."""
        found: dict[StateKey, float] = {}
        name = self.run.scorers[QUALITY].name
        for part in self.run.parts:
            rows = sampler.read_record(part.record)["scores"]
            given = {int(row["state_index"]): row["score"] for row in rows if row["scorer"] == name and row["score"]}
            mine = part.method.name, part.direction, part.seed
            numbers = ((key, state) for key, (_, state) in self.by_key.items() if key[:3] == mine)
            found |= {key: float(given[state]) for key, state in numbers if state in given}
        return found

    def stored(self, key: StateKey) -> StoredObject:
        """Return what stands in a state, and what is told about it. A picture is the one that its campaign has."""
        content, number = self.by_key[key]
        found = self._picture(key, number) if self._are_pictures else StoredObject(content)
        about = self.run.input_of(key)
        told = () if about is None else (("prompt", about.prompt), ("reference", about.reference))
        return replace(found, told=tuple((name, text) for name, text in told if text))

    def shown_object(self, key: StateKey) -> judges.ShownObject:
        """Return what a model is shown of a state."""
        if not self._are_pictures:
            return judges.ShownObject(self.by_key[key][0])
        return OBJECT_KINDS[self.run.options.of_experiment.objects].shown_object(self.stored(key), sees_pictures=True)

    @property
    def _are_pictures(self) -> bool:
        return OBJECT_KINDS[self.run.options.of_experiment.objects].medium == "picture"

    def _picture(self, key: StateKey, number: int) -> StoredObject:
        about = {"method": key.method, "direction": key.direction, "seed": key.seed}
        part = ExperimentCampaign.objects.get(owner=self.run.owner, settings=self.run.settings, **about)
        return objects.stored(State.objects.select_related("campaign").get(campaign=part.campaign_id, index=number))


@dataclass(frozen=True)
class WantedAnswer:
    """One answer that is wanted, and how to get it.

    Args:
        name: the cells of the table's key, as one text.
        method: that it counts for.
        endpoint: who is asked.
        role: as what.
    """

    name: str
    method: str
    endpoint: Endpoint
    role: str
    ask: Callable[[], Came]


def ask_models(run: Run, states: KeptStates, show: Show) -> None:
    """Ask for every answer of a model that is missing.

    Raises:
        Blocked: a model gave an answer of no use, or none.
        LimitReached: the run has made as many requests as it may.
    """
    everything = [*_ratings(run, states), *_votes(run, states)]
    if not everything:
        return
    answered = set(asked_of_models(run).filter(value__isnull=False).values_list("key", flat=True))
    missing = iter([each for each in everything if each.name not in answered])
    done = len(answered)
    show(done, len(everything))
    at_once = min(_AT_ONCE, *(each.endpoint.concurrency for each in everything))
    with ThreadPoolExecutor(at_once, thread_name_prefix="evaluate") as pool:
        under_way = {pool.submit(_answer, run, each) for each in islice(missing, _room(run, 0, at_once))}
        while under_way:
            ended, under_way = wait(under_way, return_when=FIRST_COMPLETED)
            done += _look(ended)
            show(done, len(everything))
            free = _room(run, len(under_way), len(ended))
            under_way |= {pool.submit(_answer, run, each) for each in islice(missing, free)}
    if done < len(everything):
        raise LimitReached


def ask_scorers(run: Run, states: KeptStates, show: Show, say: Callable[[str], None]) -> None:
    """Ask for every number of a scorer that is missing, a batch at a time.

    Args:
        say: called with how many objects a scorer gives no number, and why one has none.

    Raises:
        Blocked: a scorer gives no numbers at all.
    """
    asked = {role: scorer for role, scorer in run.scorers.items() if role != QUALITY}
    planned, done = len(states.by_key) * len(asked), 0
    for role, scorer in asked.items():
        known = set(answers_of(run).filter(role=role, requests__gt=0).values_list("key", flat=True))
        missing = [key for key in states.by_key if _key(key, role) not in known]
        done += len(known)
        show(done, planned)
        reasons: list[str] = []
        for first in range(0, len(missing), BATCH):
            batch = missing[first : first + BATCH]
            reasons += _ask_scorer(run, states, role, scorer, batch)
            done += len(batch)
            show(done, planned)
        if reasons:
            say(f"{role}: {len(reasons):,} states have no number, such as one of which it is said: {reasons[0]}")


def score_rows(run: Run, states: KeptStates) -> Iterator[dict[str, Any]]:
    """Yield the rows of scores.csv that there are: of each question and each scorer, state after state."""
    found = {row.key: row for row in answers_of(run).filter(value__isnull=False)}
    rated = [asked.name for asked in run.options.of_experiment.rated]
    for name in (*rated, *run.scorers):
        for key in states.by_key:
            cells = {**key._asdict(), "name": name}
            if name == QUALITY:
                if key in states.qualities:
                    yield {**cells, "value": states.qualities[key], "source": run.scorers[name].name, "attempts": None}
            elif row := found.get(_key(key, name)):
                attempts = row.replies if name in rated else None
                yield {**cells, "value": row.value, "source": row.source, "attempts": attempts}


def vote_rows(run: Run) -> Iterator[dict[str, Any]]:
    """Yield the rows of votes.csv of the votes that have come, in the tournament's order."""
    found = {row.key: row for row in answers_of(run).filter(value__isnull=False)}
    for slot in sampler.tournament_schedule(run.options):
        if row := found.get(_key_of_vote(slot)):
            key = dict(zip(outputs.VOTE_KEY, (*slot.key, 0), strict=True))
            yield {**key, "chose_one": row.value == 1, "voter": row.source, "attempts": row.replies}


def check_detector(endpoint: Endpoint) -> None:
    """Check before anything is asked that an endpoint may detect.

    Raises:
        OptionError: its test found that it sees no pictures, or its models take no temperature but 1.
    """
    why = ""
    if endpoint.can_images is False:
        why = f"must name a model that sees pictures; the test of {endpoint.name!r} has found that it does not"
    elif not Dialect(endpoint.dialect).server.sets_temperature:
        why = f"must name a model that can be asked at temperature 0, and {endpoint.name!r} takes no temperature but 1"
    if why:
        raise sampler.OptionError("--endpoint detector", why)


def _endpoint(run: Run, role: str) -> Endpoint:
    return Endpoint.objects.get(owner=run.owner, name=run.endpoints[role])


def _ratings(run: Run, states: KeptStates) -> Iterator[WantedAnswer]:
    """Yield what is asked about each kept state one by one."""
    for asked in run.options.of_experiment.rated:
        endpoint = _endpoint(run, asked.role)
        rate = _detection if asked.role == DETECTOR else _rating
        for key in states.by_key:
            ask = partial(rate, endpoint, asked, partial(states.shown_object, key))
            yield WantedAnswer(_key(key, asked.name), key.method, endpoint, asked.role, ask)


def _votes(run: Run, states: KeptStates) -> Iterator[WantedAnswer]:
    """Yield the votes of the tournament."""
    options = run.options
    if not options.matches:
        return
    about = {asked.name: asked for asked in options.of_experiment.compared}
    endpoint = _endpoint(run, EVALUATOR)
    # A state meets several others: its picture is read once.
    shown_of = cache(states.shown_object)
    for slot in sampler.tournament_schedule(options):
        asked = about[slot.about]
        words = judges.Prompt(judges.PRESETS[asked.preset].template, asked.question)
        one, other = (_with_source(run, key, words, shown_of(key)) for key in (slot.match.one, slot.match.other))
        pair = judge_calls.Pair(words, asked.question, other, one)
        ask = partial(_vote, endpoint, pair, slot.one_first)
        yield WantedAnswer(_key_of_vote(slot), slot.first.method, endpoint, EVALUATOR, ask)


def _key(key: StateKey, name: str) -> str:
    return "|".join((*map(str, key), name))


def _key_of_vote(slot: sampler.TournamentSlot) -> str:
    return "|".join((slot.match.key, slot.about, "yes" if slot.one_first else "no"))


def _with_source(run: Run, key: StateKey, words: judges.Prompt, shown: judges.ShownObject) -> judges.ShownObject:
    """Return a state as the evaluator sees it: with its source where the words have a place for that."""
    source = run.input_of(key)
    if source is None or _CONTEXT not in words.template.user:
        return shown
    return replace(shown, context=(judges.ContextLine("Source", source.prompt),))


# Nobody can ask a server for the same reply again: seeds only keep replies apart.


def _rating(endpoint: Endpoint, asked: sampler.EvaluationQuestion, shown: Callable[[], judges.ShownObject]) -> Came:
    words = judges.Prompt(judges.PRESETS[asked.preset].template, asked.question, 1, (SCALE.lowest, SCALE.highest))
    rated = judge_calls.RatingRequest(words, shown(), SCALE)
    return _first(judge_calls.ratings(endpoint, rated, 1, np.random.default_rng()))


def _detection(endpoint: Endpoint, asked: sampler.EvaluationQuestion, shown: Callable[[], judges.ShownObject]) -> Came:
    return _first(judge_calls.detection(endpoint, asked.question, shown(), np.random.default_rng()))


def _first(answers: Coroutine[Any, Any, judge_calls.Answers]) -> Came:
    found = called(answers)
    return found.failure if found.failure is not None else (float(found.given[0].value), found.given[0].attempts)


def _vote(endpoint: Endpoint, pair: judge_calls.Pair, first: bool) -> Came:
    return _first(judge_calls.votes(endpoint, pair, [first], np.random.default_rng()))


# SQLite has one lock for all who write: threads that want it at once would wait longer than their work takes.
_rows = threading.Lock()


def _answer(run: Run, wanted: WantedAnswer) -> tuple[WantedAnswer, EndpointError | None]:
    """Ask for one answer until it comes or somebody has to see to it; return the error if there is one."""
    try:
        with _rows:
            row = _row(run, wanted.role, wanted.name, wanted.method, wanted.endpoint.name)
        for _ in range(_TRIES):
            error = _asked_once(EvaluationAnswer.objects.filter(pk=row), wanted)
            if not isinstance(error, TryLater) or run.max_requests is not None:
                return wanted, error
            time.sleep(min(error.retry_after, _LONGEST_PAUSE_S))
        return wanted, error
    finally:
        close_old_connections()


def _row(run: Run, role: str, key: str, method: str, source: str) -> int:
    """Return the row of an answer, made if there is none."""
    of_run = {"owner": run.owner, "settings": run.settings}
    given = {"role": role, "method": method, "source": source}
    return EvaluationAnswer.objects.get_or_create(**of_run, key=key, defaults=given)[0].pk


def _asked_once(mine: Any, wanted: WantedAnswer) -> EndpointError | None:
    # Before the request: one whose reply is lost has been made all the same.
    with _rows:
        mine.update(asked=F("asked") + 1)
    with limits.tallied() as tally:
        came = wanted.ask()
    answer = {} if isinstance(came, EndpointError) else {"value": came[0], "replies": came[1]}
    with _rows:
        mine.update(**EvaluationAnswer.with_more(tally), **answer)
    return came if isinstance(came, EndpointError) else None


def _look(ended: set[Future[Any]]) -> int:
    """Return how many answers have come.

    Raises:
        Blocked: one did not come. Those that are under way end by themselves, and are stored.
    """
    for each in ended:
        wanted, error = each.result()
        if error is not None:
            raise Blocked(
                f"the {wanted.role} {wanted.endpoint.name} did not answer about {wanted.name}: {error.reason}. Run the "
                "same command again once it does; what has come is kept"
            )
    return len(ended)


def _room(run: Run, under_way: int, wanted: int) -> int:
    """Return how many of the wanted answers may be begun: each may take several requests."""
    if run.max_requests is None:
        return wanted
    left = run.max_requests - taken(run)[0] - under_way * judge_calls.MAX_ATTEMPTS
    return min(wanted, max(0, left // judge_calls.MAX_ATTEMPTS))


def _ask_scorer(run: Run, states: KeptStates, role: str, scorer: Scorer, batch: Sequence[StateKey]) -> list[str]:
    """Ask about some states and store what comes; return why some have no number."""
    rows = [_row(run, role, _key(key, role), key.method, scorer.name) for key in batch]
    # Before they are asked about: what a process that dies has begun was asked for all the same.
    EvaluationAnswer.objects.filter(pk__in=rows).update(asked=F("asked") + 1)
    began = time.monotonic()
    kind = OBJECT_KINDS[run.options.of_experiment.objects]
    try:
        answers = scorer.scores(kind, [states.stored(key) for key in batch])
    except ScorerInterrupted as error:
        raise Blocked(f"the scorer {scorer.name} was stopped; run the same command again to go on") from error
    except ScorerError as error:
        raise Blocked(
            f"the scorer {scorer.name} gives no numbers: {error}. Run the same command again once it does; what has "
            "come is kept"
        ) from error
    seconds = (time.monotonic() - began) / len(batch)
    for row, answer in zip(rows, answers, strict=True):
        value = None if isinstance(answer, NoScore) else answer
        EvaluationAnswer.objects.filter(pk=row).update(
            value=value, requests=F("requests") + 1, unreadable=int(value is None), seconds=F("seconds") + seconds
        )
    return [answer.reason for answer in answers if isinstance(answer, NoScore)]
