"""A language model writes a campaign's texts: over the real llama.cpp server, with a tiny model of random weights.

Models rate each object alone: the paper's baselines, through the same loop, record and export as votes.

Turns of several chains, or of one that was thought lost, rate the same object at the same time.
"""

import uuid
from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

import sampler
from prefmh_web.campaigns import lifecycle, objects
from prefmh_web.campaigns.engine import leases, transitions
from prefmh_web.campaigns.frozen import plan_of, position_of
from prefmh_web.campaigns.model_judges import asker, turns
from prefmh_web.campaigns.models import Campaign, Chain, Comparison, Judge, Rating, State, Turn, Vote, Voter
from prefmh_web.endpoints import loop
from prefmh_web.endpoints.models import Endpoint
from prefmh_web.endpoints.servers import Dialect
from tests.support.campaigns import (
    ONE,
    TWO,
    create_draft,
    make,
    make_config,
    make_draft,
    rated_config,
    rating_endpoint,
    rating_script,
    registered,
    started_now,
    swept,
)
from tests.support.models import chat_reply, returns
from tests.support.process import sweep_everything
from tests.support.records import (
    assert_texts_are_of_their_tokens,
    checked_export,
    happened,
    table,
)
from tests.support.sampling import mixture

__all__ = ["rating_endpoint", "rating_script"]

SPACE = {
    "kind": "model-texts",
    "model": "tiny",
    "prompts": ["Write about the sea.", "Write about the cat."],
    "limit": 12,
}
KERNEL = mixture((0.2, "independent"), (0.8, {"kind": "suffix", "cut": "length"}))
JUDGES = [
    {"question": "Which is darker?", "votes": 2, "source": {"kind": "model", "endpoint": "tiny"}},
    {
        "question": "Which is kinder?",
        "votes": 2,
        "order": "balanced",
        "source": {"kind": "model", "endpoint": "tiny", "votes": "log-probabilities"},
    },
]


@pytest.fixture
def tiny(researcher, llama_url, settings) -> Endpoint:
    return registered(researcher, llama_url, settings, "tiny", dialect=Dialect.LLAMA_CPP)


def make_written(owner, **changes) -> Campaign:
    config = make_config(space=SPACE, kernel=KERNEL, judges=JUDGES, chains=4, steps=8) | changes
    return create_draft(owner=owner, config=config)


def test_a_model_writes_and_models_judge_from_the_start_to_a_record_that_replays(
    researcher, tiny, idle_tasks, tmp_path, eventually
):
    campaign = started_now(make_written(researcher))
    # On a busy machine the model's server may fail once, and then it is left alone for a minute.
    eventually(lambda: swept(campaign, 1).status == Campaign.Status.FINISHED, 120)
    path = checked_export(campaign, tmp_path, "32 verdicts")
    # Tokens are the state: what was written is never tokenised again.
    assert_texts_are_of_their_tokens(campaign, path)


def test_where_a_model_writes_a_chain_opens_before_anybody_waits(researcher, tiny, idle_tasks, tmp_path):
    judges = [{"question": "Which is better?", "votes": 1}]
    campaign = started_now(make_written(researcher, judges=judges, chains=1, max_chains=9, steps=3))
    people = [Voter.objects.create(campaign=campaign) for _ in range(5)]
    assert leases.take(people[0])
    # A pair for each of the four who read, and two more, since there are five people.
    opened = []
    for _ in range(3):
        sweep_everything()
        opened.append(campaign.chains.count())
    # Only one is on its way to each of them at a time.
    assert opened == [6, 7, 7]
    assert [bool(leases.take(person)) for person in people[1:]] == [True] * 4
    # Nobody reads any more, and the two pairs that are left are as many as there should be.
    Voter.objects.filter(campaign=campaign).update(votes_cast=1, online_until=timezone.now() + timedelta(minutes=1))
    sweep_everything()
    assert campaign.chains.count() == 7
    Voter.objects.filter(campaign=campaign).update(online_until=None)
    sweep_everything()
    assert campaign.chains.count() == 7
    path = checked_export(campaign, tmp_path)
    assert [said["reason"] for _, said in happened(path, "chain-opened")] == ["ahead"] * 6


@pytest.mark.parametrize(("form", "questions"), [("separate", TWO), ("power", ONE)])
def test_a_baseline_runs_to_its_end_and_its_record_replays(
    researcher, endpoint, idle_tasks, tmp_path, client, form, questions
):
    campaign = make(researcher, form, questions)
    assert campaign.status == Campaign.Status.FINISHED
    assert not Vote.objects.exists()
    path = checked_export(campaign, tmp_path, f"20 verdicts recomputed from {Rating.objects.count()} ratings")
    rows = table(path, "ratings.csv")
    assert {(row["endpoint"], row["attempts"]) for row in rows} == {("A model", "1")}
    client.force_login(researcher)
    page = client.get(campaign.get_absolute_url()).content.decode()
    assert "sample from another distribution" in page
    assert "→" in page


