"""The step after a decided one: there in the same transaction where the kernel is cheap, by a task elsewhere."""

import pytest
from django.conf import settings
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from prefmh_web.campaigns import tasks
from prefmh_web.campaigns.engine import leases, sql
from prefmh_web.campaigns.frozen import plan_of
from prefmh_web.campaigns.models import Annotator, Campaign, Chain, Comparison, Side, Vote
from tests.support.campaigns import assert_record_is_whole, make_campaign, make_config

ONE_VOTE = [{"question": "Which is darker?", "votes": 1}]


@pytest.fixture
def campaign(researcher, idle_tasks) -> Campaign:
    return make_campaign(researcher, config=make_config(judges=ONE_VOTE, chains=1, steps=40))


@pytest.fixture
def person(campaign) -> Annotator:
    return Annotator.objects.create(campaign=campaign)


def vote(person: Annotator, side: Side = Side.FIRST) -> Vote:
    return leases.answer(leases.take(person).key, person, side, None)


def open_steps(campaign: Campaign) -> list[int]:
    return list(Comparison.objects.filter(chain__campaign=campaign, verdict=None).values_list("step", flat=True))


def test_the_next_pair_of_a_list_is_there_when_the_vote_is(campaign, person):
    [before] = open_steps(campaign)
    with transaction.atomic():
        vote(person)
        # No task runs before the commit.
        [after] = open_steps(campaign)
    assert after > before


def test_of_steps_that_need_no_vote_a_task_takes_over_after_some(researcher, idle_tasks):
    # Of two objects, every other proposal is the current one.
    config = make_config(
        judges=ONE_VOTE, chains=1, steps=400, space={"kind": "catalog", "objects": "texts"},
        kernel={"kind": "independent"},
    )  # fmt: skip
    file = "text,weight\nHeavy,1000\nLight,1\n"
    campaign = make_campaign(researcher, config=config, file=file)
    chain = Chain.objects.get(campaign=campaign)
    assert chain.step > 20 or open_steps(campaign)
    while chain.step < chain.length and not open_steps(campaign):
        tasks.propose(chain.pk)
        chain.refresh_from_db()
    assert_record_is_whole(campaign)


def test_a_kernel_that_fails_costs_nobody_their_vote(campaign, person, idle_tasks, monkeypatch, caplog):
    lease = leases.take(person)
    kernel = plan_of(campaign).kernel

    def fail(rng, state):
        raise ArithmeticError("out of range")

    monkeypatch.setattr(kernel, "propose", fail)
    stored = leases.answer(lease.key, person, Side.FIRST, None)
    assert stored.counted
    assert "no proposal" in caplog.text
    assert open_steps(campaign) == []
    monkeypatch.undo()
    tasks.sweep()
    idle_tasks()
    assert len(open_steps(campaign)) == 1


@pytest.mark.skipif(settings.EMBEDDED, reason="asks PostgreSQL how it finds rows; see tests/support/servers.py")
def test_the_next_pair_is_found_by_its_index_however_many_chains_there_are(campaign):
    [one] = Comparison.objects.filter(verdict=None)
    chains = Chain.objects.bulk_create(
        Chain(campaign=campaign, place=place, start=one.current, head=one.current, length=40)
        for place in range(1, 3_000)
    )
    Comparison.objects.bulk_create(
        Comparison(
            chain=chain, chain_campaign=campaign, chain_place=chain.place, step=1, current=one.current,
            proposal=one.proposal, log_r0=0, uniform=0.5,
        )
        for chain in chains
    )  # fmt: skip
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE campaigns_comparison")
    with CaptureQueriesContext(connection) as queries:
        of_people = sql.standing(sql.NEXT_OPEN, with_turns=False)
        of_people.rows(campaign.pk, -1, -1, 8, one.opened_at)
    with connection.cursor() as cursor:
        cursor.execute("EXPLAIN " + queries.captured_queries[-1]["sql"])
        plan = "\n".join(line for (line,) in cursor.fetchall())
    assert "comparison_next" in plan
    assert "Sort Key: c.step" not in plan


@pytest.mark.skipif(settings.EMBEDDED, reason="asks PostgreSQL how it plans; see tests/support/servers.py")
def test_no_statement_of_a_vote_is_planned_anew_for_each_vote(campaign, person, idle_tasks):
    for _ in range(8):
        lease = leases.take(person)
        leases.answer(lease.key, person, Side.FIRST, 900)
        idle_tasks()
    with connection.cursor() as cursor:
        cursor.execute("SELECT sum(generic_plans), sum(custom_plans) FROM pg_prepared_statements")
        generic, custom = cursor.fetchone()
    assert generic > 0
    assert custom == 0
