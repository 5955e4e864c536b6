"""The one door: what a vote may do to the record, and what it may not.

The step after a decided one: there in the same transaction where the kernel is cheap, by a task elsewhere.
"""

import uuid

import pytest
from django.conf import settings
from django.db import IntegrityError, connection, transaction
from django.test.utils import CaptureQueriesContext

from prefmh_web import tasks
from prefmh_web.campaigns.engine import leases, sql
from prefmh_web.campaigns.frozen import plan_of
from prefmh_web.campaigns.models import Campaign, Chain, Comparison, Side, Vote, Voter
from prefmh_web.campaigns.proposals import drawing
from tests.support.campaigns import cast, make_campaign, make_config
from tests.support.records import assert_record_is_whole


@pytest.fixture
def comparison(campaign):
    return Comparison.objects.filter(verdict__isnull=True).first()


@pytest.fixture
def voters(campaign):
    return [Voter.objects.create(campaign=campaign) for _ in range(6)]


def test_the_same_key_is_the_same_vote(campaign, comparison, voters):
    key = uuid.uuid4()
    first = cast(comparison, campaign.judges.first(), voters[0], key=key)
    again = cast(comparison, campaign.judges.first(), voters[0], Side.SECOND, key=key)
    assert (again.pk, again.chosen_side) == (first.pk, "first")
    assert Vote.objects.count() == 1


def test_a_second_answer_of_a_person_and_a_vote_beyond_the_budget_are_kept_uncounted(researcher, idle_tasks):
    campaign = make_campaign(researcher, config=make_config(judges=[{"question": f"{n}?", "votes": 2} for n in (1, 2)]))
    comparison = Comparison.objects.filter(verdict__isnull=True).first()
    judge = campaign.judges.first()
    one, two, three = (Voter.objects.create(campaign=campaign) for _ in range(3))
    assert cast(comparison, judge, one).counted
    assert not cast(comparison, judge, one).counted
    cast(comparison, judge, two, Side.SECOND)
    assert not cast(comparison, judge, three).counted


def test_a_vote_after_the_verdict_changes_nothing(campaign, comparison, voters, idle_tasks):
    for voter in voters:
        for judge in campaign.judges.all():
            cast(comparison, judge, voter, Side.SECOND)
    idle_tasks()
    comparison.refresh_from_db()
    decided, head = comparison.decided_at, Chain.objects.get(pk=comparison.chain_id).head_id
    late = cast(comparison, campaign.judges.first(), Voter.objects.create(campaign=campaign))
    comparison.refresh_from_db()
    assert not late.counted
    assert (comparison.decided_at, Chain.objects.get(pk=comparison.chain_id).head_id) == (decided, head)
    assert_record_is_whole(campaign)


def test_proposing_twice_opens_one_comparison(campaign, idle_tasks):
    chain = campaign.chains.first()
    before = list(chain.comparisons.values_list("pk", "uniform"))
    for _ in range(3):
        tasks.propose(chain.pk)
    assert list(chain.comparisons.values_list("pk", "uniform")) == before


def test_a_chain_that_a_crash_left_waiting_is_found_and_draws_the_same_uniform(campaign, idle_tasks):
    comparison = Comparison.objects.filter(verdict__isnull=True, votes__isnull=True).first()
    lost = (comparison.chain_id, comparison.step, comparison.uniform, comparison.proposal_id)
    comparison.delete()
    assert list(drawing.waiting_chains().values_list("pk", flat=True)) == [lost[0]]
    tasks.sweep()
    idle_tasks()
    assert Comparison.objects.filter(chain_id=lost[0], step=lost[1], uniform=lost[2], proposal_id=lost[3]).exists()
    assert not drawing.waiting_chains().exists()


def test_steps_that_no_vote_can_change_are_decided_without_one(researcher, idle_tasks):
    campaign = make_campaign(researcher, config=make_config(chains=30, judges=[{"question": "Which?", "votes": 1}]))
    settled = Comparison.objects.filter(verdict__isnull=False)
    assert {comparison.is_identity for comparison in settled} == {True, False}
    # Until each chain meets its first open question, every step was an identity or beyond the best tally.
    assert all(
        comparison.is_identity == (comparison.verdict == "accept")
        for comparison in settled.select_related("chain__campaign", "current", "proposal")
    )
    assert_record_is_whole(campaign)


