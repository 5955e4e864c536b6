"""What is stuck, why, and what fixes it. Looks only, and tries the programs in SCORERS; changes nothing."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta

from django.conf import settings
from django.db.models import Count, F, Max, Q, QuerySet
from django.utils import timezone

from prefmh_web.campaigns.models import Campaign, CampaignScorer, Catalog, Chain, Comparison, Judge, Lease, Turn
from prefmh_web.campaigns.proposals import drawing
from prefmh_web.campaigns.proposals.drawing import unopened_chains, waiting_chains
from prefmh_web.objects import OBJECT_KINDS
from prefmh_web.operations import probes
from prefmh_web.scorers import NoScore, ScorerError, clashing_names, commands, offered

# Two dozen sweeps: what waits longer waits for something that does not come by itself.
PATIENCE = timedelta(minutes=2)
# A model on a small machine may take minutes over a picture, a large file may be long in reading.
_MUCH_PATIENCE = 5 * PATIENCE
_LONG_QUEUE = 1000
_LITTLE_SPACE = 2**30


@dataclass(frozen=True)
class Finding:
    """One thing that does not go on, in a sentence, and the fix in another."""

    what: str
    fix: str

    def __str__(self) -> str:
        return f"{self.what}\n    {self.fix}"


def findings() -> list[Finding]:
    """Return everything found. What cannot be asked without the database is left out when that is the finding."""
    probes.start_probes(workers=True)
    if found := list(_database()):
        return [*found, *_queues()]
    return [finding for check in _CHECKS for finding in check()]


def _database() -> Iterator[Finding]:
    try:
        missing = probes.missing_migrations()
    except probes.NotReady as reason:
        fix = "Start PostgreSQL, and check that DATABASE_URL has its address."
        if settings.EMBEDDED:
            fix = "Look at the disk and the permissions of prefmh.sqlite3 in PREFMH_DATA, or put a backup in its place."
        yield Finding(str(reason), fix)
        return
    if missing:
        names = ", ".join(missing[:3]) + (" ..." if len(missing) > 3 else "")
        yield Finding(f"{len(missing)} migrations have not been applied ({names}).", "Run: manage.py migrate")


def _queues() -> Iterator[Finding]:
    is_in_trouble = False
    try:
        probes.try_channel_layer()
    except probes.Unreachable as reason:
        is_in_trouble = True
        yield Finding(
            f"{reason} Open pages update late.",
            "Start Redis, or resume it if it is suspended, and check REDIS_URL. Votes are stored without it.",
        )
    try:
        lengths, consumers = probes.lengths(), probes.consumers(is_urgent=is_in_trouble)
    except probes.Unreachable as reason:
        yield Finding(
            f"{reason} No tasks run: votes are stored, but no new pairs are made.",
            "Start the broker, or resume it if it is suspended; RabbitMQ also waits for free disk and memory. Check "
            "CELERY_BROKER_URL and REDIS_URL.",
        )
        return
    if not settings.EMBEDDED:
        yield from _unserved(lengths, consumers)
    for queue, length in lengths.items():
        if length > _LONG_QUEUE:
            yield Finding(
                f"The queue “{queue}” is long. Messages waiting: {length}.",
                f"Start another worker with --queues {queue}.",
            )


def _unserved(lengths: dict[str, int], consumers: dict[str, set[str]]) -> Iterator[Finding]:
    for queue, length in lengths.items():
        # Model servers and accelerators are not everybody's: their queues need a worker once something waits.
        if queue not in consumers and (length or queue in probes.NEEDED):
            yield Finding(
                f"No worker consumes the queue “{queue}”. Messages waiting: {length}.",
                "Start one: manage.py judges"
                if queue == "endpoints"
                else f"Start one: celery -A prefmh_web worker --queues {queue}",
            )


def _chains() -> Iterator[Finding]:
    for _, wait in _without_question(waiting_chains(), PATIENCE):
        yield Finding(
            f"{wait}.",
            "Check that a worker and beat are running. If the task “propose” fails, the worker's log says why.",
        )
    resting = unopened_chains().filter(claimed_until__gt=timezone.now()).exclude(waits_because="")
    for chain, wait in _without_question(resting, PATIENCE):
        yield Finding(
            f"{wait}: {chain.waits_because}.", "prefmh tries again automatically. Fix the cause that is named."
        )
    for _, wait in _without_question(unopened_chains().filter(drawing.are_claimed()), _MUCH_PATIENCE):
        yield Finding(
            f"{wait}; a model is computing it.",
            "If the model is only slow, wait. If it hangs, restart its worker or its server.",
        )


def _without_question(chains: QuerySet[Chain], patience: timedelta) -> Iterator[tuple[Chain, str]]:
    """Yield those of the chains that have had no open comparison for long, with a sentence that says for how long."""
    since = timezone.now() - patience
    chains = chains.annotate(decided_at=Max("comparisons__decided_at")).select_related("campaign")
    stuck = chains.filter(Q(decided_at__lt=since) | Q(decided_at=None, campaign__started_at__lt=since))
    for chain in stuck.order_by("campaign", "index"):
        since_when = chain.decided_at or chain.campaign.started_at
        yield (
            chain,
            f"“{chain.campaign}”: chain {chain.index} has waited for the proposal of step {chain.step + 1} "
            f"for {_minutes(since_when)}",
        )


def _models() -> Iterator[Finding]:
    """Find the judges that are asked no more, and the questions that wait for somebody."""
    running = Campaign.Status.RUNNING
    for judge in Judge.objects.exclude(stopped_because="").filter(campaign__status=running).select_related("campaign"):
        yield Finding(
            f"“{judge.campaign}”: the model is no longer asked about “{judge}”. {judge.stopped_because}.",
            "On the campaign's page you can ask again, or continue with the model that answers now.",
        )
    suspended = Turn.objects.filter(asked=0, until__isnull=True, comparison__chain__campaign__status=running)
    reasons = suspended.values_list("comparison__chain__campaign__name", "reason").annotate(count=Count("pk"))
    for campaign, reason, count in reasons.order_by("comparison__chain__campaign", "reason"):
        yield Finding(
            f"“{campaign}”: {count} {'question needs' if count == 1 else 'questions need'} your action. {reason}.",
            "Fix the cause, then press “Ask again” on the campaign's page.",
        )
    overdue = timezone.now() - _MUCH_PATIENCE
    for campaign in Campaign.objects.filter(status=Campaign.Status.DRAFT, starting_since__lt=overdue):
        yield Finding(
            f"“{campaign}” has been starting for {_minutes(campaign.starting_since)}: {campaign.start_progress}.",
            "Check that a worker consumes the queues “endpoints” and “gpu”. If one was restarted, press Start again.",
        )


def _scorers() -> Iterator[Finding]:
    """Find programs in SCORERS that give no number, and scorers of campaigns that are asked no more."""
    for name in clashing_names():
        yield Finding(f"SCORERS names a program “{name}”, which prefmh measures itself.", "Give it another name.")
    for name, reasons in _failing():
        yield Finding(
            f"The scorer “{name}” gave no number for an object. {reasons}.",
            "Run its command by hand with one line of JSON on its input: it must answer with one line, a number.",
        )
    for scorer in CampaignScorer.objects.exclude(stopped_because="").select_related("campaign"):
        yield Finding(
            f"“{scorer.campaign}”: the scorer {scorer} is no longer asked. {scorer.stopped_because}.",
            "Fix the cause, then press “Try the scorers again” on the campaign's page. The chains go on without it.",
        )


def _people() -> Iterator[Finding]:
    """Find the open comparisons that nobody who has joined may answer."""
    running = Comparison.objects.filter(
        verdict__isnull=True, suspended_at=None, chain__campaign__status=Campaign.Status.RUNNING
    )
    now = timezone.now()
    for campaign in Campaign.objects.filter(status=Campaign.Status.RUNNING):
        people = set(campaign.voters.filter(removed_at__isnull=True).values_list("pk", flat=True))
        opened = running.filter(chain__campaign=campaign)
        oldest = opened.order_by("opened_at").first()
        is_anybody_there = campaign.voters.filter(online_until__gt=now).exists()
        if people and not is_anybody_there and oldest and oldest.opened_at < now - PATIENCE:
            yield Finding(
                f"“{campaign}”: {opened.count()} pairs wait for votes; of {len(people)} who joined, nobody is online.",
                "Send the invitation again, or pause the campaign.",
            )
        judges = list(campaign.judges.filter(endpoint=None))
        for comparison in opened.select_related("chain").prefetch_related("votes"):
            for judge in judges:
                yield from _unanswerable(campaign, comparison, judge, people)


def _unanswerable(campaign: Campaign, comparison: Comparison, judge: Judge, people: set[int]) -> Iterator[Finding]:
    cast = [vote for vote in comparison.votes.all() if vote.counted and vote.judge_id == judge.pk]
    answered = len(cast)
    if 0 < answered < judge.max_votes and people <= {vote.voter_id for vote in cast}:
        yield Finding(
            f"“{campaign}”: step {comparison.step} of chain {comparison.chain.index} needs up to "
            f"{judge.max_votes} votes "
            f"on “{judge}”; {answered} {'has' if answered == 1 else 'have'} been cast, and nobody else has joined.",
            "Nobody answers the same question on a pair twice: invite at least "
            f"{judge.max_votes - answered} more {'person' if judge.max_votes - answered == 1 else 'people'}.",
        )


def _leases() -> Iterator[Finding]:
    overdue = Lease.objects.filter(ended_at__isnull=True, expires_at__lt=timezone.now() - PATIENCE)
    if count := overdue.count():
        yield Finding(
            f"{count} pairs are reserved for people who did not answer in time, and have not been released.",
            "The sweep is not running. With several processes, start beat (celery -A prefmh_web beat) and a worker; "
            "with one process, restart `manage.py serve`.",
        )


def _catalogs() -> Iterator[Finding]:
    slow = Catalog.objects.filter(
        status=Catalog.Status.READING, campaign__created_at__lt=timezone.now() - _MUCH_PATIENCE
    )
    for catalog in slow.select_related("campaign"):
        rows = f"{catalog.rows_read} of {catalog.rows_total or 'unknown'} rows"
        yield Finding(
            f"“{catalog.campaign}”: its file {catalog} is still being read ({rows}, attempt {catalog.attempts}).",
            "Check that a worker consumes the queue “files”. If the file is only large, wait. A file that crashes "
            "the worker is rejected after the second attempt.",
        )


def _finishing() -> Iterator[Finding]:
    unfinished = Chain.objects.filter(step__lt=F("length"), ended_at=None)
    for campaign in Campaign.objects.filter(status=Campaign.Status.RUNNING).exclude(chains__in=unfinished):
        yield Finding(
            f"“{campaign}”: all chains have finished, but the campaign is not marked as finished.",
            "The next sweep will do this. If it does not, start beat and a worker.",
        )


def _disk() -> Iterator[Finding]:
    free = shutil.disk_usage(settings.DATA_DIR).free
    if free < _LITTLE_SPACE:
        yield Finding(
            f"Only {free // 2**20} MiB are free in {settings.DATA_DIR}.", "Uploads will fail. Free some disk space."
        )


def _minutes(since) -> str:
    return f"{int((timezone.now() - since).total_seconds() // 60)} minutes"


_CHECKS: tuple[Callable[[], Iterator[Finding]], ...] = (
    _queues, _chains, _models, _people, _leases, _catalogs, _finishing, _disk, _scorers
)  # fmt: skip


# Markdown is a text to a program.
_TRIED = ("texts", "molecules", "images", "audio")


def _failing() -> Iterator[tuple[str, str]]:
    """Try each program on a text, then a molecule, an image and a recording, until it gives a number; yield the name
    and the reasons of those that give none. Each is started for this, and ended again.
    """
    try:
        for name in settings.SCORERS:
            if reasons := _no_number(name):
                yield name, "; ".join(reasons)
    finally:
        commands.close_all()


def _no_number(program: str) -> list[str]:
    reasons: list[str] = []
    for kind in map(OBJECT_KINDS.__getitem__, _TRIED):
        try:
            [answer] = offered(kind.name)[program].scores(kind, kind.samples[:1])
        except ScorerError as error:
            return [*reasons, str(error)]
        if not isinstance(answer, NoScore):
            return []
        reasons.append(f"{kind.noun}: {answer.reason}")
        # A program that reads one kind only may end on each of the others, and must not be given up for that.
        commands.close_all()
        commands.forget()
    return reasons
