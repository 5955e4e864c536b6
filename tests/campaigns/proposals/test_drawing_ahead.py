"""Proposals that a model writes ahead of time, while people vote: each once, and not asked for again meanwhile."""

import threading

import pytest
from django.utils import timezone

import sampler
from prefmh_web import tasks
from prefmh_web.campaigns import lifecycle
from prefmh_web.campaigns.engine import leases, locks, usage
from prefmh_web.campaigns.models import Campaign, Chain, ModelUsage, PrefetchedProposal, Side, State, Voter
from prefmh_web.campaigns.proposals import drawing
from prefmh_web.endpoints.models import Endpoint
from tests.support.campaigns import create_draft, make_config, registered, started_now, voted_to_the_end
from tests.support.models import Writer, scripted_server, texts_written
from tests.support.records import assert_record_is_whole

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
    return registered(researcher, script.url, settings, name="Slow", model="slow", concurrency=64)


def make(endpoint: Endpoint, chains: int, **changes) -> Campaign:
    space = {"kind": "model-texts", "model": endpoint.name, "prompts": ["Write about the sea."], "limit": 9}
    judges = [{"question": "Which is better?", "votes": 1}]
    described = {"space": space, "kernel": {"kind": "suffix"}, "judges": judges, "chains": chains, "steps": STEPS}
    return create_draft(owner=endpoint.owner, config=make_config(**(described | changes)))


@pytest.fixture
def renewed_often(monkeypatch) -> None:
    monkeypatch.setattr(locks, "RENEW_EVERY_S", 0.05)


@pytest.fixture
def writing_ahead(endpoint, script, paper, eventually) -> Campaign:
    """A campaign of one chain: its first step is open, and the model is at work on both that may follow."""
    campaign = make(endpoint, chains=1)
    paper.release(2)
    lifecycle.start(campaign)
    eventually(lambda: texts_written(script) == 4)
    return campaign


def vote(campaign: Campaign) -> None:
    voter = Voter.objects.create(campaign=campaign)
    leases.answer(leases.take(voter).key, voter, Side.FIRST, 0)


def test_what_is_being_written_is_not_asked_for_a_second_time(writing_ahead, script, paper, idle_tasks, eventually):
    drawing.prefetch(writing_ahead.pk)
    vote(writing_ahead)
    drawing.write(writing_ahead.pk)
    assert texts_written(script) == 4
    assert not drawing.waiting_chains().exists()
    # Once it is there the chain goes on by itself; but somebody has waited.
    paper.release(2)
    chain = Chain.objects.get()
    eventually(lambda: chain.comparisons.filter(step=2).exists())
    eventually(lambda: texts_written(script) == 6)
    chain.refresh_from_db()
    assert (chain.step, chain.prefetched) == (1, 0)
    paper.release(2)
    idle_tasks()
    vote(writing_ahead)
    eventually(lambda: Chain.objects.get().prefetched == 1)
    assert chain.comparisons.filter(step=3).exists()


def test_a_slow_model_keeps_its_claim_and_somebody_who_waits_keeps_theirs(
    renewed_often, writing_ahead, script, paper, eventually
):
    def has_grown() -> bool:
        before = Chain.objects.get().claimed_until
        return bool(before) and eventually(lambda: Chain.objects.get().claimed_until > before)

    assert has_grown()
    paper.release(2)
    eventually(lambda: not Chain.objects.filter(drawing.are_claimed()).exists())
    # The same where a step is waited for: nothing is drawn ahead of it now.
    writing_ahead.chains.get().prefetched_proposals.all().delete()
    vote(writing_ahead)
    eventually(lambda: Chain.objects.get().claimed_until)
    assert has_grown()
    tasks.sweep()
    assert list(drawing.chains_to_hint()) == []
    assert texts_written(script) == 5


@pytest.mark.parametrize("texts", [1, 2])
def test_the_chain_of_a_worker_that_died_goes_on_with_a_sweep(
    endpoint, paper, idle_tasks, eventually, monkeypatch, texts
):
    campaign = make(endpoint, chains=1)
    paper.release(1000)
    started_now(campaign)
    monkeypatch.setattr(locks, "CLAIM_S", 3.0)
    # Who is dead renews nothing.
    monkeypatch.setattr(locks, "RENEW_EVERY_S", 3600)
    dead = drawing.claimed(campaign.chains.all(), texts)
    dead.__enter__()
    vote(campaign)
    idle_tasks()
    assert not Chain.objects.get().comparisons.filter(verdict=None).exists()

    def is_open_after_a_sweep() -> bool:
        tasks.sweep()
        idle_tasks()
        return Chain.objects.get().comparisons.filter(step=2).exists()

    eventually(is_open_after_a_sweep)
    # What whoever has died had asked for may have been answered.
    taken = ModelUsage.objects.get(campaign=campaign, judge_index=ModelUsage.PROPOSALS)
    assert taken.repeated == usage.REQUESTS_OF_A_FIRST_TEXT * texts
    dead.__exit__(None, None, None)


def test_a_proposal_that_cannot_be_stored_is_tried_again_after_a_rest_that_says_so(endpoint, paper, idle_tasks):
    campaign = make(endpoint, chains=1)
    paper.release(1000)
    started_now(campaign)
    number = sampler.state_number(0, 2, 1)
    in_the_way = State.objects.create(campaign=campaign, index=number, content="in the way", code="in the way")
    vote(campaign)
    idle_tasks()
    chain = Chain.objects.get()
    assert "the server's log says why" in chain.waits_because
    assert chain.claimed_until > timezone.now()
    assert (chain.step, chain.comparisons.count(), chain.prefetched) == (1, 1, 0)
    in_the_way.delete()
    Chain.objects.update(claimed_until=timezone.now())
    tasks.sweep()
    idle_tasks()
    chain.refresh_from_db()
    assert (chain.claimed_until, chain.waits_because, chain.prefetched) == (None, "", 1)
    assert chain.comparisons.filter(step=2).exists()


def test_nothing_is_drawn_ahead_past_the_end_of_a_warm_up(endpoint, script, paper, idle_tasks):
    """What the first step after it proposes depends on a length that nobody knows yet."""
    paper.release(1000)
    warm_up = {"steps": 2, "grid": [1, 3], "properties": ["words"], "burn_in": 1}
    kernel = {"kind": "walk", "kernel": {"kind": "suffix"}, "length": 2, "warm_up": warm_up}
    campaign = make(endpoint, chains=2, kernel=kernel)
    started_now(campaign)
    chain = campaign.chains.get(index=0)
    while Chain.objects.get(pk=chain.pk).step < 2:
        voter = Voter.objects.create(campaign=campaign)
        lease = leases.take(voter)
        while lease.comparison.chain_id != chain.pk:
            leases.skip(lease.key, voter)
            lease = leases.take(voter)
        leases.answer(lease.key, voter, Side.FIRST, 0)
        idle_tasks()
    assert not PrefetchedProposal.objects.filter(step__gt=2).exists()
    assert not chain.comparisons.filter(step__gt=2).exists()
    assert chain not in drawing.waiting_chains()
    campaign = voted_to_the_end(campaign)
    assert campaign.walk_length == 3
    assert list(campaign.chains.values_list("step", flat=True)) == [STEPS, STEPS]
    assert_record_is_whole(campaign)
