"""What models take is counted by campaign and judge, as the server saw it.

Caps on what models may take: reached in mid-campaign, raised, resumed; by several workers at once; for the site.
"""

import json
import re
import uuid

import pytest
from django.db.models import Sum
from django.utils import timezone

from prefmh_web import tasks
from prefmh_web.campaigns import lifecycle
from prefmh_web.campaigns.engine import leases
from prefmh_web.campaigns.engine.usage import PROPOSALS, why_reached
from prefmh_web.campaigns.lifecycle import status
from prefmh_web.campaigns.model_judges import turns
from prefmh_web.campaigns.model_judges.asker import Asker, answered
from prefmh_web.campaigns.models import Campaign, Comparison, Event, ModelUsage, Side, Turn, Vote, Voter
from prefmh_web.endpoints import loop
from prefmh_web.endpoints.models import Endpoint
from tests.support.campaigns import (
    create_draft,
    live_page,
    make_config,
    make_draft,
    registered,
    set_caps,
    started_now,
    swept,
)
from tests.support.models import (
    LINES,
    Held,
    KnownJudge,
    Script,
    Writer,
    chat_reply,
    is_vote,
    logged,
    scripted_server,
    texts_written,
)
from tests.support.records import assert_record_is_whole, assert_replay_passes, export_to, table

JUDGE = KnownJudge({line: (index - 6) / 4 for index, line in enumerate(LINES)})
QUESTION, OTHER_QUESTION = "Which is darker?", "Which is older?"
# What `chat_reply` says that each request took, and a price at which a request costs 0.01.
TOKENS_IN, TOKENS_OUT, PRICES = 50, 2, {"input_price": 160.0, "output_price": 1000.0}
A_REQUEST = 0.01


@pytest.fixture
def script():
    with scripted_server(JUDGE) as script:
        script.strikes = is_vote
        yield script


@pytest.fixture
def endpoint(researcher, script, settings) -> Endpoint:
    return registered(researcher, script.url, settings, **PRICES)


def by_model(votes: str = "sampled", budget: int = 3, question: str = QUESTION, **source) -> dict:
    source = {"kind": "model", "endpoint": "A model", "temperature": 0.7, "votes": votes} | source
    return {"question": question, "votes": budget, "source": source}


def draft(owner, *judges: dict, chains: int = 2, steps: int = 8, **fields) -> Campaign:
    campaign = make_draft(owner, config=make_config(judges=list(judges), chains=chains, steps=steps))
    Campaign.objects.filter(pk=campaign.pk).update(**fields)
    campaign.refresh_from_db()
    return campaign


def written(owner, script: Script, settings, **fields) -> Campaign:
    """Return a draft whose texts the server writes, for people to compare."""
    registered(owner, script.url, settings, **PRICES)
    space = {"kind": "model-texts", "model": "A model", "prompts": ["Write about the sea."], "limit": 8}
    judges = [{"question": QUESTION, "votes": 1}]
    config = make_config(space=space, kernel={"kind": "independent"}, judges=judges, chains=2, steps=6)
    return create_draft(owner=owner, config=config, **fields)


def vote_on_all(campaign: Campaign, idle_tasks) -> None:
    """Vote on whatever is open, until there is no pair."""
    voter = Voter.objects.create(campaign=campaign)
    while lease := leases.take(voter):
        leases.answer(lease.key, voter, Side.FIRST, 0)
        idle_tasks()


def asked(script: Script, question: str) -> list[dict]:
    """Return the requests that put a question, the longest prompt that is tried at Start among them."""
    return [body for body in list(script.requests) if question in json.dumps(body)]


def test_the_counts_are_what_the_server_saw(researcher, endpoint, script, idle_tasks):
    campaign = started_now(draft(researcher, by_model(), by_model("log-probabilities", 1, OTHER_QUESTION)))
    assert campaign.status == Campaign.Status.FINISHED
    for usage, question in zip(campaign.model_usage.all(), (QUESTION, OTHER_QUESTION), strict=True):
        requests = len(asked(script, question))
        assert requests > 1
        assert (usage.requests, usage.failed, usage.unreadable) == (requests, 0, 0)
        assert (usage.tokens_in, usage.tokens_out) == (TOKENS_IN * requests, TOKENS_OUT * requests)
        assert usage.cost == pytest.approx(requests * A_REQUEST)
        assert usage.seconds > 0


