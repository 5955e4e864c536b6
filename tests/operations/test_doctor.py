"""The doctor says what is stuck, why, and what fixes it; and says nothing of what merely takes its time.

What probes and scrapers are told, and who is told nothing.

Questions that are asked of servers which may be frozen.
"""

import io
import ipaddress
import threading
import time
from datetime import timedelta

import httpx
import pytest
from django.core.management import call_command
from django.utils import timezone

from prefmh_web.campaigns.engine import leases
from prefmh_web.campaigns.models import Campaign, Comparison, Lease, Side, Voter
from prefmh_web.operations import doctor
from prefmh_web.operations.probes import begin, within
from tests.support.installations import wait_for
from tests.support.process import wait_until_idle

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


def answer_whatever_they_may(voter: Voter) -> None:
    while lease := leases.take(voter):
        leases.answer(lease.key, voter, Side.FIRST, None)
        # The chain's next pair may come a moment later.
        wait_until_idle()


def test_a_campaign_that_goes_on_is_well(campaign):
    assert told() == ""
    out = io.StringIO()
    call_command("doctor", stdout=out)
    assert "No problems found" in out.getvalue()


def test_findings_are_printed_with_their_fix_and_make_it_fail(campaign):
    Comparison.objects.all().delete()
    Campaign.objects.update(started_at=timezone.now() - LONG_AGO)
    out = io.StringIO()
    with pytest.raises(SystemExit) as ended:
        call_command("doctor", stdout=out)
    assert ended.value.code == 1
    assert "chain 0 has waited for the proposal of step 1 for 60 minutes" in out.getvalue()
    assert "Check that a worker and beat are running" in out.getvalue()


def test_too_few_people_for_a_judge_are_told_with_how_many_more(campaign):
    voter = Voter.objects.create(campaign=campaign, online_until=timezone.now() + LONG_AGO)
    # The first question has a budget of two; one person answers whatever they may.
    answer_whatever_they_may(voter)
    assert Comparison.objects.filter(verdict=None).exists()
    assert "Nobody answers the same question on a pair twice: invite at least 1 more person." in told()
    Voter.objects.create(campaign=campaign)
    assert "invite" not in told()


def test_leases_that_no_sweep_took_back_are_told(campaign):
    voter = Voter.objects.create(campaign=campaign)
    leases.take(voter)
    assert told() == ""
    Lease.objects.update(expires_at=timezone.now() - LONG_AGO)
    assert "1 pairs are reserved for people who did not answer in time" in told()
    leases.expire()
    assert told() == ""


def test_alive_needs_no_database_and_sets_no_cookie(client):
    answer = client.get("/healthz")
    assert (answer.status_code, answer.content) == (200, b"alive\n")
    assert not answer.cookies


def test_ready_names_each_part(client, db):
    answer = client.get("/readyz")
    assert answer.json() == dict.fromkeys(("database", "migrations", "channel layer", "broker", "disk"), "ok")
    assert answer.status_code == 200


def test_metrics_are_for_nobody_by_default(client, db):
    assert client.get("/metrics").status_code == 403
    assert client.get("/metrics", headers={"Authorization": "Bearer None"}).status_code == 403


@pytest.mark.parametrize(
    ("address", "status"), [("10.1.2.3", 200), ("::1", 200), ("192.168.1.5", 403), ("", 403), ("nonsense", 403)]
)
def test_metrics_are_for_the_addresses_named(client, db, settings, address, status):
    settings.METRICS_ALLOW = (ipaddress.ip_network("10.0.0.0/8"), ipaddress.ip_network("::1/128"))
    assert client.get("/metrics", REMOTE_ADDR=address).status_code == status


def test_metrics_are_for_bearers_of_the_token(client, db, settings):
    settings.METRICS_TOKEN = "the-token"
    assert client.get("/metrics", headers={"Authorization": "Bearer the-token"}).status_code == 200
    assert client.get("/metrics", headers={"Authorization": "Bearer another"}).status_code == 403


def test_a_process_without_redis_or_database_is_alive_and_not_ready(installation):
    installation.redis.kill()
    try:
        answer = httpx.get(f"{installation.urls[0]}/readyz", timeout=30)
        assert answer.status_code == 503
        assert "does not answer" in answer.json()["channel layer"]
        assert "does not answer" in answer.json()["broker"]
        assert answer.json()["database"] == "ok"
        found = installation.run("manage.py", "doctor", check=False)
        assert found.returncode == 1
        assert "Start Redis" in found.stdout
    finally:
        installation.redis.start()
    installation.postgres.kill()
    try:
        answer = httpx.get(f"{installation.urls[1]}/readyz", timeout=60)
        assert answer.status_code == 503
        assert "does not answer" in answer.json()["database"]
        assert httpx.get(f"{installation.urls[1]}/healthz", timeout=30).status_code == 200
    finally:
        installation.postgres.start()
    wait_for(lambda: all(httpx.get(f"{url}/readyz", timeout=60).is_success for url in installation.urls), "ready again")


@pytest.fixture
def frozen():
    """A question without an answer until the test ends; it counts how often it has been asked."""
    over = threading.Event()
    asked = []

    def question() -> str:
        asked.append(threading.current_thread())
        over.wait(60)
        return "late"

    question.asked, question.over = asked, over
    yield question
    over.set()
    for thread in asked:
        thread.join()


def test_an_answer_and_an_error_are_handed_on():
    assert within(10, lambda: 5) == 5
    assert within(10, divmod, 7, 2) == (3, 1)
    with pytest.raises(ZeroDivisionError):
        within(10, divmod, 7, 0)


def test_a_question_without_an_answer_is_given_up_and_asked_once_only(frozen):
    for _ in range(3):
        with pytest.raises(TimeoutError):
            within(0.05, frozen)
    assert len(frozen.asked) == 1
    frozen.over.set()
    frozen.asked[0].join()
    # Answered, or given up by the library, it is asked anew.
    assert within(10, frozen) == "late"
    assert len(frozen.asked) == 2


def test_a_question_may_be_asked_before_its_answer_is_wanted(frozen):
    begin(frozen)
    frozen.over.set()
    assert within(10, frozen) == "late"


def test_an_answer_that_came_before_it_was_wanted_is_not_asked_for_again():
    """Two questions begun together, and wanted one after the other: the second wait adds nothing to the first."""
    asked: list[threading.Thread] = []

    def question() -> str:
        asked.append(threading.current_thread())
        raise ConnectionError

    begin(question)
    while not asked:
        time.sleep(0.001)
    asked[0].join()
    with pytest.raises(ConnectionError):
        within(10, question)
    assert len(asked) == 1
    with pytest.raises(ConnectionError):
        within(10, question)
    assert len(asked) == 2
