"""Skips by side and judge, pairs that ran out of time and late votes, on the live page."""

import pytest
from django.utils import timezone

from prefmh_web.campaigns.engine import leases
from prefmh_web.campaigns.models import Annotator, Campaign, Lease
from prefmh_web.campaigns.monitoring.progress import progress_of
from tests.security.world import browser_of
from tests.support.campaigns import make_campaign, make_config

JUDGES = [
    {"question": "Which is darker?", "votes": 1, "order": order} for order in ("proposal-first", "proposal-second")
]


@pytest.fixture
def study(researcher, idle_tasks) -> Campaign:
    return make_campaign(researcher, config=make_config(chains=2, judges=JUDGES))


def take(campaign) -> Lease:
    return leases.take(Annotator.objects.create(campaign=campaign))


def page_of(researcher, campaign) -> str:
    return browser_of(researcher).get(campaign.get_absolute_url()).content.decode()


def test_skips_are_counted_by_judge_and_by_where_the_proposal_stood(researcher, study):
    assert "Pairs without a vote" not in page_of(researcher, study)
    sides = [_skip(study) for _ in range(5)]
    found = progress_of(study).unanswered
    # The first judge's proposals come first, the second one's second.
    assert [(each.first, each.second) for each in found.skips] == [
        (sides.count("first"), 0),
        (0, sides.count("second")),
    ]
    assert not any(each.is_uneven for each in found.skips)
    page = page_of(researcher, study)
    assert "Proposal first" in page
    assert "ran out of time" not in page


def _skip(study) -> str:
    lease = take(study)
    leases.skip(lease.key, lease.annotator)
    return lease.proposal_side


def test_a_pair_taken_back_from_somebody_removed_is_no_skip(study):
    lease = take(study)
    Annotator.objects.filter(pk=lease.annotator_id).update(removed_at=timezone.now())
    leases.withdraw([lease.annotator_id])
    assert not progress_of(study).unanswered.is_worth_telling
