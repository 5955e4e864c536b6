"""Chains that open while a campaign runs: for whoever would wait, no more than are needed, never more than allowed.

Starts of chains that a model writes while people wait: each is asked for once, and chains open in their order.
"""

import re
import time
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from functools import partial

import numpy as np
import pytest
from django.utils import timezone

import sampler
from prefmh_web.campaigns import lifecycle, objects
from prefmh_web.campaigns.engine import leases, on_demand
from prefmh_web.campaigns.frozen import plan_of
from prefmh_web.campaigns.models import Campaign, ChainOnDemand, Lease, Side, Voter
from prefmh_web.campaigns.proposals import drawing
from tests.campaigns.record.test_export import rewrite
from tests.flows.test_model_costs import registered
from tests.security.test_limits import all_at_once
from tests.support.campaigns import (
    create_draft,
    live_page,
    make_campaign,
    make_config,
    started_now,
    vote_until_finished,
)
from tests.support.models import Script, Writer, scripted_server, status
from tests.support.process import sweep_everything, wait_until_idle
from tests.support.records import (
    assert_record_is_whole,
    assert_replay_passes,
    checked_export,
    export_to,
    happened,
    refused_by_replay,
    table,
)

ONE_VOTE = [{"question": "Which?", "votes": 1}]
TWO_VOTES = [{"question": "Which?", "votes": 2}]
TEXTS = {"space": {"kind": "texts"}, "kernel": {"kind": "suffix"}}


def on_demand_campaign(researcher, **changes) -> Campaign:
    config = {"judges": ONE_VOTE, "chains": 1, "max_chains": 20, "steps": 4} | changes
    return make_campaign(researcher, config=make_config(**config))


def texts_on_demand(researcher, **changes) -> Campaign:
    """Return a campaign whose objects the chains make, which only a task does."""
    config = {"judges": ONE_VOTE, "chains": 1, "max_chains": 4, "steps": 4} | TEXTS | changes
    return started_now(create_draft(owner=researcher, config=make_config(**config)))


def people_of(campaign: Campaign, number: int) -> list[Voter]:
    campaign.refresh_from_db()
    return [Voter.objects.create(campaign=campaign) for _ in range(number)]


def indices(campaign: Campaign) -> list[int]:
    return list(campaign.chains.order_by("index").values_list("index", flat=True))


@pytest.mark.parametrize(("most", "opened"), [(3, 3), (None, 1)])
def test_no_more_chains_open_than_the_config_allows(researcher, idle_tasks, most, opened):
    campaign = on_demand_campaign(researcher, max_chains=most)
    people = people_of(campaign, 5)
    assert [leases.take(person) is not None for person in people] == [True] * opened + [False] * (5 - opened)
    assert indices(campaign) == list(range(opened))
    assert on_demand.seekers(campaign, [person.pk for person in people]) == set()


def test_a_chain_that_has_room_is_voted_on_before_another_opens(researcher, idle_tasks):
    campaign = on_demand_campaign(researcher, judges=[{"question": "Which?", "votes": 9}])
    assert all(leases.take(person) for person in people_of(campaign, 3))
    taken = Counter(Lease.objects.values_list("comparison__chain__index", flat=True))
    assert max(taken.values()) > 1
    assert len(indices(campaign)) == len(taken)


def test_nothing_opens_in_a_campaign_that_is_paused_or_over(researcher, idle_tasks):
    campaign = on_demand_campaign(researcher, steps=1)
    first, second = people_of(campaign, 2)
    lease = leases.take(first)
    lifecycle.pause(campaign)
    # The second's page has read the campaign before.
    assert leases.take(second) is None
    lifecycle.resume(campaign)
    leases.answer(lease.key, first, Side.FIRST, 900)
    assert leases.take(second) is None
    assert indices(campaign) == [0]
    assert Campaign.objects.get(pk=campaign.pk).status == Campaign.Status.FINISHED


def test_fifty_people_at_once_open_as_many_chains_as_they_need(researcher, idle_tasks):
    campaign = on_demand_campaign(researcher, max_chains=30)
    found: list[Lease | None] = []
    all_at_once([lambda person=person: found.append(leases.take(person)) for person in people_of(campaign, 50)])
    assert (len(found), sum(lease is not None for lease in found)) == (50, 30)
    assert indices(campaign) == list(range(30))
    assert_record_is_whole(campaign)


def test_where_a_task_draws_the_start_the_page_has_its_pair_once_it_is_drawn(researcher, idle_tasks):
    campaign = texts_on_demand(researcher)
    first, second = people_of(campaign, 2)
    assert leases.take(first)
    assert leases.take(second) is None
    # A page that looks again before that wants no second chain.
    leases.take(second)
    idle_tasks()
    assert leases.take(second).comparison.chain.index == 1
    assert indices(campaign) == [0, 1]


