"""Starts of chains that a model writes while people wait: each is asked for once, and chains open in their order."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

import sampler
from prefmh_web.campaigns import lifecycle, objects
from prefmh_web.campaigns.engine import leases, openings
from prefmh_web.campaigns.frozen import plan_of
from prefmh_web.campaigns.models import Annotator, Campaign, ChainOpening
from prefmh_web.campaigns.proposals import drawing
from tests.flows.test_model_costs import registered
from tests.support.campaigns import (
    assert_record_is_whole,
    assert_replay_passes,
    create_draft,
    export_to,
    make_config,
    sweep_everything,
    wait_until_idle,
)
from tests.support.models import Script, Writer, scripted_server

SPACE = {"kind": "model-texts", "model": "writer", "prompts": ["Write about the sea."], "limit": 8}


@pytest.fixture
def writer() -> Iterator[Script]:
    # Long enough for a second worker to find the same chain still to be opened.
    with scripted_server(Writer(lambda: time.sleep(0.3))) as script:
        yield script


@pytest.fixture
def campaign(researcher, writer, settings, idle_tasks) -> Campaign:
    """A campaign of one chain and one step, so that nothing is drawn ahead, in which nine may open."""
    registered(researcher, writer, settings, name="writer", concurrency=32)
    judges = [{"question": "Which is better?", "votes": 1}]
    changes = {"space": SPACE, "kernel": {"kind": "independent"}, "judges": judges, "chains": 1, "steps": 1}
    config = sampler.parse_config(make_config(**changes, max_chains=9)).model_dump(mode="json")
    made = create_draft(owner=researcher, is_seed_typed=True, name="Written", config=config)
    lifecycle.start(made)
    wait_until_idle()
    made.refresh_from_db()
    return made


def wanted_by(campaign: Campaign, people: int) -> list[ChainOpening]:
    persons = [Annotator.objects.create(campaign=campaign) for _ in range(people)]
    return [ChainOpening.objects.create(campaign=campaign, annotator=person) for person in persons]


def open_on_threads(campaign: Campaign, threads: int) -> None:
    def work(_: int) -> None:
        try:
            drawing.open_wanted(campaign.pk)
        finally:
            connection.close()

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, range(threads)))
    wait_until_idle()


def places(campaign: Campaign) -> list[int]:
    return list(campaign.chains.order_by("place").values_list("place", flat=True))


def store_drawn(campaign: Campaign, place: int, opening: ChainOpening) -> None:
    [position] = sampler.begin_many(plan_of(campaign), [place])
    openings.store_start(opening, objects.starting(campaign, place, position.state))


def test_workers_that_come_at_once_ask_the_model_for_each_start_once(campaign, writer, tmp_path):
    wanted_by(campaign, 5)
    open_on_threads(campaign, 8)
    assert places(campaign) == list(range(6))
    # A start and one proposal of each chain, each with a seed of its own; the first requests tested the endpoint.
    seeds = [body["seed"] for body in writer.requests if "max_tokens" in body and "prompt" in body]
    assert len(set(seeds[-10:])) == 10
    assert len(seeds) == len(set(seeds))
    for person in Annotator.objects.filter(campaign=campaign):
        lease = leases.take(person)
        leases.answer(lease.key, person, "first", 900)
    assert_record_is_whole(campaign)
    assert_replay_passes(export_to(campaign, tmp_path))


def test_a_chain_whose_start_is_drawn_first_waits_for_the_number_before_it(campaign):
    wanted_by(campaign, 2)
    with openings.reserved(campaign, 1) as first, openings.reserved(campaign, 1) as second:
        assert (list(first), list(second)) == ([1], [2])
        store_drawn(campaign, 2, second[2])
        openings.open_drawn(campaign)
        assert places(campaign) == [0]
        store_drawn(campaign, 1, first[1])
        openings.open_drawn(campaign)
        assert places(campaign) == [0, 1, 2]


def test_the_number_of_a_worker_that_died_is_drawn_again_and_what_it_had_drawn_is_not(campaign, writer):
    died_before, _ = wanted_by(campaign, 2)
    with openings.reserved(campaign, 2) as held:
        store_drawn(campaign, 2, held[2])
    ChainOpening.objects.filter(pk=died_before.pk).update(claimed_until=timezone.now() + timedelta(minutes=1))
    asked = len(writer.requests)
    sweep_everything()
    wait_until_idle()
    # Somebody may be at it still.
    assert (places(campaign), len(writer.requests)) == ([0], asked)
    ChainOpening.objects.filter(pk=died_before.pk).update(claimed_until=timezone.now() - timedelta(seconds=1))
    sweep_everything()
    wait_until_idle()
    assert places(campaign) == [0, 1, 2]
    assert [opening.chain.place for opening in campaign.openings.order_by("pk")] == [1, 2]
