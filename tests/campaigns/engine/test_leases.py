"""Leases: who is asked what, and when a question goes back."""

from collections import Counter
from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from prefmh_web.campaigns import lifecycle
from prefmh_web.campaigns.engine import leases, open_comparisons
from prefmh_web.campaigns.models import Comparison, Lease, Side, Vote, Voter
from tests.support.campaigns import make_campaign, make_config
from tests.support.records import assert_record_is_whole

ONE_CHAIN = {"chains": 1, "judges": [{"question": "Which?", "votes": 4}]}


@pytest.fixture
def person(campaign):
    return Voter.objects.create(campaign=campaign)


def people(campaign, count):
    return [Voter.objects.create(campaign=campaign) for _ in range(count)]


def make_overdue(lease: Lease) -> None:
    Lease.objects.filter(pk=lease.pk).update(expires_at=timezone.now() - timedelta(seconds=1))


def test_a_person_keeps_their_lease_until_they_answer(person):
    first = leases.take(person)
    assert leases.take(person) == first
    leases.answer(first.key, person, Side.FIRST, 1234)
    assert leases.take(person) != first
    vote = Vote.objects.get()
    assert (vote.key, vote.number, vote.chosen_side, vote.elapsed_ms) == (first.key, 1, "first", 1234)


def test_nobody_is_asked_the_same_question_on_one_comparison_twice(person):
    asked = []
    while lease := leases.take(person):
        asked.append((lease.comparison_id, lease.judge_id))
        leases.answer(lease.key, person, Side.FIRST, None)
    assert max(Counter(asked).values()) == 1


def test_a_place_that_comes_back_between_a_look_and_its_lease_goes_to_somebody(researcher, idle_tasks):
    campaign = make_campaign(researcher, config=make_config(**ONE_CHAIN))
    # Two votes for the proposal accept it, three against reject it: two people can be asked at once.
    Comparison.objects.update(uniform=0.5, log_r0=0.0)
    first, looking, last = people(campaign, 3)
    given = leases.take(first)
    looked_at = list(open_comparisons.wanted_by(looking))
    leases.skip(given.key, first)
    assert leases._first_lease(looked_at, looking) == leases.live_lease_of(looking)
    assert leases.take(last)


def test_a_comparison_that_is_passed_over_is_found_while_others_are_asked_about(campaign):
    skipping, asked, forgotten = people(campaign, 3)
    for _ in range(campaign.chains.count()):
        leases.skip(leases.take(skipping).key, skipping)
    held = leases.take(asked)
    passed_over = Comparison.objects.filter(verdict__isnull=True).exclude(pk=held.comparison_id)
    assert passed_over.update(is_askable=False)
    leases.refresh_where_nobody_is_asked()
    assert all(comparison.is_askable for comparison in passed_over.all())
    assert leases.take(forgotten)


def test_a_place_left_behind_goes_back_when_its_grace_is_over(researcher, idle_tasks):
    campaign = make_campaign(researcher, config=make_config(**ONE_CHAIN))
    gone, here = people(campaign, 2)
    for person in (gone, here):
        leases.take(person)
        leases.orphan(person, timedelta(seconds=-1))
    leases.adopt(here)
    for person in (gone, here):
        leases.release(person)
    assert Lease.objects.get(voter=gone).ending == Lease.Ending.EXPIRED
    assert Lease.objects.get(voter=here).ended_at is None


def test_an_expired_question_goes_to_somebody_else_and_its_person_rests(campaign, person):
    lease = leases.take(person)
    make_overdue(lease)
    leases.expire()
    person.refresh_from_db()
    assert person.resting
    assert leases.take(person) is None
    other = leases.take(Voter.objects.create(campaign=campaign))
    assert (other.comparison_id, other.judge_id) == (lease.comparison_id, lease.judge_id)
    leases.wake(person)
    assert leases.take(person) is not None


def test_a_page_that_comes_back_while_overdue_pairs_are_swept_keeps_its_pair(person):
    lease = leases.take(person)
    make_overdue(lease)
    seen = []

    def come_back(execute, sql, *rest):
        # Between the look for what is overdue and the lock of the first of these.
        if seen == ["overdue"]:
            seen.append("back")
            Lease.objects.filter(pk=lease.pk).update(expires_at=timezone.now() + timedelta(minutes=2))
        found = execute(sql, *rest)
        if not seen and sql.startswith("SELECT") and '"expires_at" <=' in sql:
            seen.append("overdue")
        return found

    with connection.execute_wrapper(come_back):
        leases.expire()
    lease.refresh_from_db()
    assert (seen, lease.ended_at) == (["overdue", "back"], None)


