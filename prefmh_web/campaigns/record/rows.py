"""The rows of the record's tables, as they stood at the moment of a `Snapshot`.

A campaign may have a million votes. So rows are plain tuples read in pieces, never instances of models; most cells of
votes and ratings are written by the database, so that they pass through as they come.

All files of one export speak of one moment: how many steps each chain had decided, and how many votes its open
comparison had, each taken in one query. Whatever is older never changes, so the files can be written while people go
on voting. Ratings never change either; those an open comparison has are no part of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from heapq import merge
from itertools import islice
from operator import itemgetter
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Case, F, Func, Max, Min, Q, QuerySet, TextField, Value, When, Window
from django.db.models.functions import Cast
from django.db.models.sql.compiler import SQLCompiler

import sampler
from prefmh_web import hooks
from prefmh_web.campaigns import objects
from prefmh_web.campaigns.engine import transitions
from prefmh_web.campaigns.events import public
from prefmh_web.campaigns.models import Campaign, Catalog, Comparison, Event, Rating, Score, State, Vote, numbers_in
from prefmh_web.campaigns.objects import scores_of
from sampler import tables


class Timestamp(Func):
    """What `sampler.moment` writes of a column of moments: in UTC, milliseconds cut off; null without one."""

    arity = 1
    output_field = TextField()

    def as_sqlite(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **context: Any) -> Any:
        """Django stores “2026-01-02 03:04:05.678912”, in UTC, and leaves a fraction of zero out."""
        template = "replace(substr(%(expressions)s || '.000', 1, 23), ' ', 'T') || '+00:00'"
        return self.as_sql(compiler, connection, template=template, **context)

    def as_postgresql(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **context: Any) -> Any:
        """PostgreSQL cuts milliseconds off as well."""
        template = """to_char(%(expressions)s AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"+00:00"')"""
        return self.as_sql(compiler, connection, template=template, **context)


class Key(Cast):
    """A key as text in its form with hyphens, as PostgreSQL has it; SQLite stores 32 digits. Null without one."""

    def as_sqlite(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **context: Any) -> Any:
        """Cut the digits as RFC 9562 does: 8, 4, 4, 4 and 12."""
        cuts = ((1, 8), (9, 4), (13, 4), (17, 4), (21, 12))
        template = " || '-' || ".join(f"substr(%(expressions)s, {start}, {length})" for start, length in cuts)
        return self.as_sql(compiler, connection, template=template, **context)


def by_key(name: str, texts: Mapping[int, str]) -> Case:
    """Return the expression for a text by what a row refers to, which is known by its primary key."""
    cases = (When(**{name: pk}, then=Value(text)) for pk, text in texts.items())
    return Case(*cases, default=Value(""), output_field=TextField())


FOR_PROPOSAL = Case(When(chosen_side=F("proposal_side"), then=Value("1")), default=Value("0"), output_field=TextField())
"""Of a vote. As text: whole numbers would be looked at one by one on their way."""
TRANSLATED = Case(
    When(is_translated=True, then=Value("1")),
    When(is_translated=False, then=Value("0")),
    default=Value(""),
    output_field=TextField(),
)
"""Of a vote: whether the browser had translated the words around its pair; empty where that is not known."""
LEASE = Case(When(voter__isnull=False, then=Key("key", TextField())), default=None, output_field=TextField())
"""Of a vote: a person's has the key of its lease; a model has none."""


def _object_if(is_proposal: Q) -> Case:
    """Return the expression for the number of a vote's proposal where this holds, else of the current object."""
    proposal = Cast("comparison__proposal__index", TextField())
    return Case(
        When(is_proposal, then=proposal),
        default=Cast("comparison__current__index", TextField()),
        output_field=TextField(),
    )


FIRST_STATE = _object_if(Q(proposal_side="first"))
SECOND_STATE = _object_if(Q(proposal_side="second"))
CHOSEN_STATE = _object_if(Q(chosen_side=F("proposal_side")))
"""Of a vote: which object stood where, and which one was chosen."""


Row = Sequence[tables.Cell]
_ROWS_AT_ONCE = 2000
_STEPS_AT_ONCE = 500
# The code of an image may be as long as the file of a small one.
_STATES_AT_ONCE = 20
_VOTER = tables.VOTES.header.index("voter")


def votes(snapshot: Snapshot) -> Iterator[Row]:
    """Every vote in the order it was counted; one that came too late has no number.

    A model's has no voter but an endpoint, how many replies it took, which of the identities in judges.json the reply
    had and, if it was drawn from one, the probability of a vote for the proposal.
    """
    yield tables.VOTES.header
    numbers = numbers_in(snapshot.campaign)
    columns = tables.VOTES.ordered(
        chain_index="comparison__chain__index",
        step="comparison__step",
        number="number",
        judge_index="judge__index",
        question=_questions(snapshot.campaign),
        voter="voter_id",
        proposal_side="proposal_side",
        chosen_side="chosen_side",
        for_proposal=FOR_PROPOSAL,
        first_state=FIRST_STATE,
        second_state=SECOND_STATE,
        chosen_state=CHOSEN_STATE,
        elapsed_ms="elapsed_ms",
        cast_at=Timestamp("cast_at"),
        endpoint=_endpoints(snapshot.campaign),
        slot="slot",
        preference="preference",
        attempts="attempts",
        identity=_identities(snapshot.campaign),
        lease=LEASE,
        hidden_ms="hidden_ms",
        layout="layout",
        translated=TRANSLATED,
    )
    for row in votes_of(snapshot).values_list(*columns).iterator(_ROWS_AT_ONCE):
        if snapshot.has_vote(*row[:3]):
            yield (*row[:_VOTER], numbers.get(row[_VOTER]), *row[_VOTER + 1 :])


def votes_of(snapshot: Snapshot) -> QuerySet[Vote]:
    """Return the votes in the order in which they were counted; `Snapshot.has_vote` says which were there."""
    return snapshot.votes().order_by(
        "comparison__chain__index", "comparison__step", F("number").asc(nulls_last=True), "pk"
    )


def steps(snapshot: Snapshot) -> Iterator[Row]:
    """Every comparison in order; open ones have no verdict and no uniform. One at which its chain was ended has its
    uniform, which no vote can use any more.
    """
    yield tables.STEPS.header
    columns = (
        "chain__index", "step", "current__index", "proposal__index", "log_r0", "uniform", "verdict",
        Timestamp("opened_at"), Timestamp("decided_at"),
    )  # fmt: skip
    for row in snapshot.comparisons().values_list(*columns).iterator(_ROWS_AT_ONCE):
        chain, step, current, proposal, log_r0, uniform, verdict, opened_at, decided_at = row
        if snapshot.has_step(chain, step):
            is_decided = snapshot.is_decided(chain, step)
            yield tables.STEPS.ordered(
                chain_index=chain,
                step=step,
                current_state=current,
                proposal_state=proposal,
                log_r0=log_r0,
                uniform=uniform if is_decided or (chain, step) in snapshot.ended else None,
                verdict=verdict if is_decided else None,
                opened_at=opened_at,
                decided_at=decided_at if is_decided else None,
                part_index=snapshot.config.part_of(chain, step) if snapshot.config.has_parts else None,
            )


def evidence(snapshot: Snapshot) -> Iterator[Row]:
    """Of every decided step between two different objects, the mean ratings or the scores of both."""
    yield tables.EVIDENCE.header
    numbers_of = _NUMBERS.get(snapshot.config.rule.evidence)
    if numbers_of is None:
        return
    decided = snapshot.comparisons().exclude(current=F("proposal"))
    found = decided.values_list("chain__index", "step", "current_id", "proposal_id").iterator(_ROWS_AT_ONCE)
    left = (row for row in found if snapshot.is_decided(*row[:2]))
    while some := list(islice(left, _STEPS_AT_ONCE)):
        numbers = numbers_of(snapshot, {key for row in some for key in row[2:]})
        for chain, step, current, proposal in some:
            for (judge, scorer), number in numbers[current].items():
                other = numbers[proposal][judge, scorer]
                yield (chain, step, judge, scorer, repr(number), repr(other))


_Numbers = Mapping[int, Mapping[tuple[int | None, str | None], float]]
"""By a state's key: its numbers, by the judge's index or the scorer's name."""


def _means(snapshot: Snapshot, states: set[int]) -> _Numbers:
    found = State.objects.filter(pk__in=states).only("pk").prefetch_related("ratings")
    means = {state.pk: transitions.mean_ratings(snapshot.campaign, state) or () for state in found}
    return {state: {(judge, None): mean for judge, mean in enumerate(each)} for state, each in means.items()}


def _scores(snapshot: Snapshot, states: set[int]) -> _Numbers:
    given, scorers = scores_of(snapshot.campaign, states), snapshot.config.rule.scorers
    return {
        state: {(None, scorer): each[scorer] for scorer in scorers if scorer in each} for state, each in given.items()
    }


_NUMBERS: dict[str, Callable[[Snapshot, set[int]], _Numbers]] = {"ratings": _means, "scores": _scores}


def states(snapshot: Snapshot) -> Iterator[Row]:
    """Every object: a list's with its weight in p0, its neighbours and what else the list says of it; one that a chain
    made with its code.
    """
    names, first = columns_of(snapshot.campaign), Window(Min("index"), partition_by=[F("content")])
    again = snapshot.campaign.states.order_by().annotate(first=first).exclude(index=F("first"))
    # Of each state that has been made before, the number that it had first.
    same = dict(again.values_list("index", "first"))
    table, metas = tables.states_table(names), tables.meta_names(names)
    yield table.header
    found = snapshot.campaign.states.values_list("index", "weight", "neighbours", "content", "code", "columns")
    for index, weight, neighbours, content, code, held in found.iterator(_STATES_AT_ONCE):
        if snapshot.has_state(index):
            yield table.row(
                state_index=index,
                object_index=same.get(index, index),
                weight=weight,
                neighbours=neighbours,
                content=content,
                code=code,
                **{meta: held.get(name, "") for meta, name in zip(metas, names, strict=True)},
            )


def columns_of(campaign: Campaign) -> list[str]:
    """Return the names of the further columns of the uploaded list, in the order of the file; none without a list."""
    return Catalog.objects.filter(campaign=campaign).values_list("columns", flat=True).first() or []


def columns(snapshot: Snapshot) -> Iterator[Row]:
    """What the uploaded list has in its further columns, for each object."""
    yield tables.COLUMNS.header
    if names := columns_of(snapshot.campaign):
        for index, held in snapshot.campaign.states.values_list("index", "columns").iterator(_STATES_AT_ONCE):
            for name in names:
                yield tables.COLUMNS.row(state_index=index, column=name, value=held.get(name, ""))


def samples(snapshot: Snapshot) -> Iterator[Row]:
    """The chains themselves: the state after each step; step 0 is where the chain started."""
    yield tables.SAMPLES.header
    starts = snapshot.campaign.chains.values_list("index", "start__index", "start__content")
    first = ((chain, 0, state, content) for chain, state, content in starts if snapshot.has_start(chain))
    for chain, step, state, content in merge(first, _moves(snapshot), key=itemgetter(0, 1)):
        phase = snapshot.config.phase_of(step)
        yield tables.SAMPLES.row(chain_index=chain, step=step, state_index=state, content=content, phase=phase)


def _moves(snapshot: Snapshot) -> Iterator[tuple[int, int, int, str]]:
    """Yield each decided step's chain, number, and the state after it with its content."""
    accepts = Comparison.Verdict.ACCEPT
    content = Case(When(verdict=accepts, then="proposal__content"), default="current__content")
    found = snapshot.comparisons().values_list(
        "chain__index", "step", "verdict", "current__index", "proposal__index", content
    )
    for chain, step, verdict, current, proposal, after in found.iterator(_ROWS_AT_ONCE):
        if snapshot.is_decided(chain, step):
            yield chain, step, proposal if verdict == accepts else current, after


def ratings(snapshot: Snapshot) -> Iterator[Row]:
    """Every rating that a model gave an object, where the rule rates; otherwise none.

    How many replies one took is not known where another of the same turn could not be read.
    """
    yield tables.RATINGS.header
    columns = tables.RATINGS.ordered(
        state_index="state__index",
        judge_index="judge__index",
        slot="slot",
        rating="value",
        attempts="attempts",
        endpoint=_endpoints(snapshot.campaign),
        rated_at=Timestamp("rated_at"),
        identity=_identities(snapshot.campaign),
    )
    found = Rating.objects.filter(judge__campaign=snapshot.campaign, pk__lte=snapshot.last_rating)
    found = found.order_by("state__index", "judge__index", "slot")
    for row in found.values_list(*columns).iterator(_ROWS_AT_ONCE):
        if snapshot.has_state(row[0]):
            yield row


def scores(snapshot: Snapshot) -> Iterator[Row]:
    """The number that each scorer gave each object; an empty cell where it was asked and gave none."""
    yield tables.SCORES.header
    found = Score.objects.filter(scorer__campaign=snapshot.campaign).order_by("state__index", "scorer__index")
    for state, scorer, value in found.values_list("state__index", "scorer__name", "value").iterator(_ROWS_AT_ONCE):
        if snapshot.has_state(state):
            yield tables.SCORES.row(state_index=state, scorer=scorer, score=value)


def reasons(snapshot: Snapshot) -> Iterator[Row]:
    """What models thought before they voted, by the vote's chain, step, judge and slot."""
    yield tables.REASONS.header
    found = snapshot.votes().exclude(reason="").select_related("comparison__chain", "judge")
    found = found.order_by("comparison__chain__index", "comparison__step", "judge__index", "slot")
    for vote in found.iterator(_ROWS_AT_ONCE):
        chain, step = vote.comparison.chain.index, vote.comparison.step
        if snapshot.has_vote(chain, step, vote.number):
            yield tables.REASONS.row(
                chain_index=chain,
                step=step,
                judge_index=vote.judge.index,
                slot=vote.slot,
                reason=vote.shown_reason,
                cut=vote.is_reason_cut,
            )


def calls(snapshot: Snapshot) -> Iterator[Row]:
    """What asking models has taken by now, by each judge and by the writing of texts."""
    yield tables.CALLS.header
    for usage in snapshot.campaign.model_usage.all():
        named = {str(name): getattr(usage, str(name)) for name in tables.CALLS.header[1:]}
        yield tables.CALLS.row(judge_index=None if usage.is_of_proposals else usage.judge_index, **named)


def properties(snapshot: Snapshot) -> Iterator[Row]:
    """Every object that a chain was at with what can be measured of it."""
    table, visited = properties_table(snapshot.campaign), _visited(snapshot)
    yield table.header
    # Without what of the campaign is large, which is read with each object.
    for state in snapshot.campaign.states.select_related("campaign").defer("campaign__tuning").iterator(100):
        if state.index in visited:
            found = snapshot.campaign.object_kind.measures(objects.stored(state))
            yield table.row(**found, state_index=state.index, content=state.content)


def properties_table(campaign: Campaign) -> tables.Table:
    """Return properties.csv with a column for each measure of the campaign's objects."""
    return tables.with_measures(sampler.measures_of_kind(campaign.object_kind.name))


def _visited(snapshot: Snapshot) -> set[int]:
    """Return the numbers of the objects that a chain was at: where it started, and whatever it accepted."""
    starts = snapshot.campaign.chains.values_list("index", "start__index")
    accepted = snapshot.comparisons().filter(verdict=Comparison.Verdict.ACCEPT).order_by()
    found = accepted.values_list("chain__index", "step", "proposal__index").iterator(_ROWS_AT_ONCE)
    decided = {state for chain, step, state in found if snapshot.is_decided(chain, step)}
    return decided | {state for chain, state in starts if snapshot.has_start(chain)}


def identities(campaign: Campaign) -> dict[int, int]:
    """Return the number, from 1, of each identity that models' replies had, by its primary key."""
    found = campaign.judges.filter(identities__isnull=False).order_by("identities")
    return {pk: number for number, pk in enumerate(found.values_list("identities", flat=True), start=1)}


def _identities(campaign: Campaign) -> Case:
    return by_key("identity", {pk: str(number) for pk, number in identities(campaign).items()})


def _questions(campaign: Campaign) -> Case:
    return by_key("judge", {judge.pk: sampler.escaped(judge.question) for judge in campaign.judges.all()})


def _endpoints(campaign: Campaign) -> Case:
    judges = campaign.judges.select_related("endpoint")
    return by_key("judge", {judge.pk: sampler.escaped(judge.answered_by) for judge in judges})


Happened = tuple[datetime, str, int | None, dict[str, Any]]
"""When, of which kind, about whom by their primary key, and what it says; `by` is the role of a researcher."""


def events(snapshot: Snapshot) -> Iterator[Row]:
    """Yield the header and a row for each event; none of a draft. As many queries as there are kinds of tables."""
    yield tables.EVENTS.header
    if snapshot.campaign.started_at is None:
        return
    numbers, found = numbers_in(snapshot.campaign), list(_events(snapshot, snapshot.campaign.started_at))
    for happened in hooks.load(hooks.RECORD_EVENTS):
        found += happened(snapshot.campaign)
    for number, (at, kind, voter, said) in enumerate(sorted(found, key=itemgetter(0)), start=1):
        by, who = said.pop("by", None), None if voter is None else numbers[voter]
        yield tables.EVENTS.row(number=number, at=at, kind=kind, by=by, voter=who, data=said)


def _events(snapshot: Snapshot, started_at: datetime) -> Iterator[Happened]:
    campaign = snapshot.campaign
    yield started_at, "started", None, {"seed_hash": campaign.seed_hash}
    if revealed_at := campaign.seed_revealed_at or campaign.finished_at:
        yield revealed_at, "seed-revealed", None, {}
    yield from _of_links(campaign, started_at)
    if campaign.tuning and "ended_at" in campaign.tuning:
        yield datetime.fromisoformat(campaign.tuning["ended_at"]), "warm-up-ended", None, {}
    opened = campaign.chain_demands.filter(chain__isnull=False).order_by("chain__index")
    for at, index, voter, is_ahead in opened.values_list("opened_at", "chain__index", "voter", "is_ahead"):
        if index in snapshot.steps and at is not None:
            yield at, "chain-opened", voter, {"chain_index": index, "reason": "ahead" if is_ahead else "wait"}
    found = Event.objects.filter(campaign=campaign)
    for at, kind, voter, data in found.values_list("at", "kind", "voter", "data"):
        if _had_happened(snapshot, kind, data):
            yield at, kind, voter, public(kind, data) | {"by": data.get("by")}


def _had_happened(snapshot: Snapshot, kind: str, data: dict[str, Any]) -> bool:
    """False for what would not fit the other tables, because it came after their moment."""
    if kind == Event.Kind.EXTENDED:
        return bool(data["steps_after"] <= snapshot.config.steps)
    if kind == Event.Kind.CHAIN_ENDED:
        return (data["chain_index"], data["step"]) in snapshot.ended
    is_of_step = kind in (Event.Kind.STEP_SUSPENDED, Event.Kind.STEP_TRIED_AGAIN)
    return not is_of_step or snapshot.has_step(data["chain_index"], data["step"])


def _of_links(campaign: Campaign, started_at: datetime) -> Iterator[Happened]:
    """Yield links that were made after those of the start, and links that were closed, each by its number."""
    links = campaign.invitations.order_by("pk").values_list("created_at", "revoked_at", "is_single_use")
    for number, (made, closed, is_single_use) in enumerate(links, start=1):
        # Those of the start are made in its transaction, a moment later; that of everybody is the first.
        if number > max(1, len(campaign.config.panelists)):
            yield made, "link-made", None, {"link": number, "people": "one" if is_single_use else "many"}
        if closed is not None:
            yield closed, "link-closed", None, {"link": number}


@dataclass(frozen=True)
class StepRange:
    """Some steps of one chain, in a row.

    Args:
        chain: its index.
        after: the step before the first one.
        last: the last one.
    """

    chain: int
    after: int
    last: int

    def of(self, chain: str, step: str) -> Q:
        """Return the condition on rows, by the names of these columns."""
        return Q(**{chain: self.chain, f"{step}__gt": self.after, f"{step}__lte": self.last})


@dataclass(frozen=True)
class Snapshot:
    """A campaign as it stood at one moment."""

    campaign: Campaign
    config: sampler.ChainConfig
    steps: dict[int, int]
    """Decided steps by each chain's index; chains that are not in it opened afterwards."""
    open_votes: dict[tuple[int, int], int]
    """Counted votes of each open comparison, by its chain's index and its step."""
    last_opened: dict[int, int]
    """The last step opened by each chain's index."""
    ended: frozenset[tuple[int, int]]
    """The open comparisons at which a chain was ended, by its index and their step: they never get a verdict."""
    last_vote: int
    """Late votes with a greater id came afterwards."""
    last_rating: int
    """Ratings with a greater id came afterwards."""
    tuning: dict[str, Any] | None
    """What the warm-up has chosen, if it had by then."""
    step_range: StepRange | None = None
    """The steps that the tables of steps, votes and samples have; None for all."""

    @classmethod
    def now(cls, campaign: Campaign) -> Snapshot:
        # Open comparisons first. One decided before the second query is exported as decided, with all its votes,
        # because its chain's step says so.
        found = Comparison.objects.filter(chain__campaign=campaign, verdict__isnull=True)
        columns = ("chain__index", "step", "cast")
        opened = list(found.annotate(cast=Max("votes__number")).values_list(*columns))
        last_vote = Vote.objects.filter(judge__campaign=campaign).aggregate(last=Max("pk"))["last"] or 0
        steps = dict(campaign.chains.values_list("index", "step"))
        at_ends = found.filter(chain__ended_at__isnull=False, suspended_at__isnull=False)
        ended = frozenset(at_ends.values_list("chain__index", "step")) & {(index, step) for index, step, _ in opened}
        # Last, so that it has all ratings of the steps that are decided.
        last_rating = Rating.objects.filter(judge__campaign=campaign).aggregate(last=Max("pk"))["last"] or 0
        # Also the config: somebody may have extended the campaign, and the steps may be those of longer chains.
        campaign.refresh_from_db(fields=["config_data", "steps_added", "tuning"])
        tuning = campaign.tuning
        # A choice that came after the steps were counted is no part of the record; one that no step led to is.
        config = campaign.config
        first = [step for index, step in steps.items() if index < config.chains]
        is_made = tuning and ("ended_at" in tuning or min(first, default=0) >= campaign.warm_up)
        last_opened = dict(steps)
        for index, step, *_ in opened:
            last_opened[index] = max(step, last_opened[index])
        return cls(
            campaign=campaign,
            config=config,
            steps=steps,
            open_votes={(index, step): cast or 0 for index, step, cast in opened},
            last_opened=last_opened,
            ended=ended,
            last_vote=last_vote,
            last_rating=last_rating,
            tuning=tuning if is_made else None,
        )

    def of(self, step_range: StepRange) -> Snapshot:
        """Return the same moment, with some decided steps of one chain."""
        last = min(step_range.last, self.steps.get(step_range.chain, -1))
        return replace(self, open_votes={}, step_range=replace(step_range, last=last))

    def has_start(self, chain: int) -> bool:
        """True when where the chain at this index started is among the samples."""
        if chain not in self.steps:
            return False
        return self.step_range is None or (self.step_range.chain == chain and self.step_range.after < 0)

    def comparisons(self) -> QuerySet[Comparison]:
        """Return the comparisons in the order of the steps."""
        found = Comparison.objects.filter(chain__campaign=self.campaign).order_by("chain__index", "step")
        return found.filter(self.step_range.of("chain__index", "step")) if self.step_range else found

    def votes(self) -> QuerySet[Vote]:
        """Return the votes; `has_vote` says which were there."""
        # By way of the chains: SQLite then finds the votes in the order of the steps, and sorts none.
        found = Vote.objects.filter(comparison__chain__campaign=self.campaign)
        found = found.filter(Q(number__isnull=False) | Q(pk__lte=self.last_vote))
        wanted = self.step_range and self.step_range.of("comparison__chain__index", "comparison__step")
        return found.filter(wanted) if wanted else found

    def has_state(self, index: int) -> bool:
        """False for the number of an object that a chain made afterwards."""
        if not self.config.generates:
            return True
        step, chain = divmod(index, self.config.chains_at_most)
        return step <= self.last_opened.get(chain, -1)

    def is_decided(self, chain: int, step: int) -> bool:
        """True when the step of the chain at this index had its verdict."""
        return step <= self.steps.get(chain, -1)

    def has_step(self, chain: int, step: int) -> bool:
        """True when the step of the chain at this index was there, open or decided."""
        return self.is_decided(chain, step) or (chain, step) in self.open_votes

    def has_vote(self, chain: int, step: int, number: int | None) -> bool:
        """True when a vote of this number was there, counted or late."""
        if self.is_decided(chain, step):
            return True
        counted_by_then = self.open_votes.get((chain, step))
        return counted_by_then is not None and (number is None or number <= counted_by_then)
