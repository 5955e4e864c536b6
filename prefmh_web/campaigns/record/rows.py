"""The rows of the record's tables, as they stood at the moment of a `Snapshot`.

A campaign may have a million votes. So rows are plain tuples read in pieces, never instances of models; most cells of
votes and ratings are written by the database (`cells.py`). The steps, which need more, are in `steps.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import merge
from operator import itemgetter

from django.db.models import Case, F, Min, Q, QuerySet, When, Window

from prefmh_web.campaigns.models import Campaign, Catalog, Comparison, Rating, Vote
from prefmh_web.campaigns.record import cells
from prefmh_web.campaigns.record.snapshot import Snapshot
from sampler import schema

Row = Sequence[schema.Cell]
_ROWS_AT_ONCE = 2000
# The code of an image may be as long as the file of a small one.
_STATES_AT_ONCE = 20


def states(snapshot: Snapshot) -> Iterator[Row]:
    """Every object: a catalog's with its weight in p0, its neighbours and what else the list says of it; one that a
    chain made with its code.
    """
    names, same = columns_of(snapshot.campaign), _same_objects(snapshot.campaign)
    table, metas = schema.states_table(names), schema.meta_names(names)
    yield table.header
    found = snapshot.campaign.states.values_list("place", "weight", "neighbours", "content", "code", "columns")
    for place, weight, neighbours, content, code, held in found.iterator(_STATES_AT_ONCE):
        if snapshot.has_state(place):
            further = {meta: held.get(name, "") for meta, name in zip(metas, names, strict=True)}
            further["object"] = same.get(place, place)
            yield table.row(state=place, weight=weight, neighbours=neighbours, content=content, code=code, **further)


def _same_objects(campaign: Campaign) -> dict[int, int]:
    """Return, of each state that has been made before, the number that it had first."""
    first = Window(Min("place"), partition_by=[F("content")])
    again = campaign.states.order_by().annotate(first=first).exclude(place=F("first"))
    return dict(again.values_list("place", "first"))


def columns_of(campaign: Campaign) -> list[str]:
    """Return the names of the further columns of the uploaded list, in the order of the file; none without a list."""
    return Catalog.objects.filter(campaign=campaign).values_list("columns", flat=True).first() or []


def columns(snapshot: Snapshot) -> Iterator[Row]:
    """What the uploaded list has in its further columns, for each object."""
    yield schema.COLUMNS.header
    names = columns_of(snapshot.campaign)
    for place, held in snapshot.campaign.states.values_list("place", "columns").iterator(_STATES_AT_ONCE):
        for name in names:
            yield schema.COLUMNS.row(state=place, column=name, value=held.get(name, ""))


def votes(snapshot: Snapshot) -> Iterator[Row]:
    """Every vote in the order it was counted; one that came too late has no number.

    A model's has no annotator but an endpoint, how many replies it took, which of the identities in judges.json the
    reply had and, if it was drawn from one, the probability of a vote for the proposal.
    """
    yield schema.VOTES.header
    columns = schema.VOTES.ordered(
        chain="comparison__chain__place",
        step="comparison__step",
        number="number",
        judge="judge__place",
        question=_questions(snapshot.campaign),
        annotator="annotator_id",
        proposal_side="proposal_side",
        chosen_side="chosen_side",
        for_proposal=cells.FOR_PROPOSAL,
        elapsed_ms="elapsed_ms",
        cast_at=cells.Moment("cast_at"),
        endpoint=_endpoints(snapshot.campaign),
        slot="slot",
        preference="preference",
        asks="asks",
        identity="identity_id",
        lease=cells.LEASE,
        first_state=cells.FIRST_STATE,
        second_state=cells.SECOND_STATE,
        chosen_state=cells.CHOSEN_STATE,
        hidden_ms="hidden_ms",
        layout="layout",
        translated=cells.TRANSLATED,
    )
    for row in votes_of(snapshot).values_list(*columns).iterator(_ROWS_AT_ONCE):
        if snapshot.has_vote(*row[:3]):
            yield row


def votes_of(snapshot: Snapshot) -> QuerySet[Vote]:
    """Return the votes in the order in which they were counted; `Snapshot.has_vote` says which were there."""
    found = snapshot.votes().filter(Q(number__isnull=False) | Q(pk__lte=snapshot.last_vote))
    return found.order_by("comparison__chain__place", "comparison__step", F("number").asc(nulls_last=True), "pk")


def ratings(snapshot: Snapshot) -> Iterator[Row]:
    """Every rating that a model gave an object, where the rule rates; otherwise none.

    How many replies one took is not known where another of the same turn could not be read.
    """
    yield schema.RATINGS.header
    columns = schema.RATINGS.ordered(
        state="state__place",
        judge="judge__place",
        slot="slot",
        rating="value",
        asks="asks",
        endpoint=_endpoints(snapshot.campaign),
        rated_at=cells.Moment("rated_at"),
        identity="identity_id",
    )
    found = Rating.objects.filter(judge__campaign=snapshot.campaign, pk__lte=snapshot.last_rating)
    found = found.order_by("state__place", "judge__place", "slot")
    for row in found.values_list(*columns).iterator(_ROWS_AT_ONCE):
        if snapshot.has_state(row[0]):
            yield row


def samples(snapshot: Snapshot) -> Iterator[Row]:
    """The chains themselves: the state after each step; step 0 is where the chain started."""
    config = snapshot.config
    if config.has_phases:
        yield schema.SAMPLES_WITH_PHASES.header
        for chain, step, state, content in _visits(snapshot):
            phase = config.phase_of(step)
            yield schema.SAMPLES_WITH_PHASES.row(chain=chain, step=step, state=state, content=content, phase=phase)
        return
    yield schema.SAMPLES.header
    for chain, step, state, content in _visits(snapshot):
        yield schema.SAMPLES.row(chain=chain, step=step, state=state, content=content)


def _visits(snapshot: Snapshot) -> Iterator[tuple[int, int, int, str]]:
    starts = snapshot.campaign.chains.values_list("place", "start__place", "start__content")
    first = ((chain, 0, state, content) for chain, state, content in starts if snapshot.has_start(chain))
    yield from merge(first, _moves(snapshot), key=itemgetter(0, 1))


def _moves(snapshot: Snapshot) -> Iterator[tuple[int, int, int, str]]:
    """Yield each decided step's chain, number, and the state after it with its content."""
    accepts = Comparison.Verdict.ACCEPT
    content = Case(When(verdict=accepts, then="proposal__content"), default="current__content")
    columns = ("chain__place", "step", "verdict", "current__place", "proposal__place", content)
    found = snapshot.comparisons()
    for chain, step, verdict, current, proposal, after in found.values_list(*columns).iterator(_ROWS_AT_ONCE):
        if snapshot.is_decided(chain, step):
            yield chain, step, proposal if verdict == accepts else current, after