def test_texts_that_a_model_writes_are_counted_without_a_judge(researcher, settings, idle_tasks):
    with scripted_server(Writer()) as script:
        campaign = written(researcher, script, settings)
        started_now(campaign)
        at_start, seen = campaign.model_usage.get(), len(script.requests)
        assert at_start.is_of_proposals
        vote_on_all(campaign, idle_tasks)
        usage = campaign.model_usage.get()
        assert usage.requests - at_start.requests == len(script.requests) - seen > 0
        assert usage.tokens_out - at_start.tokens_out == 8 * texts_written(script, seen)


PEOPLE = {"question": QUESTION, "votes": 1}


def used(campaign: Campaign | None = None) -> tuple[int, float]:
    found = ModelUsage.objects.filter(campaign=campaign) if campaign else ModelUsage.objects.all()
    sums = found.aggregate(requests=Sum("requests", default=0), cost=Sum("cost", default=0.0))
    return sums["requests"], sums["cost"]


def now(campaign: Campaign) -> Campaign:
    campaign.refresh_from_db()
    return campaign


@pytest.mark.parametrize("cap", [{"cost_cap": "0.10"}, {"request_cap": 10}], ids=["money", "requests"])
def test_a_campaign_pauses_at_its_cap_and_goes_on_when_it_is_raised(
    researcher, endpoint, script, idle_tasks, tmp_path, cap
):
    campaign = swept(started_now(draft(researcher, by_model(), **cap)))
    assert campaign.status == Campaign.Status.PAUSED
    assert campaign.paused_because.startswith(f"The cap of {'0.10' if 'cost_cap' in cap else '10 requests'} is reached")
    requests = len(asked(script, QUESTION))
    assert used(campaign) == (requests, pytest.approx(requests * A_REQUEST))
    # A vote takes three requests at most, and each may write four times as many tokens as these do.
    assert (4 if "cost_cap" in cap else 7) < requests <= 10
    votes = Vote.objects.count()
    tasks.sweep()
    idle_tasks()
    assert len(asked(script, QUESTION)) == requests

    with pytest.raises(lifecycle.NotPossible, match="Raise the cap, then press Resume"):
        lifecycle.resume(campaign)
    assert now(campaign).status == Campaign.Status.PAUSED

    set_caps(campaign, researcher, cost_cap=None, request_cap=None)
    assert now(campaign).paused_because == ""
    lifecycle.resume(campaign)
    idle_tasks()
    assert now(campaign).status == Campaign.Status.FINISHED
    assert Vote.objects.count() > votes == requests - 1
    assert Vote.objects.count() == len(asked(script, QUESTION)) - 1
    changes = Event.objects.filter(kind="config-changed")
    assert {(each.by, each.data["new"]) for each in changes} == {(researcher, None)}
    assert_record_is_whole(campaign)
    path = export_to(campaign, tmp_path)
    assert_replay_passes(path)
    (row,) = table(path, "calls.csv")
    assert (row["judge_index"], row["requests"]) == ("0", str(len(asked(script, QUESTION))))
    assert float(row["cost"]) == pytest.approx(A_REQUEST * int(row["requests"]))


def capped_at(researcher, idle_tasks, left: int) -> tuple[Campaign, list[tuple[int, int]]]:
    """Return a running campaign with so many requests left under its cap, and its turns, of two votes each."""
    campaign = draft(researcher, by_model(budget=2), chains=8, steps=4, request_cap=14)
    assert swept(started_now(campaign)).status == Campaign.Status.PAUSED
    set_caps(campaign, researcher, cost_cap=None, request_cap=used(campaign)[0] + left)
    Campaign.objects.filter(pk=campaign.pk).update(status=Campaign.Status.RUNNING)
    judge = campaign.judges.get()
    found = [(opened.pk, judge.pk) for opened in Comparison.objects.filter(verdict__isnull=True).order_by("pk")]
    assert len(found) > 4
    return campaign, found


