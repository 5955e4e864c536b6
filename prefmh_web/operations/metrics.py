"""What Prometheus reads. What is state comes from the database, so that every process tells the same.

How long people wait is each process's own, measured where bytes enter and leave it: requests, and votes by socket.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator

from django.conf import settings
from django.db.models import Count, OuterRef, Subquery, Sum
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from prometheus_client import (
    CONTENT_TYPE_LATEST,
    REGISTRY,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from prefmh_web.campaigns.models import Campaign, Catalog, Chain, Comparison, Lease, Vote, Voter
from prefmh_web.campaigns.proposals.drawing import waiting_chains
from prefmh_web.operations import probes
from prefmh_web.transport.rate_limits import is_in


class RecordCollector:
    """Asks the database and the broker when it is asked itself."""

    def collect(self) -> Iterator[Metric]:
        yield from _votes()
        yield from _tallies()
        yield from _queues()


@require_safe
@never_cache
def metrics_page(request: HttpRequest) -> HttpResponse:
    """Prometheus's page, for addresses in METRICS_ALLOW and bearers of METRICS_TOKEN; nobody when neither is set."""
    is_inside = is_in(request.META.get("REMOTE_ADDR") or "", settings.METRICS_ALLOW)
    if not (is_inside or _bears_token(request)):
        return HttpResponse("Set METRICS_ALLOW or METRICS_TOKEN.\n", status=403, content_type="text/plain")
    return HttpResponse(page(), content_type=CONTENT_TYPE_LATEST)


def page() -> bytes:
    """Return everything in Prometheus's text format."""
    return generate_latest(REGISTRY) + generate_latest(_record)


def _bears_token(request: HttpRequest) -> bool:
    expected = f"Bearer {settings.METRICS_TOKEN}".encode()
    given = request.headers.get("Authorization", "").encode()
    return settings.METRICS_TOKEN is not None and secrets.compare_digest(given, expected)


def _votes() -> Iterator[Metric]:
    votes = CounterMetricFamily(
        "prefmh_votes", "Votes stored, by whether they counted or came after the verdict.", None, ["counted"]
    )
    verdicts = CounterMetricFamily("prefmh_verdicts", "Steps decided.", None, ["verdict"])
    decided = _decided()
    votes.add_metric(["yes"], decided["votes"] + decided["votes_on_open"])
    # An index holds these alone, and they are few: nobody is asked for a vote that cannot count.
    votes.add_metric(["no"], Vote.objects.filter(number__isnull=True).count())
    # A step whose proposal was the current state counts as accepted.
    rejected = decided["moves"] - decided["accepted"]
    verdicts.add_metric([Comparison.Verdict.ACCEPT], decided["steps"] - rejected)
    verdicts.add_metric([Comparison.Verdict.REJECT], rejected)
    yield votes
    yield verdicts


def _decided() -> dict[str, int]:
    """Return what the chains have counted, and the votes on their open steps.

    One statement and so of one moment: a step decided between two would make a counter fall, which Prometheus takes
    for a restart.
    """
    on_open = Vote.objects.filter(comparison__chain=OuterRef("pk"), comparison__verdict=None, number__isnull=False)
    counted = on_open.order_by().values("comparison__chain").values(count=Count("pk"))
    return Chain.objects.aggregate(
        steps=Sum("step", default=0),
        moves=Sum("moves", default=0),
        accepted=Sum("accepted", default=0),
        votes=Sum("votes", default=0),
        votes_on_open=Sum(Subquery(counted), default=0),
    )


def _tallies() -> Iterator[Metric]:
    now = timezone.now()
    live = Lease.objects.filter(ended_at__isnull=True)
    running = Comparison.objects.filter(
        verdict__isnull=True, suspended_at=None, chain__campaign__status=Campaign.Status.RUNNING
    )
    for name, text, count in (
        ("chains_waiting", "Chains of running campaigns that wait for a proposal.", waiting_chains()),
        ("comparisons_open", "Comparisons of running campaigns that wait for votes.", running),
        ("leases_open", "Pairs that are shown to somebody now.", live),
        (
            "leases_overdue",
            "Pairs whose time is over and which have not been released.",
            live.filter(expires_at__lt=now),
        ),
        ("people_online", "Voters with an open page.", Voter.objects.filter(online_until__gt=now)),
        ("catalogs_reading", "Files that wait to be read or are being read.", Catalog.objects.filter(status="reading")),
    ):
        yield GaugeMetricFamily(f"prefmh_{name}", text, count.count())
    campaigns = GaugeMetricFamily("prefmh_campaigns", "Campaigns by status.", None, ["status"])
    by_status = dict(Campaign.objects.order_by().values_list("status").annotate(Count("pk")))
    for status in Campaign.Status.values:
        campaigns.add_metric([status], by_status.get(status, 0))
    yield campaigns


def _queues() -> Iterator[Metric]:
    answers = GaugeMetricFamily("prefmh_broker_up", "1 if the task broker answers, else 0.")
    lengths = GaugeMetricFamily("prefmh_queue_length", "Messages that wait in the queue.", None, ["queue"])
    try:
        for queue, length in probes.lengths().items():
            lengths.add_metric([queue], length)
        answers.add_metric([], 1)
    except probes.Unreachable:
        answers.add_metric([], 0)
    yield answers
    yield lengths


# Registered without being asked what it will say, which would query the database at import.
_record = CollectorRegistry(auto_describe=False)
_record.register(RecordCollector())


_SECONDS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10)

REQUESTS = Histogram(
    "prefmh_request_seconds", "Time from a request to the start of its answer.", ["method", "status"], buckets=_SECONDS
)
REPLIES = Histogram(
    "prefmh_socket_reply_seconds",
    "Time from a message on a WebSocket to the reply: from a vote to its acknowledgement.",
    ["page"],
    buckets=_SECONDS,
)
SOCKETS = Gauge("prefmh_sockets_open", "Open WebSockets of this process.", ["page"])
REFUSED = Counter("prefmh_sockets_refused_total", "WebSockets closed by the server, by close code.", ["page", "code"])

_METHODS = frozenset({"GET", "HEAD", "POST", "OPTIONS"})


class Latency:
    """An ASGI application that measures the one inside it."""

    def __init__(self, application) -> None:
        self._application = application

    async def __call__(self, scope, receive, send):
        watch = {"http": self._http, "websocket": self._websocket}.get(scope["type"])
        await (watch or self._application)(scope, receive, send)

    async def _http(self, scope, receive, send):
        started = time.perf_counter()
        # A method is a label: what strangers make up must not become a new series each time.
        method = scope["method"] if scope["method"] in _METHODS else "other"

        async def sent(message):
            if message["type"] == "http.response.start":
                REQUESTS.labels(method, str(message["status"])).observe(time.perf_counter() - started)
            await send(message)

        await self._application(scope, receive, sent)

    async def _websocket(self, scope, receive, send):
        page = _page(scope["path"])
        asked_at: list[float] = []

        async def received():
            message = await receive()
            if message["type"] == "websocket.receive":
                asked_at.append(time.perf_counter())
            return message

        async def sent(message):
            if message["type"] == "websocket.send" and asked_at:
                REPLIES.labels(page).observe(time.perf_counter() - asked_at.pop(0))
            elif message["type"] == "websocket.close":
                REFUSED.labels(page, str(message.get("code", 1000))).inc()
            await send(message)

        with SOCKETS.labels(page).track_inprogress():
            await self._application(scope, received, sent)


def _page(path: str) -> str:
    return {"join": "vote", "campaigns": "board"}.get(path.removeprefix("/ws/").partition("/")[0], "other")