def test_the_schema_refuses_what_must_never_happen(campaign, comparison, voters):
    vote = cast(comparison, campaign.judges.first(), voters[0])
    forbidden = [
        lambda: Comparison.objects.create(
            chain=comparison.chain, chain_campaign=campaign, chain_index=comparison.chain_index,
            step=comparison.step + 1, current=comparison.current, proposal=comparison.proposal, log_r0=0, uniform=0.5,
        ),
        lambda: Comparison.objects.filter(pk=comparison.pk).update(verdict="accept"),
        lambda: Comparison.objects.filter(pk=comparison.pk).update(uniform=1.0),
        lambda: Vote.objects.create(
            key=uuid.uuid4(), comparison=comparison, judge=vote.judge, voter=vote.voter, number=2,
            proposal_side="first", chosen_side="first",
        ),
        lambda: Vote.objects.create(
            key=vote.key, comparison=comparison, judge=vote.judge, voter=voters[1], number=2,
            proposal_side="first", chosen_side="first",
        ),
        lambda: Chain.objects.filter(pk=comparison.chain_id).update(step=51),
        lambda: Campaign.objects.filter(pk=campaign.pk).update(status="draft"),
    ]  # fmt: skip
    for attempt in forbidden:
        with pytest.raises(IntegrityError), transaction.atomic():
            attempt()


ONE_VOTE = [{"question": "Which is darker?", "votes": 1}]


@pytest.fixture
def short_campaign(researcher, idle_tasks) -> Campaign:
    return make_campaign(researcher, config=make_config(judges=ONE_VOTE, chains=1, steps=40))


@pytest.fixture
def person(short_campaign) -> Voter:
    return Voter.objects.create(campaign=short_campaign)


def vote(person: Voter, side: Side = Side.FIRST) -> Vote:
    return leases.answer(leases.take(person).key, person, side, None)


def open_steps(campaign: Campaign) -> list[int]:
    return list(Comparison.objects.filter(chain__campaign=campaign, verdict=None).values_list("step", flat=True))


def test_the_next_pair_of_a_list_is_there_when_the_vote_is(short_campaign, person):
    [before] = open_steps(short_campaign)
    with transaction.atomic():
        vote(person)
        # No task runs before the commit.
        [after] = open_steps(short_campaign)
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


def test_a_kernel_that_fails_costs_nobody_their_vote(short_campaign, person, idle_tasks, monkeypatch, caplog):
    lease = leases.take(person)
    kernel = plan_of(short_campaign).kernel

    def fail(rng, state):
        raise ArithmeticError("out of range")

    monkeypatch.setattr(kernel, "propose", fail)
    stored = leases.answer(lease.key, person, Side.FIRST, None)
    assert stored.counted
    assert "no proposal" in caplog.text
    assert open_steps(short_campaign) == []
    monkeypatch.undo()
    tasks.sweep()
    idle_tasks()
    assert len(open_steps(short_campaign)) == 1


@pytest.mark.skipif(settings.EMBEDDED, reason="asks PostgreSQL how it finds rows; see tests/support/servers.py")
def test_the_next_pair_is_found_by_its_index_however_many_chains_there_are(short_campaign):
    [one] = Comparison.objects.filter(verdict=None)
    chains = Chain.objects.bulk_create(
        Chain(campaign=short_campaign, index=index, start=one.current, head=one.current, length=40)
        for index in range(1, 3_000)
    )
    Comparison.objects.bulk_create(
        Comparison(
            chain=chain, chain_campaign=short_campaign, chain_index=chain.index, step=1, current=one.current,
            proposal=one.proposal, log_r0=0, uniform=0.5,
        )
        for chain in chains
    )  # fmt: skip
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE campaigns_comparison")
    with CaptureQueriesContext(connection) as queries:
        of_people = sql.open_comparisons(sql.NEXT_OPEN, with_turns=False)
        of_people.rows(short_campaign.pk, -1, -1, 8, one.opened_at)
    with connection.cursor() as cursor:
        cursor.execute("EXPLAIN " + queries.captured_queries[-1]["sql"])
        plan = "\n".join(line for (line,) in cursor.fetchall())
    assert "comparison_next" in plan
    assert "Sort Key: c.step" not in plan


@pytest.mark.skipif(settings.EMBEDDED, reason="asks PostgreSQL how it plans; see tests/support/servers.py")
def test_no_statement_of_a_vote_is_planned_anew_for_each_vote(short_campaign, person, idle_tasks):
    for _ in range(8):
        lease = leases.take(person)
        leases.answer(lease.key, person, Side.FIRST, 900)
        idle_tasks()
    with connection.cursor() as cursor:
        cursor.execute("SELECT sum(generic_plans), sum(custom_plans) FROM pg_prepared_statements")
        generic, custom = cursor.fetchone()
    assert generic > 0
    assert custom == 0
