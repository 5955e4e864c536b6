"""Models judge, alone and beside people: over a server that does as it is told, and over a real one.

A judge who is asked for all votes on a pair at once: the same outcome, what it wastes, and no person's vote late.
"""

import numpy as np
import pytest
from django.conf import settings as site_settings
from django.db import connection

from prefmh_web.campaigns.engine import leases, open_comparisons
from prefmh_web.campaigns.model_judges import asker, turns
from prefmh_web.campaigns.models import Campaign, Comparison, Judge, Side, Turn, Vote, Voter
from prefmh_web.transport import publishing
from tests.flows.test_model_costs import by_model, endpoint, script
from tests.support.campaigns import make_config, start_campaign
from tests.support.models import chat_reply, logged, returns, votes_asked
from tests.support.records import assert_record_is_whole, assert_replay_passes, export_to, table

__all__ = ["endpoint", "script"]


def halves(votes: str, budget: int) -> list[dict]:
    """Return two judges of one question, one for each order."""
    half = by_model(votes, budget=budget // 2)
    return [half | {"order": order} for order in ("proposal-first", "proposal-second")]


def judges_of(votes: str, order: str, budget: int) -> list[dict]:
    return halves(votes, budget) if order == "both" else [by_model(votes, budget=budget) | {"order": order}]


def make(owner, judges: list[dict], **changes) -> Campaign:
    return start_campaign(owner, config=make_config(judges=judges, chains=2, steps=10) | changes)


@pytest.mark.parametrize("votes", ["sampled", "log-probabilities"])
@pytest.mark.parametrize("order", ["random", "balanced", "both"])
def test_a_model_alone_brings_a_campaign_to_its_end(researcher, endpoint, idle_tasks, tmp_path, votes, order):
    campaign = make(researcher, judges_of(votes, order, 2))
    assert campaign.status == Campaign.Status.FINISHED
    assert not Vote.objects.filter(number__isnull=True).exists()
    assert_record_is_whole(campaign)
    path = export_to(campaign, tmp_path)
    assert_replay_passes(path)
    rows = table(path, "votes.csv")
    assert {row["endpoint"] for row in rows} == {"A model"}
    assert all(bool(row["preference"]) == (votes == "log-probabilities") for row in rows)


def test_only_as_many_replies_are_asked_for_as_can_be_needed(researcher, endpoint, script, idle_tasks):
    budget = 9
    make(researcher, [by_model(budget=budget)])
    judged = Comparison.objects.filter(votes__isnull=False).distinct().count()
    assert Vote.objects.count() == len(votes_asked(script)) < budget * judged


def test_people_see_only_what_the_model_leaves_open(researcher, endpoint, idle_tasks, tmp_path):
    judges = [by_model(budget=2, first=True), {"question": "Which is better?", "votes": 1}]
    campaign = make(researcher, judges, steps=6)
    voter = Voter.objects.create(campaign=campaign)
    rng = np.random.default_rng(3)
    while lease := leases.take(voter):
        comparison = Comparison.objects.get(pk=lease.comparison_id)
        # The model has cast what it has to cast: what is open now is for people to settle.
        model, _ = campaign.judges.all()
        assert comparison.votes.filter(judge=model).count() == 2 or not open_comparisons.on(
            comparison.pk, campaign
        ).room(model.pk, most=1)
        leases.answer(lease.key, voter, Side.FIRST if rng.random() < 0.5 else Side.SECOND, 0)
        idle_tasks()
        campaign.refresh_from_db()
    assert campaign.status == Campaign.Status.FINISHED
    assert_record_is_whole(campaign)
    assert_replay_passes(export_to(campaign, tmp_path))
    asked_of_people = Comparison.objects.filter(votes__voter__isnull=False).distinct().count()
    assert asked_of_people < Comparison.objects.filter(votes__isnull=False).distinct().count()


def test_a_judge_whose_log_probabilities_are_often_no_distribution_is_stopped(researcher, endpoint, script, idle_tasks):
    """At most one in a hundred of the last two hundred replies; none of them is counted."""
    too_much = logged("A", [{"token": "A", "logprob": -0.2}, {"token": "B", "logprob": -0.3}])
    script.faults.extend([returns(chat_reply("A", logprobs=too_much))] * 500)
    campaign = make(researcher, [by_model("log-probabilities", budget=2)], chains=4, steps=2)
    stopped = campaign.judges.get()
    assert "that are no distribution" in stopped.stopped_because
    assert not Vote.objects.filter(preference__isnull=False).exists()
    script.faults.clear()
    turns.try_again(campaign)
    idle_tasks()
    campaign.refresh_from_db()
    assert campaign.status == Campaign.Status.FINISHED


# A sequence goes on though the transaction that asked it is undone.
CUT_THE_FIRST = """
    CREATE SEQUENCE votes_begun;
    CREATE FUNCTION cut_the_first() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF nextval('votes_begun') = 1 THEN PERFORM pg_terminate_backend(pg_backend_pid()); END IF;
        RETURN NEW;
    END $$;
    CREATE TRIGGER cuts BEFORE INSERT ON campaigns_vote FOR EACH ROW EXECUTE FUNCTION cut_the_first()
"""
UNDO = "DROP TRIGGER cuts ON campaigns_vote; DROP FUNCTION cut_the_first; DROP SEQUENCE votes_begun"


@pytest.mark.skipif(site_settings.EMBEDDED, reason="SQLite has no connection to cut; see tests/support/servers.py")
def test_replies_are_stored_once_although_the_database_was_away_when_they_came(
    researcher, endpoint, script, idle_tasks, monkeypatch, eventually
):
    publish = publishing.publish
    # Nobody but this test takes turns.
    monkeypatch.setattr(publishing, "publish", lambda hint: None if hint.task.endswith(".judge") else publish(hint))
    campaign = make(researcher, [by_model(budget=1)], chains=1)
    comparison = Comparison.objects.get(chain__campaign=campaign, verdict__isnull=True)
    before, asks = len(votes_asked(script)), asker.Asker()
    with connection.cursor() as cursor:
        cursor.execute(CUT_THE_FIRST)
    try:
        asks.offer(comparison.pk, campaign.judges.get().pk)
        eventually(comparison.votes.exists)
    finally:
        asks.end()
        with connection.cursor() as cursor:
            cursor.execute(UNDO)
    assert len(votes_asked(script)) - before == 1
    assert Vote.objects.filter(comparison=comparison).count() == 1


QUESTIONS = ("Which is darker?", "Which is older?")


def judges(votes: str, budget: int = 5, **source) -> list[dict]:
    return [by_model(votes, budget, question, **source) for question in QUESTIONS]


def walked(campaign: Campaign) -> list[tuple[int, int, str]]:
    """Return how each step was decided, chain by chain."""
    decided = Comparison.objects.filter(chain__campaign=campaign).order_by("chain__index", "step")
    return list(decided.values_list("chain__index", "step", "verdict"))


def test_the_outcome_is_the_same_and_what_came_too_late_is_kept_and_does_not_count(
    researcher, endpoint, idle_tasks, tmp_path
):
    # Drawn from log-probabilities with the config's own random numbers, each of the N votes is what it is, whenever it
    # is asked for; so a rule that stops early must take every chain the same way.
    needed = make(researcher, judges("log-probabilities"))
    at_once = make(researcher, judges("log-probabilities", all_at_once=True))
    other_seed = make(researcher, judges("log-probabilities", all_at_once=True), seed=7)
    assert walked(at_once) == walked(needed) != walked(other_seed)
    assert not Vote.objects.filter(judge__campaign=needed, number__isnull=True).exists()
    assert Vote.objects.filter(judge__campaign=at_once, number__isnull=True).exists()
    assert_record_is_whole(at_once)
    assert_replay_passes(export_to(at_once, tmp_path))


def test_while_a_person_has_the_pair_no_more_is_asked_than_leaves_their_vote_in_time(
    researcher, endpoint, script, idle_tasks, monkeypatch
):
    take = asker.take
    monkeypatch.setattr(asker, "take", lambda comparison_id, judge_id: None)
    people = {"question": "Which is older?", "votes": 1}
    campaign = make(researcher, [by_model(budget=4, all_at_once=True), people], chains=1, steps=6)
    person = Voter.objects.create(campaign=campaign)
    lease = leases.take(person)
    assert lease is not None
    judge = Judge.objects.get(campaign=campaign, index=0)
    before = len(votes_asked(script))
    take(lease.comparison_id, judge.pk)
    assert not Turn.objects.filter(asked__gt=0).exists()
    comparison = Comparison.objects.get(pk=lease.comparison_id)
    # What the model said cannot have decided it over the head of the person who looks at it.
    assert comparison.verdict is None
    assert len(votes_asked(script)) - before < 4
    leases.answer(lease.key, person, Side.FIRST, 0)
    assert Vote.objects.get(key=lease.key).counted
