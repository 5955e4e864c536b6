"""What /metrics tells of the record is exact.

Logs for machines: one object a line, which says what it is about, and never who voted how.
"""

from __future__ import annotations

import json
import logging

import pytest
from django.db import OperationalError
from django.db.models import Count, F, Q
from hypothesis import given
from hypothesis import strategies as st

from prefmh_web.campaigns.engine import leases
from prefmh_web.campaigns.models import Comparison, Side, Vote, Voter
from prefmh_web.operations import logs, metrics
from prefmh_web.operations.logs import redacted
from tests.support.campaigns import cast, make_campaign, make_config, voted_to_the_end
from tests.support.process import wait_until_idle


def told() -> dict[str, float]:
    lines = (line.rpartition(" ") for line in metrics.page().decode().splitlines() if not line.startswith("#"))
    return {name: float(value) for name, _, value in lines}


def assert_exact() -> None:
    """Compare what is told with a count over the whole record."""
    counted = Vote.objects.aggregate(
        yes=Count("pk", filter=Q(number__isnull=False)), no=Count("pk", filter=Q(number__isnull=True))
    )
    page = told()
    for whether, count in counted.items():
        assert page[f'prefmh_votes_total{{counted="{whether}"}}'] == count
    for verdict in Comparison.Verdict.values:
        count = Comparison.objects.filter(verdict=verdict).count()
        assert page[f'prefmh_verdicts_total{{verdict="{verdict}"}}'] == count


def test_votes_and_verdicts_are_told_exactly(researcher):
    finished = make_campaign(researcher, config=make_config(steps=20))
    going_on = make_campaign(researcher, config=make_config(judges=[{"question": "Which?", "votes": 9}]))
    voted_to_the_end(finished)
    voter = Voter.objects.create(campaign=going_on)
    while lease := leases.take(voter):
        leases.answer(lease.key, voter, Side.FIRST, 0)
        wait_until_idle()
        assert_exact()
    assert Vote.objects.filter(comparison__verdict=None, number__isnull=False).exists()
    # Drawn afresh, an object may come up again: a step accepted without a vote, and without a move.
    assert Comparison.objects.filter(current=F("proposal"), verdict="accept").exists()
    for verdict in Comparison.Verdict.values:
        assert Comparison.objects.filter(verdict=verdict).exists()
    decided = Comparison.objects.exclude(verdict=None).first()
    cast(decided, finished.judges.first(), finished.voters.first())
    assert Vote.objects.filter(number=None).exists()
    assert_exact()


def line(message: str, **extra) -> dict:
    record = logging.LogRecord("prefmh_web.test", logging.INFO, __file__, 1, message, (), None)
    record.__dict__.update(extra)
    logs.ContextFilter().filter(record)
    return json.loads(logs.JsonFormatter().format(record))


def test_what_stands_around_a_message_is_added_unless_it_says_so_itself():
    with logs.context(campaign=1, task="propose"):
        with logs.context(chain=2):
            assert {"campaign": 1, "chain": 2, "task": "propose"}.items() <= line("inside").items()
        assert line("own", campaign=9)["campaign"] == 9
        assert "chain" not in line("outside")
    assert "campaign" not in line("far outside")


def test_votes_and_verdicts_are_logged_with_campaign_chain_and_step(campaign, idle_tasks, caplog):
    voter = Voter.objects.create(campaign=campaign)
    with caplog.at_level(logging.INFO, logger="prefmh_web.campaigns"):
        while lease := leases.take(voter):
            leases.answer(lease.key, voter, Side.FIRST, 1234)
            idle_tasks()
            if Comparison.objects.exclude(verdict=None).exists():
                break
    said = {record.getMessage(): record for record in caplog.records}
    assert {"vote", "step decided", "step opened"} <= said.keys()
    for record in said.values():
        assert record.campaign == campaign.pk
        assert record.step >= 1
        assert {"voter", "chosen_side"}.isdisjoint(record.__dict__)
    assert said["step decided"].verdict in Comparison.Verdict.values


_PIECES = st.sampled_from([
    "/join/", "Kq3xV9-bT_sWmZ2cLr7YtQ", "?PROLIFIC_PID=", "token=", "'token': ['abc']", "Bearer ", "[redacted]",
    "]", "[", "query_string: b'", " ", "next=%2Fjoin%2F", "sesame=x", "&",
])  # fmt: skip


@given(st.lists(_PIECES, max_size=12).map("".join))
def test_what_is_redacted_stays_as_it_is_when_it_is_redacted_again(text):
    assert redacted(redacted(text)) == redacted(text)


@pytest.mark.parametrize(
    "said",
    ["database or disk is full", "attempt to write a readonly database", "disk I/O error", "No space left on device"],
)
def test_a_disk_that_takes_no_data_is_one_line_and_no_traceback(said, caplog):
    try:
        raise OperationalError(said)
    except OperationalError:
        logging.getLogger("celery.app.trace").exception("a task failed")
    [record] = caplog.records
    written = logs.LineFormatter().format(record)
    assert written.count("\n") == 0
    assert "a task failed: the d" in written
