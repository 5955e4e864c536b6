"""The record as files: recipe.json, judges.json and five CSV files, streamed row by row, one by one or as one ZIP.

All files of one export speak of one moment. That moment is a `Cut`, taken in one query each: how many steps each
chain had decided, and how many votes its open comparison had. Whatever is older never changes, so the files can
be written while people go on voting. Ratings never change either; those an open comparison has are no part of it.
"""

import csv
import io
import json
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from django.db.models import F, Max, Q
from django.utils import timezone

import sampler
from prefmh_web.campaigns import started
from prefmh_web.campaigns.models import Campaign, Chain, Comparison, Judge, Rating, State, Vote
from prefmh_web.campaigns.record.cells import harmless

Row = list[object]
_ROWS_PER_CHUNK = 500
# The code of an image may be as long as the file of a small one.
_STATES_PER_CHUNK = 20
_CHARACTERS_PER_CHUNK = 2**20


@dataclass(frozen=True)
class Cut:
    """The moment an export speaks of."""

    campaign: Campaign
    steps: dict[int, int]
    """Decided steps by chain."""
    open_votes: dict[int, int]
    """Counted votes by open comparison."""
    last_opened: dict[int, int]
    """The last step opened by each chain's place."""
    last_vote: int
    """Late votes with a greater id came after the cut."""
    last_rating: int
    """Ratings with a greater id came after the cut."""

    @classmethod
    def now(cls, campaign: Campaign) -> "Cut":
        # Open comparisons first. One decided before the second query is exported as decided, with all its votes,
        # because its chain's step says so.
        found = Comparison.objects.filter(chain__campaign=campaign, verdict__isnull=True)
        opened = list(found.annotate(cast=Max("votes__number")).values_list("pk", "cast", "chain__place", "step"))
        last_vote = Vote.objects.filter(judge__campaign=campaign).aggregate(last=Max("pk"))["last"] or 0
        chains = list(campaign.chains.values_list("pk", "place", "step"))
        # Last, so that it has all ratings of the steps that are decided.
        last_rating = Rating.objects.filter(judge__campaign=campaign).aggregate(last=Max("pk"))["last"] or 0
        last_opened = {place: step for _, place, step in chains}
        for _, _, place, step in opened:
            last_opened[place] = max(step, last_opened[place])
        return cls(
            campaign=campaign,
            steps={pk: step for pk, _, step in chains},
            open_votes={pk: cast or 0 for pk, cast, _, _ in opened},
            last_opened=last_opened,
            last_vote=last_vote,
            last_rating=last_rating,
        )

    def has_state(self, state: State) -> bool:
        """False for an object that a chain made after the cut."""
        if self.campaign.has_catalog:
            return True
        step, chain = divmod(state.place, self.campaign.recipe["chains"])
        return step <= self.last_opened[chain]

    def is_decided(self, comparison: Comparison) -> bool:
        return comparison.step <= self.steps[comparison.chain_id]

    def includes(self, comparison: Comparison) -> bool:
        return self.is_decided(comparison) or comparison.pk in self.open_votes


def states(cut: Cut) -> Iterator[Row]:
    """Every object: a catalog's with its weight in p0 and its neighbours, one that a chain made with its code."""
    yield ["state", "weight", "neighbours", "content", "code"]
    for state in cut.campaign.states.iterator(_STATES_PER_CHUNK):
        if cut.has_state(state):
            weight = "" if state.weight is None else repr(state.weight)
            neighbours = " ".join(str(place) for place in state.neighbours)
            yield [state.place, weight, neighbours, harmless(state.content), harmless(state.code)]


def steps(cut: Cut) -> Iterator[Row]:
    """Every comparison in order, with what the verdict was computed from; open ones have no verdict and no uniform.

    Where the rule rates, that is the mean rating of either object by each judge; the ratings are in `ratings`.
    """
    yield [
        "chain", "step", "current", "proposal", "log_r0", "uniform", "budgets", "votes_cast", "votes_for",
        "verdict", "opened_at", "decided_at", "current_ratings", "proposal_ratings",
    ]  # fmt: skip
    judges = list(cut.campaign.judges.all())
    budgets = " ".join(str(judge.budget) for judge in judges)
    for comparison in _comparisons(cut, with_votes=True):
        decided = cut.is_decided(comparison)
        tallies = _tallies(comparison, len(judges), None if decided else cut.open_votes[comparison.pk])
        means = _means(cut.campaign, comparison) if decided else ("", "")
        yield [
            comparison.chain.place, comparison.step, comparison.current.place, comparison.proposal.place,
            repr(comparison.log_r0), repr(comparison.uniform) if decided else "", budgets, *tallies,
            comparison.verdict if decided else "", _time(comparison.opened_at),
            _time(comparison.decided_at) if decided else "", *means,
        ]  # fmt: skip


