"""The doctor says what is stuck, why, and what mends it; and says nothing of what merely takes its time."""

import io
from datetime import timedelta

import pytest
from django.core.management import call_command
from django.utils import timezone

from prefmh_web.campaigns.engine import leases
from prefmh_web.campaigns.lifecycle import access
from prefmh_web.campaigns.models import Annotator, Campaign, Catalog, Chain, Comparison, Judge, Lease, Side
from prefmh_web.campaigns.proposals import claims
from prefmh_web.endpoints.models import Endpoint
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


def test_a_chain_that_has_just_begun_to_wait_is_no_finding(campaign):
    Comparison.objects.all().delete()
    assert told() == ""


def test_a_chain_that_a_model_is_at_work_for_is_told_once_that_takes_implausibly_long(campaign):
    Comparison.objects.all().delete()
    with claims.held("prefetches_until", campaign.chains.filter(place=0)):
        Campaign.objects.update(started_at=timezone.now() - 2 * doctor.PATIENCE)
        assert "chain 0" not in told()
        assert "chain 1" in told()
        Campaign.objects.update(started_at=timezone.now() - LONG_AGO)
        assert "chain 0 has waited for the proposal of step 1 for 60 minutes; a model is computing it" in told()


def test_a_chain_that_a_model_fails_again_and_again_is_told_with_the_reason(campaign):
    Comparison.objects.all().delete()
    Chain.objects.update(waits_until=timezone.now() + LONG_AGO, waits_because="no memory")
    assert told() == ""
    Campaign.objects.update(started_at=timezone.now() - LONG_AGO)
    assert "chain 0 has waited for the proposal of step 1 for 60 minutes: no memory." in told()


def test_too_few_people_for_a_judge_are_told_with_how_many_more(campaign):
    annotator = Annotator.objects.create(campaign=campaign, online_until=timezone.now() + LONG_AGO)
    # The first question has a budget of two; one person answers whatever they may.
    answer_whatever_they_may(annotator)
    assert Comparison.objects.filter(verdict=None).exists()
    assert "Nobody answers the same question on a pair twice: invite at least 1 more person." in told()
    Annotator.objects.create(campaign=campaign)
    assert "invite" not in told()


def test_people_who_were_shown_out_are_nobody_to_wait_for(campaign):
    staying, going = (Annotator.objects.create(campaign=campaign) for _ in range(2))
    Annotator.objects.update(online_until=timezone.now() + LONG_AGO)
    answer_whatever_they_may(staying)
    assert "invite" not in told()
    access.remove(going)
    assert "nobody else has joined" in told()


def test_what_a_model_has_yet_to_answer_asks_for_no_people(campaign, researcher):
    annotator = Annotator.objects.create(campaign=campaign, online_until=timezone.now() + LONG_AGO)
    answer_whatever_they_may(annotator)
    assert "invite" in told()
    endpoint = Endpoint.objects.create(owner=researcher, name="m", base_url="http://127.0.0.1:9/v1", model="m")
    Judge.objects.filter(budget=2).update(endpoint=endpoint)
    assert "invite" not in told()


def test_nobody_online_is_told_after_a_while(campaign):
    Annotator.objects.create(campaign=campaign)
    assert told() == ""
    Comparison.objects.update(opened_at=timezone.now() - LONG_AGO)
    assert "3 pairs wait for votes; of 1 who joined, nobody is online" in told()


def test_leases_that_no_sweep_took_back_are_told(campaign):
    annotator = Annotator.objects.create(campaign=campaign)
    leases.take(annotator)
    assert told() == ""
    Lease.objects.update(expires_at=timezone.now() - LONG_AGO)
    assert "1 pairs are reserved for people who did not answer in time" in told()
    leases.expire()
    assert told() == ""


def test_a_file_that_is_still_being_read_is_told_with_how_far_it_is(campaign):
    Catalog.objects.update(status=Catalog.Status.READING, rows_read=300, rows_total=1000, attempts=1)
    assert told() == ""
    Campaign.objects.update(created_at=timezone.now() - LONG_AGO)
    assert "still being read (300 of 1000 rows, attempt 1)" in told()
