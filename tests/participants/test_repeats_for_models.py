"""Models asked about people's hidden repeats: within their number and the caps, and never as a vote."""

import zipfile

import pytest
from django.db.models import F

import sampler
from prefmh_web.annotate.tasks import settle_parts
from prefmh_web.campaigns.model_judges import repeated
from prefmh_web.campaigns.models import Campaign, Chain, Comparison, RepeatQuestion, Vote
from prefmh_web.campaigns.tasks import sweep
from prefmh_web.endpoints.models import Endpoint
from tests.flows.test_model_costs import by_model, endpoint, script
from tests.participants.test_model_agreement import PEOPLE, answer_repeats, shown_of
from tests.support.record import assert_record_is_whole, assert_replay_passes, export_to, table
from tests.support.recruited import recruited_campaign
from tests.support.scripted_server import status, votes_asked
from tests.support.stack import make_recipe

__all__ = ["endpoint", "script"]


@pytest.fixture
def away(researcher, endpoint, script, idle_tasks):
    """Return a campaign in which people's votes alone decided steps while the model's server was away, and a person
    has answered three of these pairs once more. The server is there again, and no turn is taken meanwhile.
    """

    def of(most: int, votes: str = "sampled") -> Campaign:
        judge = by_model(budget=1, votes=votes)
        judge["source"] |= {"repeats": most} if most else {}
        script.faults.extend([status(503, b"away")] * 10_000)
        recipe = make_recipe(judges=[judge, PEOPLE], chains=12, steps=30)
        campaign = recruited_campaign(researcher, protocol={"repeat_share": 0.5}, recipe=recipe)
        answer_repeats(campaign, ("anna",), 3)
        script.faults.clear()
        Endpoint.objects.update(failures=0, open_until=None)
        return campaign

    return of


def put_and_asked(idle_tasks) -> None:
    """Do what the sweeps do about repeats, and no turn."""
    settle_parts()
    for question in repeated.waiting():
        repeated.ask(question)
    idle_tasks()


def answered_requests(campaign: Campaign) -> int:
    usage = campaign.model_usage.get(place=0)
    return usage.requests - usage.failed


def record_of_votes() -> list:
    chains = list(Chain.objects.order_by("pk").values_list("pk", "step", "head", "votes", "votes_for"))
    return [chains, list(Vote.objects.order_by("pk").values_list("pk", "number", "chosen_side"))]


def test_a_model_is_asked_in_both_orders_about_pairs_that_it_has_no_vote_on(
    researcher, away, script, idle_tasks, tmp_path
):
    campaign = away(10)
    before, [row, requests] = record_of_votes(), (shown_of(researcher, campaign)[0], len(votes_asked(script)))
    assert row.unasked >= 2
    taken = answered_requests(campaign)
    put_and_asked(idle_tasks)
    questions = RepeatQuestion.objects.select_related("comparison")
    assert len(questions) == row.unasked
    assert len(votes_asked(script)) - requests == 2 * len(questions)
    assert {question.lead for question in questions} <= {0.0, 0.5, 1.0}
    # No vote, no verdict and no chain has changed.
    assert record_of_votes() == before
    now, page = shown_of(researcher, campaign)
    assert (now.unasked, now.beside) == (0, len(questions))
    assert f"{now.beside} of those pairs were put to it for this" in page
    assert now.agreed is None or now.agreed.of <= now.beside
    # Counted as what the judge takes.
    assert answered_requests(campaign) - taken == 2 * len(questions)
    # Once.
    put_and_asked(idle_tasks)
    assert RepeatQuestion.objects.count() == len(questions)
    path = export_to(campaign, tmp_path)
    assert_replay_passes(path)
    assert_record_is_whole(campaign)
    assert len(table(path, "repeats.csv")) == len(questions)
    decided = {(row["chain"], row["step"]) for row in table(path, "steps.csv") if row["verdict"]}
    assert {(row["chain"], row["step"]) for row in table(path, "repeats.csv")} <= decided


def test_log_probabilities_tell_the_lead(away, script, idle_tasks):
    away(10, votes="log-probabilities")
    put_and_asked(idle_tasks)
    for question in RepeatQuestion.objects.select_related("comparison__current", "comparison__proposal"):
        pair = question.comparison.proposal.content, question.comparison.current.content
        assert question.lead == pytest.approx(script.answer.preference(*pair, 0.7, True), abs=1e-6)


def test_the_sweeps_ask_by_themselves_and_no_more_than_the_number(away, idle_tasks):
    away(1)
    for _ in range(3):
        settle_parts()
        sweep()
        idle_tasks()
    assert RepeatQuestion.objects.count() == 1
    assert RepeatQuestion.objects.get().lead is not None


def test_without_the_setting_nothing_is_asked(away, idle_tasks, tmp_path):
    campaign = away(0)
    put_and_asked(idle_tasks)
    assert not RepeatQuestion.objects.exists()
    with zipfile.ZipFile(export_to(campaign, tmp_path)) as archive:
        assert "repeats.csv" not in archive.namelist()
    assert "repeats" not in sampler.ModelSource(endpoint="A model").model_dump(mode="json")


def test_where_a_cap_leaves_no_room_nothing_is_asked_and_the_campaign_goes_on(away, script, idle_tasks):
    campaign = away(10)
    used = campaign.model_usage.get(place=0).requests
    # Two orders with all their repeats are six.
    Campaign.objects.update(request_cap=used + 5)
    asked = len(votes_asked(script))
    put_and_asked(idle_tasks)
    campaign.refresh_from_db()
    assert len(votes_asked(script)) == asked
    assert (campaign.status, campaign.paused_because) == (Campaign.Status.RUNNING, "")
    Campaign.objects.update(request_cap=F("request_cap") + 1)
    put_and_asked(idle_tasks)
    assert len(votes_asked(script)) == asked + 2


def test_a_server_that_fails_is_asked_again_some_times_and_then_no_more(away, script, idle_tasks):
    away(1)
    script.faults.extend([status(503, b"away")] * 100)
    for _ in range(5):
        Endpoint.objects.update(failures=0, open_until=None)
        RepeatQuestion.objects.update(until=None)
        put_and_asked(idle_tasks)
    question = RepeatQuestion.objects.get()
    assert (question.tries, question.lead) == (repeated.MOST_TRIES, None)
    assert "away" in question.reason


def test_no_pair_that_somebody_may_still_vote_on_is_put(away, idle_tasks):
    away(10)
    settle_parts()
    first = RepeatQuestion.objects.select_related("comparison").first().comparison
    RepeatQuestion.objects.all().delete()
    # Another chain has come to the same pair, and its step is open.
    other = Comparison.objects.filter(verdict=None).exclude(chain=first.chain_id).first()
    Comparison.objects.filter(pk=other.pk).update(current=first.proposal_id, proposal=first.current_id)
    settle_parts()
    assert first.pk not in RepeatQuestion.objects.values_list("comparison", flat=True)
