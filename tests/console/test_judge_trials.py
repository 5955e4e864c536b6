"""Trying a judge before the start: what it shows, what it takes, and that the record never hears of it."""

from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone

import sampler
from prefmh_web.campaigns import lifecycle
from prefmh_web.campaigns.lifecycle import judge_trials
from prefmh_web.campaigns.models import Campaign, JudgeTrial, ModelUsage, State, Vote
from prefmh_web.campaigns.monitoring.models import Share
from prefmh_web.campaigns.tasks import sweep
from prefmh_web.endpoints.models import Endpoint
from tests.flows.test_model_costs import (
    A_REQUEST,
    QUESTION,
    TOKENS_IN,
    asked,
    by_model,
    draft,
    endpoint,
    script,
    vote_on_all,
)
from tests.security.world import browser_of
from tests.support.campaigns import create_draft, make_config
from tests.support.models import chat_reply, says, status

__all__ = ["endpoint", "script"]


def try_it(desk, campaign: Campaign, idle_tasks, **fields: int):
    """Begin a trial, let it come to its end, and return its page."""
    url = reverse("console:try", args=[campaign.pk, 0])
    desk.post(url, {"pairs": 3, "replies": 2} | fields)
    idle_tasks()
    return desk.get(url)


def test_each_pair_is_asked_in_both_orders_and_counted(researcher, endpoint, script, idle_tasks):
    campaign = draft(researcher, by_model())
    page = try_it(browser_of(researcher), campaign, idle_tasks)
    tried = page.context["tried"]
    assert tried.trial.status == JudgeTrial.Status.DONE
    assert [[len(replies) for _, _, replies in pair.orders] for pair in tried.pairs] == [[2, 2]] * 3
    requests = len(asked(script, QUESTION))
    assert requests == tried.trial.requests == 12
    assert tried.trial.cost == pytest.approx(12 * A_REQUEST)
    assert tried.trial.tokens_in == 12 * TOKENS_IN
    assert f"{12 * A_REQUEST:.4f}" in page.content.decode()
    shown = [state.content for pair in tried.pairs for state in pair.states]
    assert all(content in page.content.decode() for content in shown)
    assert all(pair.states[0].content != pair.states[1].content for pair in tried.pairs)


def test_nothing_is_written_to_the_record(researcher, endpoint, script, idle_tasks):
    campaign = draft(researcher, by_model())
    before = (campaign.config_data, State.objects.count())
    try_it(browser_of(researcher), campaign, idle_tasks)
    campaign.refresh_from_db()
    assert (campaign.config_data, State.objects.count()) == before
    assert not ModelUsage.objects.exists()
    assert not Vote.objects.exists()
    assert not campaign.judges.exists()
    lifecycle.start(campaign)
    idle_tasks()
    # What the start has taken is its own.
    assert campaign.model_usage.get().requests == len(asked(script, QUESTION)) - 12


def test_log_probabilities_take_one_request_for_each_order_and_show_p_and_the_lean(
    researcher, endpoint, script, idle_tasks
):
    script.answer = type(script.answer)(script.answer.scores, lean=2.0)
    campaign = draft(researcher, by_model(votes="log-probabilities"))
    page = try_it(browser_of(researcher), campaign, idle_tasks, pairs=4)
    tried = page.context["tried"]
    assert tried.trial.requests == 8
    for pair in tried.pairs:
        one, other = (state.content for state in pair.states)
        for reply in pair.replies:
            first, second = (one, other) if reply.first == 0 else (other, one)
            assert reply.preference == pytest.approx(script.answer.preference(first, second, 0.7, True), abs=1e-9)
    assert tried.mean_p_first > 0.6
    assert "Position lean" in page.content.decode()


def test_the_researchers_clicks_are_compared_with_the_model(researcher, endpoint, script, idle_tasks):
    script.answer = type(script.answer)({line: 20 * s for line, s in script.answer.scores.items()})
    campaign, desk = draft(researcher, by_model()), browser_of(researcher)
    tried = try_it(desk, campaign, idle_tasks, pairs=4, replies=1).context["tried"]
    for number, pair in enumerate(tried.pairs):
        liked = max((0, 1), key=lambda which: script.answer.scores[pair.states[which].content])
        assert pair.choice == liked
        chosen = liked if number else 1 - liked
        desk.post(reverse("console:prefer", args=[campaign.pk, tried.trial.pk, number]), {"preferred": chosen})
    page = desk.get(reverse("console:try", args=[campaign.pk, 0]))
    assert page.context["tried"].agreement == Share(3, 4)
    assert "3 of 4 (75 %, 95 % interval 30 to 95 %)" in page.content.decode()
    refused = desk.post(reverse("console:prefer", args=[campaign.pk, tried.trial.pk, 0]), {"preferred": "2"})
    assert refused.status_code == 404


