"""Skips by side and judge, pairs that ran out of time and late votes, on the live page."""

import pytest
from django.utils import timezone

from prefmh_web.campaigns.engine import leases
from prefmh_web.campaigns.models import Annotator, Campaign, Lease, Side, Vote
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


def run_out(lease: Lease) -> None:
    Lease.objects.filter(pk=lease.pk).update(expires_at=timezone.now())
    leases.expire()


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


def test_sides_that_are_drawn_and_differ_clearly_are_marked(researcher, idle_tasks):
    campaign = make_campaign(researcher)
    one = take(campaign)
    for count, side in ((30, Side.FIRST), (8, Side.SECOND)):
        for _ in range(count):
            Lease.objects.create(
                comparison=one.comparison, judge=one.judge, annotator=one.annotator, proposal_side=side,
                issued_at=one.issued_at, expires_at=one.expires_at, ended_at=one.issued_at, ending="skipped",
            )  # fmt: skip
    found = progress_of(campaign).unanswered.skips
    # 22 more on one side: 3.6 standard errors of 38 coins.
    assert [each.is_uneven for each in found] == [each.judge == one.judge for each in found]
    assert page_of(researcher, campaign).count("uneven</strong>") == 1


@pytest.mark.parametrize(("expired", "answered", "warns"), [(2, 98, False), (3, 97, True), (3, 40, False)])
def test_more_than_two_in_a_hundred_that_run_out_are_warned_about(researcher, study, expired, answered, warns):
    for _ in range(expired):
        lease = take(study)
        run_out(lease)
    Annotator.objects.filter(pk=lease.annotator_id).update(votes_cast=answered)
    assert progress_of(study).unanswered.leases == expired + answered
    page = page_of(researcher, study)
    assert ("is too many" in page) is warns
    assert "ran out of time" in page


def test_late_votes_are_told_by_what_they_were_for(researcher, study):
    for is_for in (True, False, False):
        lease = take(study)
        side = Side(lease.proposal_side)
        Vote.objects.create(
            key=lease.key, comparison=lease.comparison, judge=lease.judge, annotator=lease.annotator,
            proposal_side=side, chosen_side=side if is_for else side.other,
        )  # fmt: skip
        leases.skip(lease.key, lease.annotator)
    found = progress_of(study).unanswered
    assert (found.late_for, found.late_against) == (1, 2)
    assert "1 for the proposal, 2 for the current object" in page_of(researcher, study)


def test_an_expired_pair_that_is_answered_after_all_is_not_among_them(study):
    lease = take(study)
    run_out(lease)
    assert progress_of(study).unanswered.expired == 1
    leases.answer(lease.key, lease.annotator, Side.FIRST, 900)
    found = progress_of(study).unanswered
    assert (found.expired, found.leases) == (0, 1)
