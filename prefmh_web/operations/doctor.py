"""What is stuck, why, and what mends it. Looks only; changes nothing."""

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta

from django.conf import settings
from django.db.models import F, Max, Q, QuerySet
from django.utils import timezone

from prefmh_web.annotate.models import Lease
from prefmh_web.campaigns import claims
from prefmh_web.campaigns.models import Campaign, Catalog, Chain, Comparison, Judge
from prefmh_web.campaigns.proposing import unopened_chains, waiting_chains
from prefmh_web.operations import queues, readiness

# Two dozen sweeps: what waits longer waits for something that does not come by itself.
PATIENCE = timedelta(minutes=2)
# A model on a small machine may take minutes over a picture, a large file may be long in reading.
_MUCH_PATIENCE = 5 * PATIENCE
_LONG_QUEUE = 1000
_LITTLE_SPACE = 2**30


@dataclass(frozen=True)
class Finding:
    """One thing that does not go on, in a sentence, and the mend in another."""

    what: str
    mend: str

    def __str__(self) -> str:
        return f"{self.what}\n    {self.mend}"


def findings() -> list[Finding]:
    """Return everything found. What cannot be asked without the database is left out when that is the finding."""
    queues.look_ahead(workers=True)
    if found := list(_database()):
        return [*found, *_queues()]
    return [finding for check in _CHECKS for finding in check()]


def _database() -> Iterator[Finding]:
    try:
        missing = readiness.missing_migrations()
    except readiness.NotReady as reason:
        yield Finding(str(reason), "Start PostgreSQL, and compare DATABASE_URL with where it listens.")
        return
    if missing:
        names = ", ".join(missing[:3]) + (" ..." if len(missing) > 3 else "")
        yield Finding(f"The database lacks {len(missing)} migrations ({names}).", "Run: manage.py migrate")


def _queues() -> Iterator[Finding]:
    is_in_trouble = False
    try:
        queues.try_channel_layer()
    except queues.Unreachable as reason:
        is_in_trouble = True
        yield Finding(
            f"{reason} Open pages are told of changes late.",
            "Start Redis, or wake it if it is frozen, and compare REDIS_URL. Votes are stored without it.",
        )
    try:
        lengths, consumers = queues.lengths(), queues.consumers(is_urgent=is_in_trouble)
    except queues.Unreachable as reason:
        yield Finding(
            f"{reason} No task is done: votes are stored, but no new pair is made.",
            "Start the broker, or wake it if it is frozen; compare CELERY_BROKER_URL and REDIS_URL.",
        )
        return
    if not settings.EMBEDDED:
        yield from _unserved(lengths, consumers)
    for queue, length in lengths.items():
        if length > _LONG_QUEUE:
            yield Finding(
                f"{length} messages wait in the queue “{queue}”.", f"Start another worker with --queues {queue}."
            )


def _unserved(lengths: dict[str, int], consumers: dict[str, set[str]]) -> Iterator[Finding]:
    for queue, length in lengths.items():
        # Model servers and accelerators are not everybody's: their queues need a worker once something waits.
        if queue not in consumers and (length or queue in queues.NEEDED):
            yield Finding(
                f"No worker takes from the queue “{queue}”, where {length} messages wait.",
                f"Start one: celery -A prefmh_web worker --queues {queue}",
            )


def _chains() -> Iterator[Finding]:
    for _, wait in _without_question(waiting_chains(), PATIENCE):
        yield Finding(
            f"{wait}.", "A worker and beat must run; the worker's log says why the task “propose” fails, if it does."
        )
    resting = unopened_chains().filter(waits_until__gt=timezone.now()).exclude(waits_because="")
    for chain, wait in _without_question(resting, PATIENCE):
        yield Finding(f"{wait}: {chain.waits_because}.", "It is tried again and again; mend what the reason names.")
    for _, wait in _without_question(unopened_chains().filter(claims.are_claimed()), _MUCH_PATIENCE):
        yield Finding(
            f"{wait}, and a model is at work for it.",
            "A model that is merely slow needs patience; one that hangs, its worker or its server started again.",
        )


