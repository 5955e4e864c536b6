"""On a pair that people and models judge, the sides of the one do not follow from those of the other."""

from collections.abc import Iterator

import numpy as np
import pytest

import sampler
from prefmh_web.campaigns.engine import leases
from prefmh_web.campaigns.models import Annotator, Lease, Side
from tests.support.campaigns import make_campaign, make_config, registered
from tests.support.models import KnownJudge, Script, is_vote, scripted_server, status

CHAINS = 60
SOURCE = {"kind": "model", "endpoint": "A model"}
MODEL = {"question": "Which is darker?", "votes": 3, "source": SOURCE}
PEOPLE = {"question": "Which is better?", "votes": 3}


@pytest.fixture
def silent() -> Iterator[Script]:
    """A model that passes its test and gives no vote: what its votes would show is known all the same."""
    with scripted_server(KnownJudge({})) as script:
        script.strikes = is_vote
        script.faults.extend([status(503)] * 10_000)
        yield script


@pytest.mark.parametrize("judges", [[MODEL, PEOPLE], [PEOPLE, MODEL], [PEOPLE, MODEL, PEOPLE | {"question": "Or?"}]])
def test_the_sides_that_people_see_are_independent_of_those_that_models_see(
    researcher, silent, settings, idle_tasks, judges
):
    registered(researcher, silent.url, settings)
    campaign = make_campaign(researcher, config=make_config(judges=judges, chains=CHAINS, steps=2))
    place, budgets = judges.index(MODEL), tuple(judge["votes"] for judge in judges)
    shown: list[tuple[bool, tuple[bool, ...]]] = []
    for _ in range(CHAINS * 2):
        lease = leases.take(Annotator.objects.create(campaign=campaign))
        if lease is None:
            break
        chain, step = lease.comparison.chain.place, lease.comparison.step
        sides = sampler.presentations_of(campaign.seed, chain, step, budgets, place, "random")
        shown.append((lease.proposal_side == Side.FIRST, sides))
    assert Lease.objects.count() >= CHAINS / 2
    people = np.array([first for first, _ in shown])
    for slot in range(MODEL["votes"]):
        model = np.array([sides[slot] for _, sides in shown])
        # Agreement of fair coins has standard deviation sqrt(n) / 2; four of them.
        assert abs(np.sum(people == model) - len(shown) / 2) < 2 * np.sqrt(len(shown)), f"slot {slot}"