def votes(cut: Cut) -> Iterator[Row]:
    """Every vote in the order it was counted; one that came too late has no number.

    A model's has no annotator but an endpoint, how many replies it took, which of the identities in judges.json the
    reply had and, if it was drawn from one, the probability of a vote for the proposal.
    """
    yield [
        "chain", "step", "number", "judge", "question", "annotator", "proposal_side", "chosen_side",
        "for_proposal", "elapsed_ms", "cast_at", "endpoint", "slot", "preference", "asks", "identity",
    ]  # fmt: skip
    for vote in _votes(cut):
        yield [
            vote.comparison.chain.place, vote.comparison.step, vote.number or "", vote.judge.place,
            harmless(vote.judge.question), vote.annotator_id or "", vote.proposal_side, vote.chosen_side,
            int(vote.for_proposal), _known(vote.elapsed_ms), _time(vote.cast_at),
            harmless(vote.judge.answered_by), _known(vote.slot),
            "" if vote.preference is None else repr(vote.preference), _known(vote.asks), _known(vote.identity_id),
        ]  # fmt: skip


def samples(cut: Cut) -> Iterator[Row]:
    """The chains themselves: the state after each step; step 0 is where the chain started."""
    yield ["chain", "step", "state", "content"]
    for chain in cut.campaign.chains.select_related("start").defer("start__code"):
        yield [chain.place, 0, chain.start.place, harmless(chain.start.content)]
        for comparison in _comparisons(cut, chain):
            if cut.is_decided(comparison):
                accepted = comparison.verdict == Comparison.Verdict.ACCEPT
                state = comparison.proposal if accepted else comparison.current
                yield [chain.place, comparison.step, state.place, harmless(state.content)]


def ratings(cut: Cut) -> Iterator[Row]:
    """Every rating that a model gave an object, where the rule rates; otherwise none.

    How many replies one took is not known where another of the same turn could not be read.
    """
    yield ["state", "judge", "slot", "rating", "asks", "endpoint", "rated_at", "identity"]
    found = Rating.objects.filter(judge__campaign=cut.campaign, pk__lte=cut.last_rating)
    found = found.select_related("state", "judge__endpoint").defer("state__code")
    found = found.order_by("state__place", "judge__place", "slot")
    for rating in found.iterator(_ROWS_PER_CHUNK):
        if cut.has_state(rating.state):
            yield [
                rating.state.place, rating.judge.place, rating.slot, rating.value, _known(rating.asks),
                harmless(rating.judge.answered_by), _time(rating.rated_at), _known(rating.identity_id),
            ]  # fmt: skip


TABLES: dict[str, Callable[[Cut], Iterator[Row]]] = {
    "votes.csv": votes,
    "steps.csv": steps,
    "states.csv": states,
    "samples.csv": samples,
    "ratings.csv": ratings,
}
RECIPE, JUDGES = "recipe.json", "judges.json"


def recipe(campaign: Campaign) -> str:
    """Return the recipe as JSON."""
    return json.dumps(campaign.recipe, indent=2, ensure_ascii=False) + "\n"


def judges(campaign: Campaign) -> str:
    """Return what answers each question, as JSON: for a model, all that was fixed when the campaign started.

    `identities` are what its replies said they were from; `votes` and `ratings` name them by their numbers. One that
    is not accepted gave none.
    """
    found = campaign.judges.select_related("endpoint").prefetch_related("identities")
    return json.dumps([_judge(judge) for judge in found], indent=2, ensure_ascii=False) + "\n"


def _judge(judge: Judge) -> dict[str, object]:
    about = {"judge": judge.place, "question": judge.question, "source": "model" if judge.is_model else "people"}
    if not judge.is_model:
        return about
    identities = [
        {
            "identity": identity.pk,
            "model": identity.model,
            "system_fingerprint": identity.system_fingerprint,
            "first_seen_at": _time(identity.first_seen_at),
            "accepted_at": _time(identity.accepted_at) if identity.accepted_at else None,
        }
        for identity in judge.identities.all()
    ]
    frozen = judge.frozen or {"frozen": "never: it was asked by versions only that did not do so"}
    return about | {"stopped_because": judge.stopped_because, **frozen, "identities": identities}


