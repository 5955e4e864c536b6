"""Active minutes as a limit: no further pair once they are reached; the pair on the screen may be answered."""

from datetime import timedelta

import pytest
from django.db.models import F
from django.utils import timezone

from prefmh_web.annotate.tasks import settle_parts
from prefmh_web.campaigns.engine import leases
from prefmh_web.campaigns.models import Annotator, Lease, Vote
from prefmh_web.participants import limits
from tests.security.world import browser_of
from tests.support.campaigns import (
    CODES_OF_ALL,
    arrive,
    invitation_path,
    page_of,
    pair_of,
    payments_of,
    prolific,
    recruited_campaign,
    vote,
)


@pytest.fixture
def study(researcher):
    return recruited_campaign(researcher, most_active_minutes=3, codes=CODES_OF_ALL)


def as_if_they_had_taken(minutes: int) -> None:
    """Let all pairs that were answered have stood on the screen for so long."""
    Lease.objects.exclude(ended_at=None).update(issued_at=F("ended_at") - timedelta(minutes=minutes))


def test_after_so_many_minutes_the_pair_on_the_screen_is_the_last_one(study):
    browser = arrive(study, prolific("anna"))
    assert "complete after 3 minutes with pairs on the screen" in browser.get(invitation_path(study)).content.decode()
    vote(browser, study, times=2)
    as_if_they_had_taken(1)
    key = pair_of(browser, study)
    # Beside the votes, which have no number here.
    page = page_of(browser, study, "vote/")
    assert "You: <strong>2</strong> of 3 minutes" in page
    assert '<progress max="3" value="2.0"' in page
    assert "Progress of the campaign" not in page
    as_if_they_had_taken(2)
    # Reached meanwhile, on another device: what stands here may be answered, and then comes the end.
    assert pair_of(browser, study) == key
    vote(browser, study)
    page = page_of(browser, study, "vote/")
    assert "Your part is complete" in page
    assert CODES_OF_ALL["completed"] in page
    assert Vote.objects.count() == 3
    [row] = payments_of(browser_of(study.owner), study)
    assert (row["outcome"], row["paid"]) == ("completed", "in full")
    assert row["active_minutes"] == "4.0"


def test_waiting_time_away_and_pairs_that_ran_out_are_not_counted(study):
    browser = arrive(study, prolific("anna"))
    vote(browser, study)
    key = pair_of(browser, study)
    Lease.objects.filter(pk=key).update(issued_at=timezone.now() - timedelta(hours=1), expires_at=timezone.now())
    leases.expire()
    Annotator.objects.update(joined_at=timezone.now() - timedelta(hours=2))
    assert not limits.has_been_active_enough(Annotator.objects.select_related("campaign").get())
    assert pair_of(browser, study)


@pytest.mark.parametrize(("votes", "outcome", "paid"), [(1, "completed", "in full"), (0, "time-over", "not")])
def test_the_sweep_settles_who_has_gone_after_their_last_vote(study, votes, outcome, paid):
    browser = arrive(study, prolific("anna"))
    vote(browser, study, times=votes)
    path, fields = f"{invitation_path(study)}vote/", {"choice": "skip", "lease": str(pair_of(browser, study))}
    browser.post(path, fields)
    as_if_they_had_taken(2 if votes else 3)
    settle_parts()
    # Who has only skipped has not done the part.
    [row] = payments_of(browser_of(study.owner), study)
    assert (row["outcome"], row["paid"]) == (outcome, paid)
    assert CODES_OF_ALL[outcome] in page_of(browser, study, "vote/")
