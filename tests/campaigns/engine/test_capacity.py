"""What is written down about comparisons that have no room, so that nobody looks at them, is so at every moment.

Of those who wait for a pair, as many look again as there is room for: who came first, and may take one.
"""

import random
from datetime import timedelta

import pytest
from django.utils import timezone

from prefmh_web.campaigns.engine import leases, open_comparisons
from prefmh_web.campaigns.engine.open_comparisons import on
from prefmh_web.campaigns.models import Campaign, Comparison, Lease, Side, Voter
from tests.support.campaigns import make_campaign, make_config

JUDGES = ([{"question": "Which?", "votes": 1}], [{"question": "Which?", "votes": 3}, {"question": "How?", "votes": 2}])


def act(rng: random.Random, person: Voter) -> None:
    """Take a lease, or answer it, skip it, or let its time run out and perhaps answer after all."""
    person.refresh_from_db()
    if person.resting:
        leases.wake(person)
    lease = leases.take(person)
    deed = rng.choice(("leave", "answer", "answer", "skip", "expire", "come late"))
    if lease is None or deed == "leave":
        return
    if deed in ("expire", "come late"):
        Lease.objects.filter(pk=lease.pk).update(expires_at=timezone.now() - timedelta(seconds=1))
        leases.expire()
    if deed in ("answer", "come late"):
        leases.answer(lease.key, person, rng.choice(list(Side)), None)
    if deed == "skip":
        leases.skip(lease.key, person)


@pytest.mark.parametrize("judges", JUDGES, ids=["one judge", "two judges"])
def test_a_comparison_is_passed_over_if_and_only_if_it_has_room_for_nobody(researcher, idle_tasks, judges):
    campaign = make_campaign(researcher, config=make_config(chains=2, judges=judges))
    campaign.refresh_from_db()
    everybody = [Voter.objects.create(campaign=campaign) for _ in range(7)]
    rng = random.Random(20261121)
    seen = set()
    for _ in range(150):
        act(rng, rng.choice(everybody))
        idle_tasks()
        for comparison in Comparison.objects.filter(chain__campaign=campaign, verdict__isnull=True):
            has_room = on(comparison.pk, campaign).has_room_for_somebody()
            assert comparison.is_askable == has_room
            seen.add(has_room)
    assert seen == {True, False}


def waiting(researcher, people: int, **config) -> tuple[Campaign, list[int]]:
    campaign = make_campaign(researcher, config=make_config(**config))
    campaign.refresh_from_db()
    return campaign, [Voter.objects.create(campaign=campaign).pk for _ in range(people)]


@pytest.mark.parametrize(("chains", "budget", "room"), [(1, 1, 1), (3, 1, 3), (2, 3, 6), (40, 1, 9)])
def test_as_many_look_again_as_there_is_room_for(researcher, idle_tasks, chains, budget, room):
    judges = [{"question": "Which?", "votes": budget}]
    campaign, people = waiting(researcher, 9, chains=chains, judges=judges)
    found = takers(campaign, people)
    # A comparison may use fewer votes than its budget before it is settled.
    assert found == set(people[: len(found)])
    assert len(found) == room if budget == 1 else 0 < len(found) <= room


def test_who_has_answered_or_just_skipped_is_passed_over(researcher, idle_tasks):
    judges = [{"question": "Which?", "votes": 1}]
    campaign, people = waiting(researcher, 3, chains=1, judges=judges)
    first = Voter.objects.get(pk=people[0])
    leases.skip(leases.take(first).key, first)
    assert takers(campaign, people) == {people[1]}


def takers(campaign: Campaign, people: list[int]) -> set[int]:
    return open_comparisons.takers(campaign, [(person, campaign.status) for person in people])