def test_a_vote_after_the_expiry_counts_while_there_is_room(campaign, person):
    lease = leases.take(person)
    make_overdue(lease)
    leases.expire()
    person.refresh_from_db()
    vote = leases.answer(lease.key, person, Side.FIRST, None)
    assert vote.counted
    assert not person.resting


def test_an_expired_pair_that_comes_back_to_its_person_is_out_again(person):
    lease = leases.take(person)
    make_overdue(lease)
    leases.expire()
    leases.wake(person)
    again = leases.take(person)
    assert again.key == lease.key
    lease.refresh_from_db()
    assert (lease.ended_at, lease.ending) == (None, None)
    assert lease.expires_at > timezone.now()
    # It is this person's until they answer, and nobody is given a second one.
    assert leases.take(person).key == again.key


def test_a_late_vote_that_did_not_count_bars_nobody_from_the_question(researcher, idle_tasks):
    campaign = make_campaign(researcher, config=make_config(chains=1, judges=[{"question": "Which?", "votes": 1}]))
    late, quick = people(campaign, 2)
    lease = leases.take(late)
    make_overdue(lease)
    leases.expire()
    replacement = leases.take(quick)
    assert not leases.answer(lease.key, late, Side.FIRST, None).counted
    leases.orphan(quick)
    make_overdue(replacement)
    leases.expire()
    again = leases.take(late)
    assert again.comparison_id == lease.comparison_id
    assert leases.answer(again.key, late, Side.FIRST, None).counted
    assert_record_is_whole(campaign)


def test_the_chain_furthest_behind_is_asked_about_first(campaign, idle_tasks):
    one, two = people(campaign, 2)
    for _ in range(8):
        for person in (one, two):
            if lease := leases.take(person):
                leases.answer(lease.key, person, Side.FIRST, None)
                idle_tasks()
    steps = Comparison.objects.filter(verdict__isnull=True).values_list("step", flat=True)
    asked = leases.take(Voter.objects.create(campaign=campaign))
    assert asked.comparison.step == min(steps)


def test_questions_of_people_whom_a_crash_took_away_go_back_soon(person):
    lease = leases.take(person)
    Voter.objects.filter(pk=person.pk).update(online_until=timezone.now() - timedelta(seconds=1))
    leases.expire()
    lease.refresh_from_db()
    assert lease.is_orphan
    assert lease.expires_at <= timezone.now() + leases.ORPHAN_GRACE


def test_a_lease_whose_page_is_gone_ends_soon_and_one_that_is_back_does_not(person):
    lease = leases.take(person)
    leases.orphan(person)
    lease.refresh_from_db()
    assert lease.expires_at <= timezone.now() + leases.ORPHAN_GRACE
    leases.adopt(person)
    lease.refresh_from_db()
    assert lease.expires_at == lease.issued_at + timedelta(seconds=120)
    leases.orphan(person)
    make_overdue(lease)
    leases.expire()
    person.refresh_from_db()
    assert not person.resting


def test_a_paused_campaign_gives_no_new_lease_but_takes_the_vote_that_is_out(campaign, person):
    lease = leases.take(person)
    lifecycle.pause(campaign)
    person.refresh_from_db()
    assert leases.take(person) == lease
    assert leases.answer(lease.key, person, Side.SECOND, None).counted
    person = Voter.objects.select_related("campaign").get(pk=person.pk)
    assert leases.take(person) is None


def test_sides_are_drawn_anew_for_every_lease_and_fairly(researcher, idle_tasks):
    campaign = make_campaign(researcher, config=make_config(chains=40))
    person = Voter.objects.create(campaign=campaign)
    again = set()
    for _ in range(12):
        lease = leases.take(person)
        again.add(lease.proposal_side)
        leases.skip(lease.key, person)
    assert again == {"first", "second"}
    given = filter(None, (leases.take(person) for person in people(campaign, 60)))
    sides = Counter(lease.proposal_side for lease in given)
    # Binomial(n, 1/2): four standard deviations.
    assert abs(sides["first"] - sides["second"]) < 4 * sides.total() ** 0.5