def test_the_interval_is_wilsons():
    # Newcombe, Statistics in Medicine 17, 1998, table I: 81 of 263.
    low, high = Share(81, 263).interval_percent
    assert (low, high) == (pytest.approx(25.53, abs=0.01), pytest.approx(36.62, abs=0.01))
    assert Share(0, 20).interval_percent[0] == 0


def test_an_unreadable_reply_is_shown_with_its_reasoning_and_not_asked_again(researcher, endpoint, script, idle_tasks):
    thought = {"role": "assistant", "content": "Both.", "reasoning_content": "B is <b>better</b>"}
    script.faults.extend([says("Neither.")])
    known = script.answer

    def answer(body: dict) -> dict:
        return chat_reply("Both.", message=thought) if QUESTION in str(body) else known(body)

    script.answer = answer
    campaign = draft(researcher, by_model())
    page = try_it(browser_of(researcher), campaign, idle_tasks, pairs=1, replies=1)
    tried = page.context["tried"]
    assert tried.trial.requests == tried.unreadable == 2
    assert tried.pairs[0].choice is None
    assert "the reply is not just A or B" in page.content.decode()
    assert "B is &lt;b&gt;better&lt;/b&gt;" in page.content.decode()


def test_after_a_failure_what_has_come_stays_and_the_rest_can_be_asked_for(researcher, endpoint, script, idle_tasks):
    campaign, desk = draft(researcher, by_model()), browser_of(researcher)
    Endpoint.objects.update(concurrency=1)
    script.strikes = lambda body: QUESTION in str(body) and len(asked(script, QUESTION)) > 3
    script.faults.extend([status(400, b"out of order")])
    page = try_it(desk, campaign, idle_tasks, pairs=3, replies=1)
    tried = page.context["tried"]
    assert tried.trial.status == JudgeTrial.Status.STOPPED
    assert "out of order" in page.content.decode()
    come = len(tried.replies)
    assert 3 <= come < 6
    desk.post(reverse("console:go-on-try", args=[campaign.pk, tried.trial.pk]))
    idle_tasks()
    tried = desk.get(reverse("console:try", args=[campaign.pk, 0])).context["tried"]
    assert tried.trial.status == JudgeTrial.Status.DONE
    assert len(tried.replies) == 6
    # None was asked for twice but the one that failed.
    assert (tried.trial.requests, tried.trial.failed) == (7, 1)


def test_tries_count_against_the_sites_cap_and_are_refused_at_it(researcher, endpoint, script, idle_tasks, settings):
    settings.MODEL_BUDGET_REQUESTS = 20
    campaign, desk = draft(researcher, by_model()), browser_of(researcher)
    try_it(desk, campaign, idle_tasks, pairs=4, replies=2)
    assert JudgeTrial.objects.get().requests == 16
    url = reverse("console:try", args=[campaign.pk, 0])
    refused = desk.post(url, {"pairs": 3, "replies": 1}, follow=True)
    assert "The site’s cap of 20 requests" in refused.content.decode()
    assert JudgeTrial.objects.count() == 1
    # Deleting the draft gives nothing back.
    lifecycle.discard(campaign)
    trial = JudgeTrial.objects.get()
    assert (trial.requests, trial.pairs) == (16, [])


@pytest.mark.parametrize("fields", [{"pairs": 21}, {"replies": 6}])
def test_a_try_is_bounded(researcher, endpoint, script, idle_tasks, fields):
    page = browser_of(researcher).post(
        reverse("console:try", args=[draft(researcher, by_model()).pk, 0]), {"pairs": 3, "replies": 1} | fields
    )
    assert "errorlist" in page.content.decode()
    assert not JudgeTrial.objects.exists()


def test_ratings_are_tried_object_by_object(researcher, endpoint, script, idle_tasks):
    known = script.answer
    script.answer = lambda body: chat_reply("7") if QUESTION in str(body) else known(body)
    judge = by_model(budget=1)
    campaign = draft(researcher, judge)
    config = campaign.config_data | {"rule": {"kind": "pointwise", "form": "separate", "lowest": 1}}
    Campaign.objects.filter(pk=campaign.pk).update(config_data=config)
    page = try_it(browser_of(researcher), campaign, idle_tasks, pairs=2, replies=1)
    assert [reply.rating for reply in page.context["tried"].replies] == [7] * 4
    assert "rated 7" in page.content.decode()