def test_replies_that_are_no_rating_suspends_the_step_until_somebody_has_seen_to_it(
    researcher, endpoint, script, idle_tasks, tmp_path
):
    script.faults.extend([returns(chat_reply("11"))] * 500)
    campaign = make(researcher)
    assert {turn.is_suspended for turn in Turn.objects.all()} == {True}
    assert "11 is not between 1 and 10" in Turn.objects.first().reason
    script.faults.clear()
    script.faults.append(returns(chat_reply("eleven")))
    turns.try_again(campaign)
    idle_tasks()
    assert swept(campaign).status == Campaign.Status.FINISHED
    path = checked_export(campaign, tmp_path)
    # One of the first turn's replies could not be read.
    attempts = [row["attempts"] for row in table(path, "ratings.csv")]
    assert (attempts.count("2"), set(attempts)) == (1, {"1", "2"})


@pytest.fixture
def waiting(researcher, endpoint, idle_tasks) -> Comparison:
    """An open comparison of a campaign that nothing drives: no hint of it has been given."""
    campaign = make_draft(researcher, config=rated_config(chains=1, steps=4000))
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


def beside(waiting: Comparison) -> Comparison:
    """Return another chain's open comparison of the same objects."""
    state = State.objects.get(pk=waiting.current_id)
    return Comparison.objects.create(
        chain=Chain.objects.create(campaign=state.campaign, index=1, start=state, head=state, length=5),
        chain_campaign=state.campaign, chain_index=1, step=1, current=state, proposal=waiting.proposal, log_r0=0,
        uniform=0.5,
    )  # fmt: skip


def ratings_of(state: State, judge: Judge) -> list[Rating]:
    return [Rating(state=state, judge=judge, slot=slot, value=5, attempts=1) for slot in range(judge.max_votes)]


def test_the_same_turn_taken_twice_rates_nothing_twice(waiting, script):
    judge = waiting.chain.campaign.judges.first()
    script.requests.clear()
    owner = uuid.uuid4()
    [claimed] = turns.work([], [(waiting.pk, judge.pk)], owner)
    asker.take(waiting.pk, judge.pk)
    assert script.requests == []
    # Both come back, the one that was thought lost as well.
    Turn.objects.all().delete()
    state = claimed.asking.state
    turns.work([loop.run(asker.answered(claimed))], [], owner)
    first = dict(Rating.objects.filter(state=state, judge=judge).values_list("slot", "value"))
    turns.work([loop.run(asker.answered(claimed))], [], owner)
    assert len(first) == judge.max_votes
    assert dict(Rating.objects.filter(state=state, judge=judge).values_list("slot", "value")) == first


def test_the_reason_why_a_turn_rests_stays_while_another_chain_rates_its_object(waiting):
    judge = waiting.chain.campaign.judges.first()
    other, soon = beside(waiting), timezone.now() + timedelta(minutes=1)
    Turn.objects.create(comparison=other, judge=judge, asked=1, state=other.current, until=soon)
    Turn.objects.create(comparison=waiting, judge=judge, asked=0, until=timezone.now(), reason="E: down")
    asker.take(waiting.pk, judge.pk)
    assert Turn.objects.get(comparison=waiting).reason == "E: down"


def test_turns_that_are_claimed_together_rate_an_object_once(waiting):
    judge = waiting.chain.campaign.judges.first()
    taken = turns.work([], [(waiting.pk, judge.pk), (beside(waiting).pk, judge.pk)], uuid.uuid4())
    assert [each.asking.state.pk for each in taken] == [waiting.current_id]


def test_an_object_whose_ratings_come_between_two_statements_is_not_rated_again(waiting):
    judge, brought = waiting.chain.campaign.judges.first(), []

    def bring_ratings_first(execute, sql, *arguments):
        # The turn of another chain ends just before it is looked for.
        if (
            'FROM "campaigns_turn"' in sql
            and '"campaigns_turn"."state_id"' in sql.partition("WHERE")[2]
            and not brought
        ):
            brought.extend(Rating.objects.bulk_create(ratings_of(waiting.current, judge)))
        return execute(sql, *arguments)

    with connection.execute_wrapper(bring_ratings_first):
        [claimed] = turns.work([], [(waiting.pk, judge.pk)], uuid.uuid4())
    assert brought
    assert claimed.asking.state.pk == waiting.proposal_id


def test_a_step_whose_last_rating_another_chain_brought_is_decided_by_the_sweep(waiting, idle_tasks, script):
    judges = waiting.chain.campaign.judges.all()
    for state in (waiting.current, waiting.proposal):
        for judge in judges:
            Rating.objects.bulk_create(ratings_of(state, judge))
    # Seen from outside in that moment, it is open, and no difference.
    assert waiting.verdict is None
    assert (waiting.pk, judges[0].pk) in set(turns.waiting())
    asker.take(waiting.pk, judges[0].pk)
    waiting.refresh_from_db()
    assert waiting.verdict
