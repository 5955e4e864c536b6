"""Trying a judge before the start: what it shows, what it takes, and that the record never hears of it.

What models cost on the researcher's pages: the estimate, the live figures, caps in the setup and while it runs.
"""

from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone

from prefmh_web.campaigns import lifecycle
from prefmh_web.campaigns.frozen import space_of
from prefmh_web.campaigns.models import Campaign, JudgeTrial, ModelUsage, State, Vote
from prefmh_web.campaigns.monitoring.judging import Share
from prefmh_web.tasks import sweep
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
from tests.support.campaigns import live_page, make_config, started_now, swept
from tests.support.models import chat_reply, status

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
    assert tried["trial"].status == JudgeTrial.Status.DONE
    assert [[len(replies) for _, _, replies in pair["orders"]] for pair in tried["pairs"]] == [[2, 2]] * 3
    requests = len(asked(script, QUESTION))
    assert requests == tried["trial"].requests == 12
    assert tried["trial"].cost == pytest.approx(12 * A_REQUEST)
    assert tried["trial"].tokens_in == 12 * TOKENS_IN
    assert f"{12 * A_REQUEST:.4f}" in page.content.decode()
    shown = [state.content for pair in tried["pairs"] for state in pair["states"]]
    assert all(content in page.content.decode() for content in shown)
    assert all(pair["states"][0].content != pair["states"][1].content for pair in tried["pairs"])


def test_nothing_is_written_to_the_record(researcher, endpoint, script, idle_tasks):
    campaign = draft(researcher, by_model())
    before = (campaign.config_data, State.objects.count())
    try_it(browser_of(researcher), campaign, idle_tasks)
    campaign.refresh_from_db()
    assert (campaign.config_data, State.objects.count()) == before
    assert not ModelUsage.objects.exists()
    assert not Vote.objects.exists()
    assert not campaign.judges.exists()
    started_now(campaign)
    # What the start has taken is its own.
    assert campaign.model_usage.get().requests == len(asked(script, QUESTION)) - 12


def test_log_probabilities_take_one_request_for_each_order_and_show_p_and_the_bias(
    researcher, endpoint, script, idle_tasks
):
    script.answer = type(script.answer)(script.answer.scores, bias=2.0)
    campaign = draft(researcher, by_model(votes="log-probabilities"))
    page = try_it(browser_of(researcher), campaign, idle_tasks, pairs=4)
    tried = page.context["tried"]
    assert tried["trial"].requests == 8
    for pair in tried["pairs"]:
        one, other = (state.content for state in pair["states"])
        for reply in pair["replies"]:
            first, second = (one, other) if reply.first == 0 else (other, one)
            assert reply.preference == pytest.approx(script.answer.preference(first, second, 0.7, True), abs=1e-9)
    assert tried["mean_p_first"] > 0.6
    assert "Position bias" in page.content.decode()


def test_the_researchers_clicks_are_compared_with_the_model(researcher, endpoint, script, idle_tasks):
    script.answer = type(script.answer)({line: 20 * s for line, s in script.answer.scores.items()})
    campaign, desk = draft(researcher, by_model()), browser_of(researcher)
    tried = try_it(desk, campaign, idle_tasks, pairs=4, replies=1).context["tried"]
    for number, pair in enumerate(tried["pairs"]):
        liked = max((0, 1), key=lambda which: script.answer.scores[pair["states"][which].content])
        assert pair["choice"] == liked
        chosen = liked if number else 1 - liked
        desk.post(reverse("console:prefer", args=[campaign.pk, tried["trial"].pk, number]), {"preferred": chosen})
    page = desk.get(reverse("console:try", args=[campaign.pk, 0]))
    assert page.context["tried"]["agreement"] == Share(3, 4)
    assert "3 of 4 (75 %, 95 % interval 30 to 95 %)" in page.content.decode()
    refused = desk.post(reverse("console:prefer", args=[campaign.pk, tried["trial"].pk, 0]), {"preferred": "2"})
    assert refused.status_code == 404


def test_the_interval_is_wilsons():
    # Newcombe, Statistics in Medicine 17, 1998, table I: 81 of 263.
    low, high = Share(81, 263).interval_percent
    assert (low, high) == (pytest.approx(25.53, abs=0.01), pytest.approx(36.62, abs=0.01))
    assert Share(0, 20).interval_percent[0] == 0


def test_tries_count_against_the_sites_cap_and_are_refused_at_it(researcher, endpoint, script, idle_tasks, settings):
    settings.MODEL_CAP_REQUESTS = 20
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


