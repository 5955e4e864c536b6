"""What models are asked about the states of a run: ratings of each, which of two they prefer, what a detector sees.

Everything to be asked follows from the options and the records. Each answer is a row, made before its request and
filled when the reply comes: a run that was killed asks for what is missing, and counts what it asks for again.

A vote is sampled, or drawn from the probability that the server tells; either way it has the same law. A drawn vote's
number follows from the run and the slot, so that the same command gives the same vote for the same probability. One
request tells the probability of a pair in one order: where the same two objects meet again, as kept states of a chain
that stays where it is do, nothing is asked.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from functools import cache, partial
from hashlib import sha256
from itertools import islice
from typing import Any

import numpy as np
from django.contrib.auth.models import User
from django.db import close_old_connections
from django.db.models import F, Sum

import sampler
from prefmh_web.endpoints import accounting, judge_calls
from prefmh_web.endpoints.calls import called
from prefmh_web.endpoints.errors import EndpointError, TryLater
from prefmh_web.endpoints.mixed_votes import votes_by_either
from prefmh_web.endpoints.models import Endpoint
from prefmh_web.endpoints.servers import Dialect
from prefmh_web.experiments.campaigns import Blocked, LimitReached, Row
from prefmh_web.experiments.models import EvaluationAnswer
from sampler import judges

SCALE = judges.RatingScale(1, 10)
_AT_ONCE = 64
# With pauses as the server asks for them: some ten minutes.
_TRIES, _LONGEST_PAUSE_S = 20, 60.0

_CONTEXT = "{{context}}"
Place = tuple[str, str, int, int, int]
"""Method, direction, seed, chain and step."""
States = Mapping[Place, str]
"""What stood in a place."""


@dataclass(frozen=True)
class Evaluation:
    """The evaluation of one run.

    Args:
        owner: of the run and of the evaluator.
        settings: the hash of settings.json.
        options: of the run.
        evaluator: who is asked, unless it is for a detector to say.
        states: what is evaluated.
        most_requests: how many requests it may have taken in all, those of earlier runs included.
        prompts: by direction, in order.
        detector: who is asked whether something is in a state; None where nobody is.
        picture_of: what a model is shown of a state; None where that is its content.
    """

    owner: User
    settings: str
    options: sampler.ExperimentOptions
    evaluator: Endpoint
    states: States
    most_requests: int | None
    prompts: Mapping[str, Sequence[str]] = field(default_factory=dict)
    detector: Endpoint | None = None
    picture_of: Callable[[Place], judges.Exhibit] | None = None

    def shown(self, place: Place) -> judges.Exhibit:
        """Return what a model is shown of a state."""
        return judges.Exhibit(self.states[place]) if self.picture_of is None else self.picture_of(place)

    def with_source(self, place: Place, words: judges.OwnPrompt, shown: judges.Exhibit) -> judges.Exhibit:
        """Return a state as the evaluator sees it: with its source where the words have a place for that."""
        if _CONTEXT not in words.template.user:
            return shown
        direction = self.options.direction(place[1])
        source = self.prompts[direction.name][place[3] % direction.inputs]
        return replace(shown, context=(judges.ContextLine("Source", source),))

    @property
    def answers(self) -> Any:
        """The rows of this run."""
        return EvaluationAnswer.of_models(self.owner, self.settings)

    @property
    def requests(self) -> int:
        """How many requests it has taken."""
        return self.answers.aggregate(all=Sum("requests"))["all"] or 0


@dataclass(frozen=True)
class Wanted:
    """One answer that is wanted, and how to get it: the call returns the value and the replies it took, or an error.

    Args:
        source: the name of whoever is asked; empty for the evaluator.
    """

    kind: EvaluationAnswer.Kind
    key: tuple[str, ...]
    method: str
    ask: Callable[[], tuple[float, int] | EndpointError]
    source: str = ""

    @property
    def name(self) -> str:
        """The key as one text."""
        return "|".join(self.key)


def run(evaluation: Evaluation, show: Callable[[int, int], None]) -> None:
    """Ask for every answer that is missing.

    Args:
        show: called with how many answers there are, and how many there will be.

    Raises:
        Blocked: the evaluator gave an answer of no use, or none.
        LimitReached: it has made as many requests as it may.
    """
    everything = [*ratings(evaluation), *votes(evaluation)]
    answered = set(evaluation.answers.filter(value__isnull=False).values_list("kind", "key"))
    missing = iter([each for each in everything if (each.kind.value, each.name) not in answered])
    done = len(answered)
    show(done, len(everything))
    at_once = min(_AT_ONCE, evaluation.evaluator.concurrency)
    with ThreadPoolExecutor(at_once, thread_name_prefix="evaluate") as pool:
        under_way = {pool.submit(_answer, evaluation, each) for each in islice(missing, _room(evaluation, 0, at_once))}
        while under_way:
            ended, under_way = wait(under_way, return_when=FIRST_COMPLETED)
            done += _look(ended)
            show(done, len(everything))
            free = _room(evaluation, len(under_way), len(ended))
            under_way |= {pool.submit(_answer, evaluation, each) for each in islice(missing, free)}
    if done < len(everything):
        raise LimitReached


def ratings(evaluation: Evaluation) -> Iterator[Wanted]:
    """Yield what is asked about each kept state one by one."""
    options = evaluation.options
    for asked in options.of_experiment.rated:
        if asked.role == DETECTOR:
            yield from _detections(evaluation, asked)
            continue
        words = judges.OwnPrompt(_template(asked), asked.question, 1, (SCALE.lowest, SCALE.highest))
        for place, content in _kept(evaluation):
            rated = judge_calls.Rated(options.of_experiment.objects, asked.question, judges.Exhibit(content), SCALE,
                                      prompt=words)  # fmt: skip
            key = (*map(str, place), asked.name)
            yield Wanted(EvaluationAnswer.Kind.SCORE, key, place[0], _rating(evaluation.evaluator, rated))


def _detections(evaluation: Evaluation, asked: sampler.Asked) -> Iterator[Wanted]:
    detector = evaluation.detector or evaluation.evaluator
    for place, _ in _kept(evaluation):
        ask = detection(detector, asked.question, partial(evaluation.shown, place))
        key = (*map(str, place), asked.name)
        yield Wanted(EvaluationAnswer.Kind.SCORE, key, place[0], ask, detector.name)


def votes(evaluation: Evaluation) -> Iterator[Wanted]:
    """Yield the votes of the tournament."""
    options = evaluation.options
    if not options.matches:
        return
    about = {asked.name: asked for asked in options.of_experiment.compared}
    voting = Voting(evaluation.evaluator, options.evaluator_votes, evaluation.settings)
    # A state meets several others: its picture is read once.
    shown_of = cache(evaluation.shown)
    for slot in sampler.tournament_schedule(options):
        match, asked = slot.match, about[slot.about]
        words = judges.OwnPrompt(_template(asked), asked.question)
        places = [
            (method, match.direction, match.seed, state.chain, state.step)
            for method, state in ((match.one, match.one_state), (match.other, match.other_state))
        ]
        shown = [evaluation.with_source(place, words, shown_of(place)) for place in places]
        pair = judge_calls.Pair(options.of_experiment.objects, asked.question, shown[1], shown[0], prompt=words)
        key = (match.key, slot.about, "yes" if slot.one_first else "no", "0")
        first = match.one if slot.one_first else match.other
        vote = voting.asks(pair, slot.one_first, "|".join(key))
        yield Wanted(EvaluationAnswer.Kind.VOTE, key, first, vote)


def _template(asked: sampler.Asked) -> judges.PromptTemplate:
    return judges.PRESETS[asked.preset].template


def _kept(evaluation: Evaluation) -> Iterator[tuple[Place, str]]:
    options = evaluation.options
    kept = {method.name: set(sampler.kept_steps(options, method)) for method in options.chosen}
    for place, content in evaluation.states.items():
        if place[-1] in kept[place[0]]:
            yield place, content


def _rating(endpoint: Endpoint, rated: judge_calls.Rated) -> Callable[[], tuple[float, int] | EndpointError]:
    def ask() -> tuple[float, int] | EndpointError:
        # Nobody can ask a server for the same reply again: seeds only keep replies apart.
        found = called(judge_calls.ratings(endpoint, rated, 1, np.random.default_rng()))
        return found.failure if found.failure is not None else (float(found.given[0]), found.asks[0])

    return ask


# SQLite has one lock for all who write: threads that want it at once would wait longer than their work takes.
_rows = threading.Lock()


def _answer(evaluation: Evaluation, wanted: Wanted) -> tuple[Wanted, EndpointError | None]:
    """Ask for one answer until it comes or somebody has to see to it; return the error if there is one."""
    try:
        with _rows:
            mine = _row(evaluation, wanted)
        for _ in range(_TRIES):
            error = _asked_once(mine, wanted)
            if not isinstance(error, TryLater) or evaluation.most_requests is not None:
                return wanted, error
            time.sleep(min(error.retry_after, _LONGEST_PAUSE_S))
        return wanted, error
    finally:
        close_old_connections()


def _row(evaluation: Evaluation, wanted: Wanted) -> Any:
    """Return the row of an answer, as a query."""
    row, _ = EvaluationAnswer.objects.get_or_create(
        owner=evaluation.owner,
        settings=evaluation.settings,
        kind=wanted.kind,
        key=wanted.name,
        defaults={"method": wanted.method, "source": wanted.source or evaluation.evaluator.name},
    )
    return EvaluationAnswer.objects.filter(pk=row.pk)


def _asked_once(mine: Any, wanted: Wanted) -> EndpointError | None:
    # Before the request: one whose reply is lost has been made all the same.
    with _rows:
        mine.update(asked=F("asked") + 1)
    with accounting.tallied() as tally:
        came = wanted.ask()
    with _rows:
        _store(mine, came, tally)
    return came if isinstance(came, EndpointError) else None


def _store(mine: Any, came: tuple[float, int] | EndpointError, tally: accounting.Tally) -> None:
    answer = {} if isinstance(came, EndpointError) else {"value": came[0], "replies": came[1]}
    mine.update(
        requests=F("requests") + tally.requests,
        unreadable=F("unreadable") + tally.unreadable,
        tokens=F("tokens") + tally.tokens_in + tally.tokens_out,
        seconds=F("seconds") + tally.seconds,
        cost=F("cost") + tally.cost,
        unpriced=F("unpriced") + tally.unpriced,
        **answer,
    )


def _look(ended: set[Future[Any]]) -> int:
    """Return how many answers have come.

    Raises:
        Blocked: one did not come. Those that are under way end by themselves, and are stored.
    """
    for each in ended:
        wanted, error = each.result()
        if error is not None:
            who = wanted.source or "the evaluator"
            raise Blocked(
                f"{who} did not answer about {wanted.name}: {error.reason}. Run the same command again once it does; "
                "what has come is kept"
            )
    return len(ended)


def _room(evaluation: Evaluation, under_way: int, wanted: int) -> int:
    """Return how many of the wanted answers may be begun: each may take several requests."""
    if evaluation.most_requests is None:
        return wanted
    left = evaluation.most_requests - evaluation.requests - under_way * judge_calls.MOST_ASKS
    return min(wanted, max(0, left // judge_calls.MOST_ASKS))


def score_rows(evaluation: Evaluation) -> Iterator[Row]:
    """Yield the rows of scores.csv, in the order of what was asked."""
    found = {row.key: row for row in evaluation.answers.filter(kind="score", value__isnull=False)}
    for wanted in ratings(evaluation):
        if (row := found.get(wanted.name)) is not None:
            cells = dict(zip(sampler.outputs.SCORE_KEY, wanted.key, strict=True))
            numbers = {name: int(cells[name]) for name in ("seed", "chain", "step")}
            values = cells | numbers | {"value": row.value, "source": row.source, "asks": row.replies}
            yield sampler.outputs.SCORES.row(**values)


def vote_rows(evaluation: Evaluation) -> Iterator[Row]:
    """Yield the rows of votes.csv of the votes that have come, in the tournament's order."""
    found = {row.key: row for row in evaluation.answers.filter(kind="vote", value__isnull=False)}
    for wanted in votes(evaluation):
        if (row := found.get(wanted.name)) is not None:
            pair, about, one_first, number = wanted.key
            yield sampler.outputs.VOTES.row(
                pair=pair,
                property=about,
                one_first=one_first == "yes",
                number=int(number),
                chose_one=row.value == 1,
                voter=row.source,
                asks=row.replies,
            )