def _without_question(chains: QuerySet[Chain], patience: timedelta) -> Iterator[tuple[Chain, str]]:
    """Yield those of the chains that have had no open comparison for long, with a sentence that says for how long."""
    since = timezone.now() - patience
    chains = chains.annotate(decided_at=Max("comparisons__decided_at")).select_related("campaign")
    stuck = chains.filter(Q(decided_at__lt=since) | Q(decided_at=None, campaign__started_at__lt=since))
    for chain in stuck.order_by("campaign", "place"):
        since_when = chain.decided_at or chain.campaign.started_at
        yield (
            chain,
            f"“{chain.campaign}”: chain {chain.place} has waited for the proposal of step {chain.step + 1} "
            f"for {_minutes(since_when)}",
        )


def _people() -> Iterator[Finding]:
    """Find the open comparisons that nobody who has joined may answer."""
    running = Comparison.objects.filter(verdict__isnull=True, chain__campaign__status=Campaign.Status.RUNNING)
    now = timezone.now()
    for campaign in Campaign.objects.filter(status=Campaign.Status.RUNNING):
        people = set(campaign.annotators.filter(removed_at__isnull=True).values_list("pk", flat=True))
        opened = running.filter(chain__campaign=campaign)
        oldest = opened.order_by("opened_at").first()
        is_anybody_there = campaign.annotators.filter(online_until__gt=now).exists()
        if people and not is_anybody_there and oldest and oldest.opened_at < now - PATIENCE:
            yield Finding(
                f"“{campaign}”: {opened.count()} pairs wait for votes, and none of {len(people)} people is online.",
                "Send the invitation again, or pause the campaign.",
            )
        judges = list(campaign.judges.filter(endpoint=None))
        for comparison in opened.select_related("chain").prefetch_related("votes"):
            for judge in judges:
                yield from _unanswerable(campaign, comparison, judge, people)


def _unanswerable(campaign: Campaign, comparison: Comparison, judge: Judge, people: set[int]) -> Iterator[Finding]:
    cast = [vote for vote in comparison.votes.all() if vote.counted and vote.judge_id == judge.pk]
    answered = len(cast)
    if 0 < answered < judge.budget and people <= {vote.annotator_id for vote in cast}:
        yield Finding(
            f"“{campaign}”: step {comparison.step} of chain {comparison.chain.place} needs up to {judge.budget} votes "
            f"on “{judge}”; {answered} {'has' if answered == 1 else 'have'} been cast, and nobody else has joined.",
            "Nobody answers the same question on a pair twice: invite at least "
            f"{judge.budget - answered} more {'person' if judge.budget - answered == 1 else 'people'}.",
        )


def _leases() -> Iterator[Finding]:
    overdue = Lease.objects.filter(ended_at__isnull=True, expires_at__lt=timezone.now() - PATIENCE)
    if count := overdue.count():
        yield Finding(
            f"{count} pairs are promised to people whose time is over, and nobody takes them back.",
            "The sweep does not run. In server mode start beat (celery -A prefmh_web beat) and a worker; "
            "embedded, start `manage.py serve` again.",
        )


def _catalogs() -> Iterator[Finding]:
    slow = Catalog.objects.filter(
        status=Catalog.Status.READING, campaign__created_at__lt=timezone.now() - _MUCH_PATIENCE
    )
    for catalog in slow.select_related("campaign"):
        rows = f"{catalog.rows_read} of {catalog.rows_total or 'unknown'} rows"
        yield Finding(
            f"“{catalog.campaign}”: its file {catalog} is still being read ({rows}, attempt {catalog.attempts}).",
            "A worker must take from the queue “files”. A file that is merely large needs patience; "
            "one that takes the worker down is refused after a second attempt.",
        )


def _finishing() -> Iterator[Finding]:
    unfinished = Chain.objects.filter(step__lt=F("length"))
    for campaign in Campaign.objects.filter(status=Campaign.Status.RUNNING).exclude(chains__in=unfinished):
        yield Finding(
            f"“{campaign}”: every chain is at its end, and the campaign is not marked as finished.",
            "The next sweep does it; start beat and a worker if this stays.",
        )


def _disk() -> Iterator[Finding]:
    free = shutil.disk_usage(settings.DATA_DIR).free
    if free < _LITTLE_SPACE:
        yield Finding(f"Only {free // 2**20} MiB are free in {settings.DATA_DIR}.", "Uploads will fail; make room.")


def _minutes(since) -> str:
    return f"{int((timezone.now() - since).total_seconds() // 60)} minutes"


_CHECKS: tuple[Callable[[], Iterator[Finding]], ...] = (
    _queues, _chains, _people, _leases, _catalogs, _finishing, _disk
)  # fmt: skip