def test_several_askers_at_once_do_not_pass_the_cap(researcher, endpoint, script, idle_tasks, eventually):
    campaign, wanted = capped_at(researcher, idle_tasks, 8)
    before = len(asked(script, QUESTION))
    # Each request is held until all have had their chance to ask.
    script.answer = held = Held(script.answer)
    askers = [Asker() for _ in range(3)]
    try:
        for index, turn in enumerate(wanted):
            assert askers[index % 3].offer(*turn)
        eventually(lambda: not any(each._count for each in askers))
    finally:
        held.may_go_on.set()
        for each in askers:
            each.end()
    swept(campaign)
    # Two votes fit at first, for each may take three requests; not one for each of the turns.
    assert 0 < len(asked(script, QUESTION)) - before <= 8


def test_turns_that_are_claimed_together_do_not_pass_the_cap(researcher, endpoint, script, idle_tasks):
    campaign, wanted = capped_at(researcher, idle_tasks, 8)
    owner = uuid.uuid4()
    taken = turns.work([], wanted, owner)
    assert sum(len(each.asking.slots) for each in taken) == 2
    # Their replies were readable at once. What they took counts as soon as nothing is set aside for it any more.
    answers = [loop.run(answered(each)) for each in taken]
    taken = turns.work(answers, wanted, owner)
    assert used(campaign)[0] + sum(3 * len(each.asking.slots) for each in taken) <= now(campaign).request_cap


def test_what_was_under_way_when_its_campaign_was_deleted_counts_for_the_site(researcher, endpoint, script, idle_tasks):
    campaign, wanted = capped_at(researcher, idle_tasks, 100)
    owner = uuid.uuid4()
    answers = [loop.run(answered(each)) for each in turns.work([], wanted, owner)]
    lifecycle.pause(campaign)
    status.request_deletion(now(campaign), campaign.name)
    status.finish_deletion(campaign.pk)
    turns.work(answers, [], owner)
    assert used()[0] == len(asked(script, QUESTION))


def test_what_processes_that_died_had_sent_does_not_pass_the_cap(signed_in, researcher, endpoint, script, idle_tasks):
    campaign, wanted = capped_at(researcher, idle_tasks, 8)
    before = len(asked(script, QUESTION))
    for _ in range(5):
        for each in turns.work([], wanted, uuid.uuid4()):
            loop.run(answered(each))
        Turn.objects.update(until=timezone.now())
    assert 0 < len(asked(script, QUESTION)) - before <= 8
    # Nothing will come of what is under way: it is the cap that stands between.
    assert swept(campaign).status == Campaign.Status.PAUSED
    # The page counts them as the cap does.
    made = re.search(r"is reached: (\d+) have been made", now(campaign).paused_because)
    assert f"<p>{made[1]} requests of at most {campaign.request_cap}." in live_page(signed_in, campaign)


def test_log_probabilities_that_are_asked_for_again_do_not_pass_the_cap(researcher, endpoint, script, idle_tasks):
    campaign = draft(researcher, by_model("log-probabilities", 1), chains=8, steps=4, request_cap=14)
    assert swept(started_now(campaign)).status == Campaign.Status.PAUSED
    set_caps(campaign, researcher, cost_cap=None, request_cap=used(campaign)[0] + 4)
    Campaign.objects.filter(pk=campaign.pk).update(status=Campaign.Status.RUNNING)
    judge, before = campaign.judges.get(), len(asked(script, QUESTION))
    wrong = logged("A", [{"token": "A", "logprob": -0.2}, {"token": "B", "logprob": -0.3}])
    script.answer = lambda body: chat_reply("A", logprobs=wrong) if body.get("logprobs") else chat_reply("neither")
    # What *Test* sees later changes nothing about how a campaign asks.
    Endpoint.objects.update(samples_untruncated=None)
    wanted = [(opened.pk, judge.pk) for opened in Comparison.objects.filter(verdict__isnull=True)]
    for each in turns.work([], wanted, uuid.uuid4()):
        loop.run(answered(each))
    # Two that fail, and three replies that are no vote, are one more.
    assert len(asked(script, QUESTION)) - before <= 4