def test_of_those_who_wait_whoever_has_a_chain_on_its_way_is_not_told_to_look_for_another(researcher):
    campaign = texts_on_demand(researcher, max_chains=3)
    provided, waiting, another = people_of(campaign, 3)
    ChainOnDemand.objects.create(campaign=campaign, voter=provided)
    looked = [provided.pk, waiting.pk, another.pk]
    # One chain is there, one on its way, and there may be three.
    assert on_demand.seekers(campaign, looked) == {waiting.pk}


def test_chains_that_are_being_opened_are_among_those_that_there_may_be(researcher, idle_tasks):
    campaign = texts_on_demand(researcher, max_chains=2)
    for person in people_of(campaign, 3):
        leases.take(person)
    assert campaign.chain_demands.count() == 1
    idle_tasks()
    assert indices(campaign) == [0, 1]


def test_a_chain_whose_task_was_lost_is_opened_by_the_sweep_once(researcher, idle_tasks):
    campaign = texts_on_demand(researcher)
    first, second, third = people_of(campaign, 3)
    leases.take(first)
    # As a process leaves it that dies before its hint is sent; and `first` has a pair by now.
    for person in (first, second):
        ChainOnDemand.objects.create(campaign=campaign, voter=person)
    for _ in range(2):
        sweep_everything()
    assert [demand.voter for demand in campaign.chain_demands.all()] == [second]
    assert indices(campaign) == [0, 1]
    assert leases.take(third)


@pytest.fixture
def finished(researcher, idle_tasks, tmp_path):
    """The export of a campaign whose chains make their objects, from two chains to all five that there may be."""
    campaign = texts_on_demand(researcher, judges=TWO_VOTES, chains=2, max_chains=5, steps=6, burn_in=2)
    people = people_of(campaign, 5)
    for person in people:
        leases.take(person)
        idle_tasks()
        leases.take(person)
    vote_until_finished(campaign, people, {0: lambda index: (index * 7 % 5) / 2}, np.random.default_rng(5))
    assert_record_is_whole(campaign)
    return export_to(campaign, tmp_path)


def test_the_record_says_when_and_why_each_chain_opened_and_replays(finished):
    opened = happened(finished, "chain-opened")
    assert [said for _, said in opened] == [{"chain_index": 2 + each, "reason": "wait"} for each in range(len(opened))]
    assert opened
    rows = [row for row in table(finished, "events.csv") if row["kind"] == "chain-opened"]
    assert all(row["voter"] for row in rows)
    # Step × most + chain, also for those that were there from the start.
    proposed = {(row["step"], row["chain_index"]): int(row["proposal_state"]) for row in table(finished, "steps.csv")}
    assert {number for (step, chain), number in proposed.items() if number == int(step) * 5 + int(chain)}
    assert_replay_passes(finished)


TAMPERINGS = {
    "uniform": ("steps.csv", lambda rows: rows[-1].update(uniform="0.5")),
    "start": (
        "states.csv",
        lambda rows: next(row for row in rows if row["state_index"] == "2").update(content="Another start."),
    ),
    "no event": ("events.csv", lambda rows: opening_in(rows).update(kind="paused")),
    "another chain": ("events.csv", lambda rows: opening_in(rows).update(data='{"chain_index": 9, "reason": "wait"}')),
    "reason": ("events.csv", lambda rows: opening_in(rows).update(data='{"chain_index": 2, "reason": "start"}')),
    "nobody": ("events.csv", lambda rows: opening_in(rows).update(voter="")),
    "moment": ("events.csv", lambda rows: opening_in(rows).update(at="2099-01-01T00:00:00.000+00:00")),
    "number": ("events.csv", lambda rows: opening_in(rows).update(number="77")),
}


def opening_in(rows):
    return next(row for row in rows if row["kind"] == "chain-opened")


def test_a_late_chain_that_was_tampered_with_is_found(finished):
    for name, change in TAMPERINGS.values():
        refused_by_replay(rewrite(finished, name, change))

    def second_out_of_turn(rows):
        [_, second, *_] = [row for row in rows if row["kind"] == "chain-opened"]
        second.update(data='{"chain_index": 9, "reason": "wait"}')

    assert "expected 3, if there is one more" in refused_by_replay(rewrite(finished, "events.csv", second_out_of_turn))


SPACE = {"kind": "model-texts", "model": "writer", "prompts": ["Write about the sea."], "limit": 8}