def pair_rows(options: sampler.ExperimentOptions) -> Iterator[Row]:
    """Yield the rows of pairs.csv."""
    for match in sampler.tournament_matches(options):
        yield sampler.outputs.PAIRS.row(
            pair=match.key,
            direction=match.direction,
            seed=match.seed,
            prompt=match.prompt,
            match=match.number,
            one=match.one,
            one_chain=match.one_state.chain,
            one_step=match.one_state.step,
            other=match.other,
            other_chain=match.other_state.chain,
            other_step=match.other_state.step,
        )


DRAWN: sampler.VoteSource = "log-probabilities"
_BITS = 53
Ask = Callable[[], tuple[float, int] | EndpointError]
"""What asks for a vote: 1 if it is for the pair's proposal and the replies that it took, or why there is none."""


@dataclass(frozen=True)
class Voting:
    """Who votes and how.

    Args:
        endpoint: who.
        source: "sampled" or "log-probabilities".
        settings: the hash of settings.json.
    """

    endpoint: Endpoint
    source: sampler.VoteSource
    settings: str
    # By question, the two objects and which of them is shown first. Of two that ask at once, either may be kept.
    _known: dict[Any, float] = field(default_factory=dict, repr=False, compare=False)

    def asks(self, pair: judge_calls.Pair, first: bool, name: str) -> Ask:
        """Return what asks for one vote.

        Args:
            first: whether the pair's proposal is shown first.
            name: of the slot, which its number follows from.
        """
        if self.source == DRAWN:
            return lambda: self._drawn(pair, first, number_of(self.settings, name))
        return lambda: _came(
            called(judge_calls.votes_by_sampling(self.endpoint, pair, [first], np.random.default_rng()))
        )

    def _drawn(self, pair: judge_calls.Pair, first: bool, number: float) -> tuple[float, int] | EndpointError:
        key = pair.criterion, pair.current, pair.proposal, first
        known = {first: self._known[key]} if key in self._known else {}
        if self.endpoint.samples_plainly:
            rng = np.random.default_rng()
            votes = called(votes_by_either(self.endpoint, pair, [first], [number], rng, known=known, sampled=()))
        else:
            votes = called(judge_calls.votes_by_log_probabilities(self.endpoint, pair, [first], [number], known))
        if votes.cast and votes.cast[0].preference is not None:
            self._known[key] = votes.cast[0].preference
        return _came(votes)