def test_where_chains_make_their_objects_what_they_start_at_is_shown(researcher, endpoint, script, idle_tasks):
    known = script.answer
    script.answer = lambda body: chat_reply("A") if QUESTION in str(body) else known(body)
    made = {"space": {"kind": "molecules"}, "kernel": {"kind": "fragments"}}
    config = make_config(**made, judges=[by_model()], chains=2, steps=4)
    config = sampler.parse_config(config).model_dump(mode="json")
    campaign = create_draft(owner=researcher, name="Made", config=config)
    desk = browser_of(researcher)
    page = try_it(desk, campaign, idle_tasks, pairs=2, replies=1)
    tried = page.context["tried"]
    assert (tried.trial.status, tried.trial.reason) == (JudgeTrial.Status.DONE, "")
    assert all(pair.states[0].content != pair.states[1].content for pair in tried.pairs)
    assert not State.objects.exists()
    address = reverse("console:tried-picture", args=[campaign.pk, tried.trial.pk, 0, 1])
    assert desk.get(address).headers["Content-Type"].startswith("image/")


def test_a_started_campaign_is_tried_no_more(researcher, endpoint, script, idle_tasks):
    campaign = draft(researcher, by_model())
    url = reverse("console:try", args=[campaign.pk, 0])
    desk = browser_of(researcher)
    assert desk.get(reverse("console:try", args=[campaign.pk, 5])).status_code == 404
    try_it(desk, campaign, idle_tasks)
    lifecycle.start(campaign)
    idle_tasks()
    refused = desk.post(url, {"pairs": 1, "replies": 1}, follow=True)
    assert "The campaign has started" in refused.content.decode()
    assert JudgeTrial.objects.count() == 1


def test_the_live_page_says_how_the_model_votes_and_whether_people_agree(researcher, endpoint, script, idle_tasks):
    people = {"question": QUESTION, "votes": 1}
    campaign = draft(researcher, by_model(budget=1, votes="log-probabilities"), people)
    lifecycle.start(campaign)
    idle_tasks()
    vote_on_all(campaign, idle_tasks)
    (row,) = browser_of(researcher).get(campaign.get_absolute_url()).context["board"].judging
    votes = Vote.objects.filter(judge=row.judge, number__isnull=False)
    assert row.first_shown == Share(votes.filter(chosen_side="first").count(), votes.count())
    assert 0 < row.mean_p < 1
    agreed = compared = 0
    for vote in votes.filter(comparison__verdict__isnull=False):
        for other in vote.comparison.votes.filter(annotator__isnull=False, number__isnull=False):
            compared += 1
            agreed += other.for_proposal == vote.for_proposal
    assert compared
    assert row.with_people == Share(agreed, compared)


def test_a_draft_that_is_deleted_while_it_is_tried_costs_what_was_asked(researcher, endpoint, script, idle_tasks):
    campaign = draft(researcher, by_model())
    known = script.answer

    def answer(body: dict) -> dict:
        if QUESTION in str(body) and Campaign.objects.filter(pk=campaign.pk).exists():
            lifecycle.discard(Campaign.objects.get(pk=campaign.pk))
        return known(body)

    Endpoint.objects.update(concurrency=1)
    script.answer = answer
    judge_trials.begin(campaign, 0, researcher, pairs=3, replies=1)
    idle_tasks()
    trial = JudgeTrial.objects.get()
    assert not trial.is_asking
    assert trial.requests == len(asked(script, QUESTION)) == 2
    assert trial.pairs == []


def test_a_try_that_a_worker_left_is_taken_up_again(researcher, endpoint, script, idle_tasks):
    campaign, desk = draft(researcher, by_model()), browser_of(researcher)
    try_it(desk, campaign, idle_tasks)
    trial = JudgeTrial.objects.get()
    for pair in trial.pairs[1:]:
        pair["replies"] = {}
    # As a worker that was killed leaves it: claimed, and nobody asks.
    trial.status, trial.until = JudgeTrial.Status.ASKING, timezone.now() - timedelta(seconds=1)
    trial.save()
    sweep()
    idle_tasks()
    trial.refresh_from_db()
    assert trial.status == JudgeTrial.Status.DONE
    assert trial.requests == 12 + 8