@pytest.fixture
def writer() -> Iterator[Script]:
    # Long enough for a second worker to find the same chain still to be opened.
    with scripted_server(Writer(lambda: time.sleep(0.3))) as script:
        yield script


@pytest.fixture
def campaign(researcher, writer, settings, idle_tasks) -> Campaign:
    """A campaign of one chain and one step, so that nothing is drawn ahead, in which nine may open."""
    registered(researcher, writer.url, settings, name="writer", concurrency=32)
    return texts_on_demand(researcher, space=SPACE, kernel={"kind": "independent"}, steps=1, max_chains=9)


def wanted_by(campaign: Campaign, people: int) -> list[ChainOnDemand]:
    return [ChainOnDemand.objects.create(campaign=campaign, voter=each) for each in people_of(campaign, people)]


def store_drawn(campaign: Campaign, index: int, demand: ChainOnDemand) -> None:
    [position] = sampler.begin_many(plan_of(campaign), [index])
    on_demand.store_start(demand, objects.starting(campaign, index, position.state))


def test_workers_that_come_at_once_ask_the_model_for_each_start_once(campaign, writer, tmp_path):
    wanted_by(campaign, 5)
    all_at_once([partial(drawing.open_wanted, campaign.pk)] * 8)
    wait_until_idle()
    assert indices(campaign) == list(range(6))
    # A start and one proposal of each chain, each with a seed of its own; the first requests tested the endpoint.
    seeds = [body["seed"] for body in writer.requests if "max_tokens" in body and "prompt" in body]
    assert len(set(seeds[-10:])) == 10
    assert len(seeds) == len(set(seeds))
    for person in Voter.objects.filter(campaign=campaign):
        lease = leases.take(person)
        leases.answer(lease.key, person, "first", 900)
    checked_export(campaign, tmp_path)


def test_chains_that_open_before_anybody_waits_say_so_in_the_record(campaign, tmp_path):
    people_of(campaign, 3)
    drawing.open_spare_chains()
    wait_until_idle()
    reasons = [said["reason"] for _, said in happened(export_to(campaign, tmp_path), "chain-opened")]
    assert set(reasons) == {"ahead"}
    assert len(reasons) == len(indices(campaign)) - 1


def test_a_chain_whose_start_is_drawn_first_waits_for_the_number_before_it(campaign):
    wanted_by(campaign, 2)
    with on_demand.reserved(campaign, 1) as first, on_demand.reserved(campaign, 1) as second:
        assert (list(first), list(second)) == ([1], [2])
        store_drawn(campaign, 2, second[2])
        on_demand.open_drawn(campaign)
        assert indices(campaign) == [0]
        store_drawn(campaign, 1, first[1])
        on_demand.open_drawn(campaign)
        assert indices(campaign) == [0, 1, 2]


def test_the_page_says_why_chains_that_people_wait_for_do_not_open(signed_in, campaign, writer):
    wanted_by(campaign, 2)
    writer.faults.extend([status(400, b"this model is gone")] * 2)
    drawing.open_wanted(campaign.pk)
    page = live_page(signed_in, campaign)
    assert "Chains wait for a model." in page
    assert re.search("2 chains wait for the model: [^<]*this model is gone", page)
    # They are left alone for a while, as chains are that wait for a proposal; and nothing is under way meanwhile.
    asked = len(writer.requests)
    sweep_everything()
    assert (indices(campaign), len(writer.requests)) == ([0], asked)
    ChainOnDemand.objects.update(claimed_until=timezone.now() - timedelta(seconds=1))
    sweep_everything()
    assert indices(campaign) == [0, 1, 2]
    assert "for the model" not in live_page(signed_in, campaign)
    assert campaign.model_usage.get().repeated == 0


def test_the_number_of_a_worker_that_died_is_drawn_again_and_what_it_had_drawn_is_not(campaign, writer):
    died_before, _ = wanted_by(campaign, 2)
    with on_demand.reserved(campaign, 2) as held:
        store_drawn(campaign, 2, held[2])
    ChainOnDemand.objects.filter(pk=died_before.pk).update(claimed_until=timezone.now() + timedelta(minutes=1))
    asked = len(writer.requests)
    sweep_everything()
    # Somebody may be at it still.
    assert (indices(campaign), len(writer.requests)) == ([0], asked)
    ChainOnDemand.objects.filter(pk=died_before.pk).update(claimed_until=timezone.now() - timedelta(seconds=1))
    sweep_everything()
    assert indices(campaign) == [0, 1, 2]
    assert [demand.chain.index for demand in campaign.chain_demands.order_by("pk")] == [1, 2]