def check_votes(endpoint: Endpoint, source: sampler.VoteSource) -> None:
    """Check that an endpoint can vote so.

    Raises:
        OptionError: its server tells no probabilities.
    """
    if source == DRAWN and endpoint.can_log_probabilities is False:
        raise sampler.OptionError(
            "--evaluator-votes", f"must be sampled: the test of {endpoint.name!r} has found no log-probabilities"
        )


def number_of(settings: str, name: str) -> float:
    """Return the number on [0, 1) that a slot's vote is drawn with."""
    drawn = int.from_bytes(sha256(f"{settings}|{name}".encode()).digest()[:8], "big")
    return float((drawn >> (64 - _BITS)) / 2**_BITS)


def _came(votes: judge_calls.Votes) -> tuple[float, int] | EndpointError:
    return votes.failure if votes.failure is not None else (float(votes.cast[0].for_proposal), votes.cast[0].asks)


DETECTOR = "detector"


def detection(
    endpoint: Endpoint, question: str, exhibit: Callable[[], judges.Exhibit]
) -> Callable[[], tuple[float, int] | EndpointError]:
    """Return what asks once: 1 for yes and 0 for no, and how many replies it took, or an error.

    Args:
        exhibit: called when it is asked about, since pictures are large.
    """

    def ask() -> tuple[float, int] | EndpointError:
        found = called(judge_calls.detection(endpoint, question, exhibit(), np.random.default_rng()))
        return found.failure if found.failure is not None else (float(found.given[0]), found.asks[0])

    return ask


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
