"""Proposals that a model writes ahead of time, while people vote: each once, and not asked for again meanwhile."""

import threading

import numpy as np
import pytest

import sampler
from prefmh_web.annotate import leases
from prefmh_web.campaigns import lifecycle, proposing, setup
from prefmh_web.campaigns.models import Annotator, Campaign, Chain, Side
from prefmh_web.endpoints.dialects import Dialect
from prefmh_web.endpoints.models import Endpoint
from tests.support.record import assert_record_is_whole
from tests.support.scripted_server import Writer, scripted_server, status, texts_written
from tests.support.stack import make_recipe, vote_until_finished

STEPS = 6


@pytest.fixture
def paper():
    """What the model writes on: a sheet a text. It waits while there is none."""
    sheets = threading.Semaphore(0)
    yield sheets
    sheets.release(1000)


@pytest.fixture
def script(paper):
    with scripted_server(Writer(lambda: paper.acquire(timeout=60))) as script:
        yield script


@pytest.fixture
def endpoint(researcher, script, settings) -> Endpoint:
    settings.ENDPOINT_ALLOWED_HOSTS = ["127.0.0.1"]
    settings.ENDPOINT_ALLOW_PRIVATE = ["127.0.0.0/8"]
    return Endpoint.objects.create(
        owner=researcher, name="Slow", base_url=script.url, model="slow", dialect=Dialect.VLLM, concurrency=64
    )


def make(endpoint: Endpoint, chains: int) -> Campaign:
    space = {"kind": "model-texts", "model": endpoint.name, "prompts": ["Write about the sea."], "limit": 9}
    judges = [{"question": "Which is better?", "budget": 1}]
    recipe = make_recipe(space=space, kernel={"kind": "suffix"}, judges=judges, chains=chains, steps=STEPS)
    recipe = sampler.parse_recipe(recipe).model_dump(mode="json")
    return setup.create(owner=endpoint.owner, name="Written", recipe=recipe)


@pytest.fixture
def writing_ahead(endpoint, script, paper, eventually) -> Campaign:
    """A campaign of one chain: its first step is open, and the model is at work on both that may follow."""
    campaign = make(endpoint, chains=1)
    paper.release(2)
    lifecycle.start(campaign)
    eventually(lambda: texts_written(script) == 4)
    return campaign


def vote(campaign: Campaign) -> None:
    annotator = Annotator.objects.create(campaign=campaign)
    leases.answer(leases.take(annotator).key, annotator, Side.LEFT, 0)


def test_what_is_being_written_is_not_asked_for_a_second_time(writing_ahead, script, paper, idle_tasks, eventually):
    proposing.foresee(writing_ahead.pk)
    vote(writing_ahead)
    proposing.write(writing_ahead.pk)
    assert texts_written(script) == 4
    assert not proposing.waiting_chains().exists()
    # Once it is there the chain goes on by itself; but somebody has waited.
    paper.release(2)
    chain = Chain.objects.get()
    eventually(lambda: chain.comparisons.filter(step=2).exists())
    eventually(lambda: texts_written(script) == 6)
    chain.refresh_from_db()
    assert (chain.step, chain.foreseen) == (1, 0)
    paper.release(2)
    idle_tasks()
    vote(writing_ahead)
    eventually(lambda: Chain.objects.get().foreseen == 1)
    assert chain.comparisons.filter(step=3).exists()


def test_a_failure_ahead_of_time_is_told_once_somebody_waits(writing_ahead, script, paper, idle_tasks, eventually):
    script.faults.extend([status(500)] * 50)
    vote(writing_ahead)
    assert Chain.objects.get().waits_because == ""
    paper.release(2)
    eventually(lambda: "500" in Chain.objects.get().waits_because)


@pytest.mark.parametrize("chains", [1, 4])
def test_each_text_is_written_once(endpoint, script, paper, idle_tasks, chains):
    paper.release(1000)
    campaign = make(endpoint, chains)
    lifecycle.start(campaign)
    people = [Annotator.objects.create(campaign=campaign) for _ in range(2)]
    vote_until_finished(campaign, people, {0: lambda place: 0.0}, np.random.default_rng(2))
    assert_record_is_whole(campaign)
    # Each chain's start and first proposal, and two for each step that follows another.
    assert texts_written(script) == chains * (2 + 2 * (STEPS - 1))
    assert sum(chain.foreseen for chain in Chain.objects.all()) == chains * (STEPS - 1)
