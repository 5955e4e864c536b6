"""Turns of several chains, or of one that was thought lost, rate the same object at the same time."""

from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

import sampler
from prefmh_web.campaigns import lifecycle, objects
from prefmh_web.campaigns.engine import transitions
from prefmh_web.campaigns.frozen import plan_of, position_of
from prefmh_web.campaigns.model_judges import turns
from prefmh_web.campaigns.model_judges.frozen_judges import asked_endpoint, endpoint_now
from prefmh_web.campaigns.models import Campaign, Chain, Comparison, Rating, State, Turn
from prefmh_web.endpoints.accounting import tallied
from prefmh_web.endpoints.identity import Admitted
from tests.support.campaigns import make_draft, rated_config, rating_endpoint, rating_script  # noqa: F401 - fixtures


@pytest.fixture
def waiting(researcher, endpoint, idle_tasks) -> Comparison:
    """An open comparison of a campaign that nothing drives: no hint of it has been given."""
    campaign = make_draft(researcher, config=rated_config(chains=1, steps=40))
    lifecycle.start(campaign)
    lifecycle.pause(campaign)
    idle_tasks()
    chain = campaign.chains.get()
    Turn.objects.all().delete()
    while not (found := chain.comparisons.filter(verdict__isnull=True).first()):
        drawn = sampler.ask(plan_of(campaign), position_of(chain))
        transitions.open_comparison(chain.pk, drawn, objects.proposed(chain, drawn))
        idle_tasks()
        chain.refresh_from_db()
    Rating.objects.all().delete()
    Campaign.objects.update(status=Campaign.Status.RUNNING)
    return found


def test_the_same_turn_taken_twice_rates_nothing_twice(waiting, script):
    judge = waiting.chain.campaign.judges.first()
    script.requests.clear()
    claimed = turns._claim(waiting.pk, judge.pk)
    turns.take_turn(waiting.pk, judge.pk)
    assert script.requests == []
    # Both come back, the one that was thought lost as well.
    Turn.objects.all().delete()
    state = claimed.asking.state
    rate(claimed)
    first = dict(Rating.objects.filter(state=state, judge=judge).values_list("slot", "value"))
    rate(claimed)
    assert len(first) == judge.max_votes
    assert dict(Rating.objects.filter(state=state, judge=judge).values_list("slot", "value")) == first


def test_the_reason_why_a_turn_rests_stays_while_another_chain_rates_its_object(waiting):
    judge = waiting.chain.campaign.judges.first()
    state = State.objects.get(pk=waiting.current_id)
    soon = timezone.now() + timedelta(minutes=1)
    other = Comparison.objects.create(
        chain=Chain.objects.create(campaign=state.campaign, place=1, start=state, head=state, length=5),
        chain_campaign=state.campaign, chain_place=1, step=1, current=state, proposal=waiting.proposal, log_r0=0,
        uniform=0.5,
    )  # fmt: skip
    Turn.objects.create(comparison=other, judge=judge, asked=1, state=state, until=soon)
    Turn.objects.create(comparison=waiting, judge=judge, asked=0, until=timezone.now(), reason="E: down")
    turns.take_turn(waiting.pk, judge.pk)
    assert Turn.objects.get(comparison=waiting).reason == "E: down"


def test_an_object_whose_ratings_come_between_two_statements_is_not_rated_again(waiting):
    judge, brought = waiting.chain.campaign.judges.first(), []

    def bring_ratings_first(execute, sql, *arguments):
        # The turn of another chain ends just before it is looked for.
        if (
            'FROM "campaigns_turn"' in sql
            and '"campaigns_turn"."state_id"' in sql.partition("WHERE")[2]
            and not brought
        ):
            brought.extend(
                Rating(state_id=waiting.current_id, judge=judge, slot=slot, value=5, asks=1)
                for slot in range(judge.max_votes)
            )
            Rating.objects.bulk_create(brought)
        return execute(sql, *arguments)

    with connection.execute_wrapper(bring_ratings_first):
        claimed = turns._claim(waiting.pk, judge.pk)
    assert brought
    assert claimed.asking.state.pk == waiting.proposal_id


def rate(taken) -> None:
    admitted = Admitted()
    judge = taken.asking.judge
    with tallied() as tally:
        answers = taken.kind.ask(taken.asking, asked_endpoint(judge, endpoint_now(judge)), admitted)
    turns._store(taken, answers, admitted, {}, tally)


def test_a_step_whose_last_rating_another_chain_brought_is_decided_by_the_sweep(waiting, idle_tasks, script):
    judges = waiting.chain.campaign.judges.all()
    for state in (waiting.current, waiting.proposal):
        for judge in judges:
            Rating.objects.bulk_create(
                Rating(state=state, judge=judge, slot=slot, value=5, asks=1) for slot in range(judge.max_votes)
            )
    # Seen from outside in that moment, it is open, and no difference.
    assert waiting.verdict is None
    assert (waiting.pk, judges[0].pk) in set(turns.waiting())
    turns.take_turn(waiting.pk, judges[0].pk)
    waiting.refresh_from_db()
    assert waiting.verdict
