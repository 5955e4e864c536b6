"""What Prometheus reads. What is state comes from the database, so that every process tells the same; latencies are
each process's own (`latency.py`)."""

from collections.abc import Iterator

from django.db.models import Count, Q
from django.utils import timezone
from prometheus_client import REGISTRY, CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from prefmh_web.annotate.models import Lease
from prefmh_web.campaigns.models import Annotator, Campaign, Catalog, Comparison, Vote
from prefmh_web.campaigns.proposing import waiting_chains
from prefmh_web.operations import queues


class RecordCollector:
    """Asks the database and the broker when it is asked itself."""

    def collect(self) -> Iterator[Metric]:
        yield from _votes()
        yield from _standing()
        yield from _queues()


def page() -> bytes:
    """Return everything in Prometheus's text format."""
    return generate_latest(REGISTRY) + generate_latest(_record)


def _votes() -> Iterator[Metric]:
    votes = CounterMetricFamily(
        "prefmh_votes", "Votes stored; those that came too late are not counted.", None, ["counted"]
    )
    counted = Vote.objects.aggregate(
        yes=Count("pk", filter=Q(number__isnull=False)), no=Count("pk", filter=Q(number=None))
    )
    for whether, count in counted.items():
        votes.add_metric([whether], count)
    yield votes
    verdicts = CounterMetricFamily("prefmh_verdicts", "Steps decided.", None, ["verdict"])
    by_verdict = dict(Comparison.objects.exclude(verdict=None).values_list("verdict").annotate(Count("pk")))
    for verdict in Comparison.Verdict.values:
        verdicts.add_metric([verdict], by_verdict.get(verdict, 0))
    yield verdicts


def _standing() -> Iterator[Metric]:
    now = timezone.now()
    live = Lease.objects.filter(ended_at__isnull=True)
    running = Comparison.objects.filter(verdict__isnull=True, chain__campaign__status=Campaign.Status.RUNNING)
    for name, text, count in (
        ("chains_waiting", "Chains of running campaigns that wait for a proposal.", waiting_chains()),
        ("comparisons_open", "Comparisons of running campaigns that wait for votes.", running),
        ("leases_open", "Pairs that are before somebody's eyes.", live),
        (
            "leases_overdue",
            "Pairs whose time is over and which no sweep has taken back.",
            live.filter(expires_at__lt=now),
        ),
        ("people_online", "Annotators with an open page.", Annotator.objects.filter(online_until__gt=now)),
        ("catalogs_reading", "Files that wait to be read or are being read.", Catalog.objects.filter(status="reading")),
    ):
        yield GaugeMetricFamily(f"prefmh_{name}", text, count.count())
    campaigns = GaugeMetricFamily("prefmh_campaigns", "Campaigns by status.", None, ["status"])
    by_status = dict(Campaign.objects.order_by().values_list("status").annotate(Count("pk")))
    for status in Campaign.Status.values:
        campaigns.add_metric([status], by_status.get(status, 0))
    yield campaigns


def _queues() -> Iterator[Metric]:
    answers = GaugeMetricFamily("prefmh_broker_up", "1 while the task broker answers.")
    lengths = GaugeMetricFamily("prefmh_queue_length", "Messages no worker has taken yet.", None, ["queue"])
    try:
        for queue, length in queues.lengths().items():
            lengths.add_metric([queue], length)
        answers.add_metric([], 1)
    except queues.Unreachable:
        answers.add_metric([], 0)
    yield answers
    yield lengths


# Registered without being asked what it will say, which would query the database at import.
_record = CollectorRegistry(auto_describe=False)
_record.register(RecordCollector())
