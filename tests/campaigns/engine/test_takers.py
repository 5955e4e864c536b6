"""Of those who wait for a pair, as many look again as there is room for: who came first, and may take one."""

import pytest

from prefmh_web.campaigns.engine import leases, open_comparisons
from prefmh_web.campaigns.models import Annotator, Campaign
from tests.support.campaigns import make_campaign, make_config


def waiting(researcher, people: int, **config) -> tuple[Campaign, list[int]]:
    campaign = make_campaign(researcher, config=make_config(**config))
    campaign.refresh_from_db()
    return campaign, [Annotator.objects.create(campaign=campaign).pk for _ in range(people)]


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
    first = Annotator.objects.get(pk=people[0])
    leases.skip(leases.take(first).key, first)
    assert takers(campaign, people) == {people[1]}


def takers(campaign: Campaign, people: list[int]) -> set[int]:
    return open_comparisons.takers(campaign, [(person, campaign.status) for person in people])
