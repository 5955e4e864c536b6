"""What /metrics tells of the record is exact, and asking for it is no more work at a million votes than at ten."""

import uuid

import numpy as np
import pytest
from django.db import connection
from django.db.models import Count, F, Q
from django.test.utils import CaptureQueriesContext

from prefmh_web.campaigns.engine import leases
from prefmh_web.campaigns.models import Annotator, Comparison, Side, Vote
from prefmh_web.operations import metrics
from tests.support.campaigns import cast, make_campaign, make_config, vote_until_finished, wait_until_idle

SCORES = {0: lambda place: 0.3 * place, 1: lambda place: -0.2 * place}


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
    crowd = [Annotator.objects.create(campaign=finished) for _ in range(3)]
    vote_until_finished(finished, crowd, SCORES, np.random.default_rng(1))
    annotator = Annotator.objects.create(campaign=going_on)
    while lease := leases.take(annotator):
        leases.answer(lease.key, annotator, Side.FIRST, 0)
        wait_until_idle()
        assert_exact()
    assert Vote.objects.filter(comparison__verdict=None, number__isnull=False).exists()
    # Drawn afresh, an object may come up again: a step accepted without a vote, and without a move.
    assert Comparison.objects.filter(current=F("proposal"), verdict="accept").exists()
    for verdict in Comparison.Verdict.values:
        assert Comparison.objects.filter(verdict=verdict).exists()
    decided = Comparison.objects.exclude(verdict=None).first()
    cast(decided, decided.chain.campaign.judges.first(), crowd[0])
    assert Vote.objects.filter(number=None).exists()
    assert_exact()


class Work:
    """Counts the statements, and the steps of SQLite's virtual machine, that something takes."""

    def __enter__(self) -> "Work":
        self.steps = 0
        connection.connection.set_progress_handler(self._step, 1)
        self._queries = CaptureQueriesContext(connection)
        self._queries.__enter__()
        return self

    def __exit__(self, *error) -> None:
        self._queries.__exit__(*error)
        connection.connection.set_progress_handler(None, 0)
        self.statements = len(self._queries)

    def _step(self) -> int:
        self.steps += 1
        return 0


def more_votes(comparison: Comparison, count: int) -> None:
    judge, last = comparison.chain.campaign.judges.first(), comparison.votes.count()
    Vote.objects.bulk_create(
        Vote(
            key=uuid.uuid4(), comparison=comparison, judge=judge, slot=1000 + number, number=1000 + last + number,
            proposal_side=Side.FIRST, chosen_side=Side.FIRST,
        )
        for number in range(count)
    )  # fmt: skip


@pytest.mark.skipif(connection.vendor != "sqlite", reason="counts the steps of SQLite's virtual machine")
def test_a_scrape_does_not_pass_over_the_votes(researcher):
    campaign = make_campaign(researcher, config=make_config(steps=3))
    crowd = [Annotator.objects.create(campaign=campaign) for _ in range(3)]
    vote_until_finished(campaign, crowd, SCORES, np.random.default_rng(1))
    metrics.page()
    with Work() as before:
        metrics.page()
    more_votes(Comparison.objects.filter(chain__campaign=campaign).first(), 2000)
    with Work() as after:
        metrics.page()
    assert (after.statements, after.steps) == (before.statements, before.steps)
    with Work() as passing_over:
        Vote.objects.filter(number__isnull=False).count()
    # The negative control: this does read them all.
    assert passing_over.steps > 2000
