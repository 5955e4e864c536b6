"""People report a problem with a pair: they skip it, and the researcher reads why."""

import pytest

from prefmh_web.campaigns.models import Event, Lease, Vote
from tests.security.world import browser_of
from tests.support.campaigns import everything_in, export_to, happened, invitation_path, pair_of, wait_until_idle

SAID = {"reason": "upsetting", "words": "=cmd() I am Anna"}


@pytest.fixture
def voter(client, campaign):
    client.post(invitation_path(campaign))
    return client


def report_on(campaign, key) -> str:
    return f"{invitation_path(campaign)}report/{key}/"


def test_who_reports_a_pair_skips_it_and_the_researcher_reads_why(voter, campaign, researcher, tmp_path):
    key = pair_of(voter, campaign)
    assert "What is wrong with this pair?" in voter.get(report_on(campaign, key)).content.decode()
    # Sent twice, it is one report; the first one holds.
    for _ in range(2):
        assert voter.post(report_on(campaign, key), SAID).url == f"{invitation_path(campaign)}vote/"
    voter.post(report_on(campaign, key), {"reason": "other", "words": "again"})
    wait_until_idle()
    [event] = Event.objects.filter(kind="reported")
    assert (event.data["key"], event.data["reason"], event.data["text"]) == (str(key), *SAID.values())
    assert Lease.objects.get(key=key).ending == Lease.Ending.SKIPPED
    assert not Vote.objects.exists()
    assert pair_of(voter, campaign) != key

    desk = browser_of(researcher)
    assert "1 problem reported" in desk.get(campaign.get_absolute_url()).content.decode()
    page = desk.get(f"{campaign.get_absolute_url()}problems/").content.decode()
    assert "upsetting" in page
    assert SAID["words"] in page.replace("&amp;", "&")
    # The record says which pair and why; what people wrote may name them.
    exported = export_to(campaign, tmp_path)
    [(_, said)] = happened(exported, "reported")
    assert (said["reason"], said["step"]) == ("upsetting", 1)
    assert "Anna" not in everything_in(exported)


@pytest.mark.parametrize("said", [{}, {"reason": "nonsense"}, {"reason": "other", "words": "x" * 501}])
def test_a_report_that_cannot_be_read_skips_nothing(voter, campaign, said):
    key = pair_of(voter, campaign)
    answer = voter.post(report_on(campaign, key), said)
    assert answer.status_code == 200
    assert "errorlist" in answer.content.decode()
    assert pair_of(voter, campaign) == key
    assert not Event.objects.filter(kind="reported").exists()


def test_a_pair_that_was_voted_on_cannot_be_reported_any_more(voter, campaign):
    key = pair_of(voter, campaign)
    voter.post(f"{invitation_path(campaign)}vote/", {"choice": "first", "lease": str(key)})
    voter.post(report_on(campaign, key), SAID)
    wait_until_idle()
    assert Vote.objects.count() == 1
    assert not Event.objects.filter(kind="reported").exists()