def test_the_live_page_says_how_the_model_votes_and_whether_people_agree(researcher, endpoint, script, idle_tasks):
    people = {"question": QUESTION, "votes": 1}
    campaign = draft(researcher, by_model(budget=1, votes="log-probabilities"), people)
    started_now(campaign)
    vote_on_all(campaign, idle_tasks)
    (row,) = browser_of(researcher).get(campaign.get_absolute_url()).context["board"].judging
    votes = Vote.objects.filter(judge=row["judge"], number__isnull=False)
    assert row["first_shown"] == Share(votes.filter(chosen_side="first").count(), votes.count())
    assert 0 < row["mean_p"] < 1
    agreed = compared = 0
    for vote in votes.filter(comparison__verdict__isnull=False):
        for other in vote.comparison.votes.filter(voter__isnull=False, number__isnull=False):
            compared += 1
            agreed += other.for_proposal == vote.for_proposal
    assert compared
    assert row["with_people"] == Share(agreed, compared)


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


def test_both_texts_of_a_pair_are_of_one_prompt_and_with_its_source(researcher, endpoint, script, idle_tasks):
    script.answer = lambda body: chat_reply("A")
    campaign = draft(researcher, by_model())
    space = {"kind": "texts", "scenarios": [0, 1, 2]}
    changed = make_config(space=space, kernel={"kind": "independent"}, judges=[by_model()], chains=4, steps=3)
    Campaign.objects.filter(pk=campaign.pk).update(config_data=campaign.config_data | changed)
    tried = try_it(browser_of(researcher), campaign, idle_tasks, pairs=6).context["tried"]
    campaign.refresh_from_db()
    config, found = campaign.config, []
    for pair in tried["pairs"]:
        one, other = ((space_of(campaign).decode(row.code), row.index) for row in pair["states"])
        assert one[0] != other[0]
        assert one[0].prompt == other[0].prompt
        assert {config.target_of(index % config.chains_at_most) for _, index in (one, other)} == {one[0].prompt}
        found.append(one[0].prompt)
    assert len(set(found)) == 3


def test_a_try_that_fails_says_why_and_goes_on_with_what_is_missing(researcher, endpoint, script, idle_tasks):
    campaign, desk = draft(researcher, by_model()), browser_of(researcher)
    # Of the second pair, the first request: one reply of a pair that failed costs no other.
    script.faults.extend([None] * 4 + [status(400, b"no more today")])
    page = try_it(desk, campaign, idle_tasks)
    trial = page.context["tried"]["trial"]
    assert (trial.status, trial.requests) == (JudgeTrial.Status.STOPPED, 8)
    assert "no more today" in page.content.decode()
    assert [len(pair["replies"]) for pair in trial.pairs] == [4, 3, 0]

    go_on = reverse("console:go-on-try", args=[campaign.pk, trial.pk])
    changed = campaign.config_data | {"judges": [by_model() | {"question": "Which is longer?"}]}
    Campaign.objects.filter(pk=campaign.pk).update(config_data=changed)
    assert "was changed since this trial" in desk.post(go_on, follow=True).content.decode()
    Campaign.objects.filter(pk=campaign.pk).update(config_data=campaign.config_data)
    desk.post(go_on)
    idle_tasks()
    trial.refresh_from_db()
    assert (trial.status, trial.requests) == (JudgeTrial.Status.DONE, 13)
    assert [len(pair["replies"]) for pair in trial.pairs] == [4, 4, 4]


def cap(browser, campaign: Campaign, **fields: str) -> str:
    sent = {"name": campaign.name} | {f"caps.{name}": value for name, value in fields.items()}
    return browser.post(reverse("console:edit", args=[campaign.pk]), sent, follow=True).content.decode()


def test_the_live_page_shows_figures_the_reason_of_the_pause_and_a_way_to_raise_the_cap(
    researcher, endpoint, script, idle_tasks
):
    desk = browser_of(researcher)
    campaign = swept(started_now(draft(researcher, by_model(budget=3), cost_cap="0.10")))
    page = live_page(desk, campaign)
    requests = len(asked(script, QUESTION))
    assert f"{requests} requests" in page
    assert f"{10 * requests} %" in page
    assert "The cap of 0.10 is reached" in page
    refused = desk.post(reverse("console:resume", args=[campaign.pk]), follow=True).content.decode()
    assert "Raise the cap, then press Resume." in refused

    wrong = cap(desk, campaign, cost="much", requests="")
    assert "Not saved" in wrong
    assert "Enter a number." in wrong
    assert not campaign.events.filter(kind="caps").exists()

    assert "Saved." in cap(desk, campaign, cost="5", requests="")
    assert "The cap of 0.10 is reached" not in live_page(desk, campaign)
    desk.post(reverse("console:resume", args=[campaign.pk]))
    idle_tasks()
    page = live_page(desk, campaign)
    assert "finished" in page
    assert "Change the caps" not in page
    assert "Only the caps of a running or paused campaign" in cap(desk, campaign, cost="9", requests="")