def csv_text(cut: Cut, name: str) -> Iterator[str]:
    """Yield one of `TABLES` as CSV text, some hundred rows at a time."""
    return as_csv(TABLES[name](cut))


def as_csv(rows: Iterator[Row]) -> Iterator[str]:
    """Yield rows as CSV text, some hundred at a time, or fewer where they are long."""
    buffer = io.StringIO()
    writer = csv.writer(buffer)
    for count, row in enumerate(rows, start=1):
        writer.writerow(row)
        if count % _ROWS_PER_CHUNK == 0 or buffer.tell() > _CHARACTERS_PER_CHUNK:
            yield _drain(buffer)
    yield _drain(buffer)


def archive(campaign: Campaign) -> Iterator[bytes]:
    """Yield a ZIP of the recipe and all tables, all cut at the same moment."""
    cut = Cut.now(campaign)
    written_at = timezone.now().timetuple()[:6]
    pipe = _Pipe()
    with zipfile.ZipFile(pipe, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(_entry(RECIPE, written_at), recipe(campaign))
        archive.writestr(_entry(JUDGES, written_at), judges(campaign))
        for name in TABLES:
            with archive.open(_entry(name, written_at), "w") as entry:
                for text in csv_text(cut, name):
                    entry.write(text.encode())
                    yield pipe.take()
    yield pipe.take()


def _entry(name: str, written_at: tuple[int, ...]) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name, date_time=written_at)
    entry.compress_type = zipfile.ZIP_DEFLATED
    return entry


def _comparisons(cut: Cut, chain: Chain | None = None, with_votes: bool = False) -> Iterator[Comparison]:
    found = Comparison.objects.filter(chain__campaign=cut.campaign)
    if chain is not None:
        found = found.filter(chain=chain)
    if with_votes:
        rated = ("current__ratings", "proposal__ratings") if cut.campaign.is_rated else ()
        found = found.prefetch_related("votes__judge", *rated)
    found = found.select_related("chain", "current", "proposal").defer("current__code", "proposal__code")
    found = found.order_by("chain__place", "step")
    return (comparison for comparison in found.iterator(_ROWS_PER_CHUNK) if cut.includes(comparison))


def _votes(cut: Cut) -> Iterator[Vote]:
    found = (
        Vote.objects.filter(judge__campaign=cut.campaign)
        .filter(Q(number__isnull=False) | Q(pk__lte=cut.last_vote))
        .select_related("comparison__chain", "judge__endpoint")
        .order_by("comparison__chain__place", "comparison__step", F("number").asc(nulls_last=True), "pk")
    )
    for vote in found.iterator(_ROWS_PER_CHUNK):
        counted_by_then = cut.open_votes.get(vote.comparison_id, 0)
        if cut.is_decided(vote.comparison) or (
            vote.comparison_id in cut.open_votes and (not vote.counted or vote.number <= counted_by_then)
        ):
            yield vote


def _tallies(comparison: Comparison, judges: int, up_to: int | None) -> tuple[str, str]:
    cast, votes_for = [0] * judges, [0] * judges
    for vote in comparison.votes.all():
        if vote.counted and (up_to is None or vote.number <= up_to):
            cast[vote.judge.place] += 1
            votes_for[vote.judge.place] += vote.for_proposal
    return " ".join(map(str, cast)), " ".join(map(str, votes_for))


def _means(campaign: Campaign, comparison: Comparison) -> tuple[str, str]:
    """Return the mean ratings that decided a step, by judge; nothing where none was needed."""
    if comparison.is_identity or not campaign.is_rated:
        return "", ""
    rule, budgets = started.rule_of(campaign), started.budgets_of(campaign)
    current, proposal = (
        " ".join(map(repr, sampler.mean_ratings(rule, budgets, started.ratings_of(campaign, state))))
        for state in (comparison.current, comparison.proposal)
    )
    return current, proposal


def _known(number: int | None) -> int | str:
    return "" if number is None else number


def _time(moment) -> str:
    return moment.isoformat(timespec="milliseconds")


def _drain(buffer: io.StringIO) -> str:
    text = buffer.getvalue()
    buffer.seek(0)
    buffer.truncate()
    return text


class _Pipe(io.RawIOBase):
    """What a ZIP writer has written and nobody has taken yet."""

    def __init__(self) -> None:
        self._chunks: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, data) -> int:
        self._chunks.append(bytes(data))
        return len(data)

    def take(self) -> bytes:
        data = b"".join(self._chunks)
        self._chunks.clear()
        return data
