"""The doctor says what is stuck, why, and what mends it; and says nothing of what merely takes its time."""

import io
from datetime import timedelta

import pytest
from django.core.management import call_command
from django.utils import timezone

from prefmh_web.campaigns.engine import leases
from prefmh_web.campaigns.models import Annotator, Campaign, Comparison, Lease, Side
from prefmh_web.operations import doctor
from tests.support.campaigns import wait_until_idle

LONG_AGO = timedelta(hours=1)


@pytest.fixture
def campaign(campaign):
    """One that has just started: the copy that the fixture takes may be minutes old."""
    Comparison.objects.update(opened_at=timezone.now())
    Campaign.objects.update(started_at=timezone.now())
    campaign.refresh_from_db()
    return campaign


def told() -> str:
    return "\n".join(str(finding) for finding in doctor.findings())


def answer_whatever_they_may(annotator: Annotator) -> None:
    while lease := leases.take(annotator):
        leases.answer(lease.key, annotator, Side.FIRST, None)
        # The chain's next pair may come a moment later.
        wait_until_idle()


def test_a_campaign_that_goes_on_is_well(campaign):
    assert told() == ""
    out = io.StringIO()
    call_command("doctor", stdout=out)
    assert "No problems found" in out.getvalue()


def test_findings_are_printed_with_their_mend_and_make_it_fail(campaign):
    Comparison.objects.all().delete()
    Campaign.objects.update(started_at=timezone.now() - LONG_AGO)
    out = io.StringIO()
    with pytest.raises(SystemExit) as ended:
        call_command("doctor", stdout=out)
    assert ended.value.code == 1
    assert "chain 0 has waited for the proposal of step 1 for 60 minutes" in out.getvalue()
    assert "Check that a worker and beat are running" in out.getvalue()


def test_too_few_people_for_a_judge_are_told_with_how_many_more(campaign):
    annotator = Annotator.objects.create(campaign=campaign, online_until=timezone.now() + LONG_AGO)
    # The first question has a budget of two; one person answers whatever they may.
    answer_whatever_they_may(annotator)
    assert Comparison.objects.filter(verdict=None).exists()
    assert "Nobody answers the same question on a pair twice: invite at least 1 more person." in told()
    Annotator.objects.create(campaign=campaign)
    assert "invite" not in told()


def test_leases_that_no_sweep_took_back_are_told(campaign):
    annotator = Annotator.objects.create(campaign=campaign)
    leases.take(annotator)
    assert told() == ""
    Lease.objects.update(expires_at=timezone.now() - LONG_AGO)
    assert "1 pairs are reserved for people who did not answer in time" in told()
    leases.expire()
    assert told() == ""