def test_what_is_not_sent_for_want_of_a_key_is_not_counted(
    signed_in, researcher, endpoint, script, idle_tasks, settings
):
    campaign, _ = capped_at(researcher, idle_tasks, 100)
    settings.ENDPOINT_KEYS = {"A_KEY": ["127.0.0.1"]}
    Endpoint.objects.update(api_key_variable="A_KEY")
    swept(campaign, 3)
    assert "the environment variable A_KEY is not set" in live_page(signed_in, campaign)
    assert used(campaign)[0] == len(asked(script, QUESTION))


def test_a_cap_in_money_needs_a_price(researcher, endpoint, idle_tasks):
    Endpoint.objects.update(input_price=None)
    campaign = draft(researcher, by_model(), cost_cap="5.00")
    with pytest.raises(lifecycle.NotPossible, match="Enter both prices of the endpoint"):
        lifecycle.start(campaign)
    assert now(campaign).is_draft


def test_a_request_that_writes_as_much_as_it_reads_has_a_price_too(researcher, endpoint, script, idle_tasks):
    answer = script.answer
    script.answer = lambda body: answer(body) | {"usage": {"prompt_tokens": 50, "completion_tokens": 50}}
    campaign = draft(researcher, by_model(), cost_cap="50.00")
    assert started_now(campaign).status == Campaign.Status.FINISHED


def test_a_vote_in_a_campaign_of_long_texts_costs_no_more_than_a_vote(researcher, endpoint, idle_tasks):
    # So that it is known how many tokens a question has.
    started_now(draft(researcher, by_model(), chains=1, steps=1))
    space = {"kind": "model-texts", "model": "A model", "prompts": ["Write about the sea."], "limit": 500}
    config = make_config(space=space, kernel={"kind": "independent"}, judges=[by_model()], chains=2, steps=6)
    campaign = create_draft(owner=researcher, config=config, cost_cap="0.20")
    assert why_reached(campaign, 0, endpoint, 1) == ""
    assert "is reached" in why_reached(campaign, PROPOSALS, endpoint, 1)


@pytest.mark.parametrize(("variable", "a_request"), [("MODEL_CAP_COST", A_REQUEST), ("MODEL_CAP_REQUESTS", 1)])
def test_the_site_s_cap_pauses_all_campaigns_that_ask_models_and_no_other(
    researcher, endpoint, idle_tasks, settings, variable, a_request
):
    waits = draft(researcher, PEOPLE, {**by_model(budget=1, question="Which is older?"), "order": "random"}, steps=100)
    of_people, asks = draft(researcher, PEOPLE), draft(researcher, by_model(), steps=100)
    for campaign in (of_people, waits):
        started_now(campaign)
    assert now(waits).status == Campaign.Status.RUNNING
    # Room for the longest prompt and a few votes.
    most = used()[0] + 9
    setattr(settings, variable, most * a_request)
    swept(started_now(asks))
    assert [now(each).status for each in (asks, waits, of_people)] == ["paused", "paused", "running"]
    assert all(variable in each.paused_because for each in (asks, waits))
    assert used()[0] <= most
    with pytest.raises(lifecycle.NotPossible, match="Whoever runs the site"):
        lifecycle.resume(asks)
    with pytest.raises(lifecycle.NotPossible, match="Whoever runs the site"):
        lifecycle.start(draft(researcher, by_model()))
    # People's campaigns start and go on.
    voter = Voter.objects.create(campaign=of_people)
    lease = leases.take(voter)
    leases.answer(lease.key, voter, Side.FIRST, 0)
    setattr(settings, variable, 10_000)
    lifecycle.resume(asks)
    assert now(asks).status == Campaign.Status.RUNNING
    lifecycle.pause(asks)
