"""A judge who is asked for all votes on a pair at once: the same outcome, what it wastes, and no person's vote late."""

from __future__ import annotations

from prefmh_web.campaigns.engine import leases, open_comparisons
from prefmh_web.campaigns.model_judges import turns
from prefmh_web.campaigns.models import Annotator, Campaign, Comparison, Judge, Side, Turn, Vote
from prefmh_web.campaigns.monitoring.judging import Wasted, costs_of
from tests.flows.test_model_costs import endpoint, script
from tests.flows.test_models_judge import by_model, make
from tests.security.world import browser_of
from tests.support.campaigns import assert_record_is_whole, assert_replay_passes, export_to
from tests.support.models import votes_asked

__all__ = ["endpoint", "script"]

QUESTIONS = ("Which is darker?", "Which is older?")


def judges(votes: str, budget: int = 5, **source) -> list[dict]:
    return [by_model(votes, budget=budget, **source) | {"question": question} for question in QUESTIONS]


def walked(campaign: Campaign) -> list[tuple[int, int, str]]:
    """Return how each step was decided, chain by chain."""
    decided = Comparison.objects.filter(chain__campaign=campaign).order_by("chain__place", "step")
    return list(decided.values_list("chain__place", "step", "verdict"))


def test_the_outcome_is_the_same_and_what_came_too_late_is_kept_and_does_not_count(
    researcher, endpoint, idle_tasks, tmp_path
):
    # Drawn from log-probabilities with the config's own random numbers, each of the N votes is what it is, whenever it
    # is asked for; so a rule that stops early must take every chain the same way.
    needed = make(researcher, judges("log-probabilities"), idle_tasks)
    at_once = make(researcher, judges("log-probabilities", all_at_once=True), idle_tasks)
    other_seed = make(researcher, judges("log-probabilities", all_at_once=True), idle_tasks, seed=7)
    assert walked(at_once) == walked(needed) != walked(other_seed)
    assert not Vote.objects.filter(judge__campaign=needed, number__isnull=True).exists()
    assert Vote.objects.filter(judge__campaign=at_once, number__isnull=True).exists()
    assert_record_is_whole(at_once)
    assert_replay_passes(export_to(at_once, tmp_path))


def test_each_step_that_is_asked_costs_all_votes_and_the_page_says_how_many_were_not_needed(
    researcher, endpoint, script, idle_tasks
):
    campaign = make(researcher, [by_model(budget=3, all_at_once=True)], idle_tasks)
    assert campaign.status == Campaign.Status.FINISHED
    asked = Comparison.objects.filter(chain__campaign=campaign, votes__isnull=False).distinct().count()
    assert Vote.objects.count() == 3 * asked == len(votes_asked(script))
    wasted = Vote.objects.filter(number__isnull=True).count()
    # One vote at least decided each of them.
    assert 0 < wasted <= 2 * asked
    [row] = costs_of(campaign).rows
    assert row.wasted == Wasted(wasted, 3 * asked)
    page = browser_of(researcher).get(campaign.get_absolute_url()).content.decode()
    assert f"{wasted} of {3 * asked} votes" in page


def test_both_judges_are_asked_for_all_their_votes_side_by_side(researcher, endpoint, monkeypatch, eventually):
    # Nobody takes a turn, so that what each may be asked for can be seen.
    monkeypatch.setattr(turns, "take_turn", lambda comparison_id, judge_id: 0)
    rooms = {}
    for all_at_once in (False, True):
        source = {"all_at_once": True} if all_at_once else {}
        campaign = make(researcher, judges("sampled", budget=4, **source), lambda: None, chains=1)
        opened_ones = Comparison.objects.filter(chain__campaign=campaign, verdict__isnull=True)
        eventually(opened_ones.exists)
        comparison = opened_ones.get()
        first, second = Judge.objects.filter(campaign=campaign).order_by("place")
        opened = open_comparisons.on(comparison.pk, campaign)
        of_first = opened.room(first.pk, 4)
        opened.note("turn", first.pk, None, of_first)
        rooms[all_at_once] = of_first, opened.room(second.pk, 4)
    assert rooms[True] == (4, 4)
    assert sum(rooms[False]) < 8


def test_while_a_person_has_the_pair_no_more_is_asked_than_leaves_their_vote_in_time(
    researcher, endpoint, idle_tasks, monkeypatch
):
    take_turn = turns.take_turn
    monkeypatch.setattr(turns, "take_turn", lambda comparison_id, judge_id: 0)
    people = {"question": "Which is older?", "votes": 1}
    campaign = make(researcher, [by_model(budget=4, all_at_once=True), people], idle_tasks, chains=1, steps=6)
    person = Annotator.objects.create(campaign=campaign)
    lease = leases.take(person)
    assert lease is not None
    judge = Judge.objects.get(campaign=campaign, place=0)
    asked = take_turn(lease.comparison_id, judge.pk)
    assert not Turn.objects.filter(asked__gt=0).exists()
    comparison = Comparison.objects.get(pk=lease.comparison_id)
    # What the model said cannot have decided it over the head of the person who looks at it.
    assert comparison.verdict is None
    assert asked < 4
    leases.answer(lease.key, person, Side.FIRST, 0)
    assert Vote.objects.get(key=lease.key).counted