def chains(snapshot: Snapshot) -> Iterator[Row]:
    """When and why each chain opened: at the start, or for whom who would have waited, or soon would."""
    yield schema.CHAINS.header
    campaign = snapshot.campaign
    columns = ("place", "opening__opened_at", "opening__annotator_id", "opening__is_ahead")
    for place, opened_at, annotator, is_ahead in campaign.chains.order_by("place").values_list(*columns):
        if place in snapshot.steps:
            for_a_person = schema.AHEAD if is_ahead else schema.FOR_A_PERSON
            reason = schema.AT_START if annotator is None else for_a_person
            opened_at = opened_at or campaign.started_at
            yield schema.CHAINS.row(chain=place, opened_at=opened_at, reason=reason, annotator=annotator)


def extensions(snapshot: Snapshot) -> Iterator[Row]:
    """What a researcher added to the steps, and when."""
    yield schema.EXTENSIONS.header
    for each in snapshot.extensions:
        yield schema.EXTENSIONS.row(
            extension=each.number,
            steps_before=each.steps_before,
            steps_after=each.steps_after,
            extended_at=each.at,
        )


def _questions(campaign: Campaign) -> Case:
    return cells.of_judge({judge.pk: schema.escaped(judge.question) for judge in campaign.judges.all()})


def _endpoints(campaign: Campaign) -> Case:
    judges = campaign.judges.select_related("endpoint")
    return cells.of_judge({judge.pk: schema.escaped(judge.answered_by) for judge in judges})
