"""Turns that a process takes by itself: as many as the endpoint serves, campaigns in turn, none lost or taken twice."""

import logging
import threading
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest
from django.db import OperationalError, connections
from django.utils import timezone

from prefmh_web import tasks
from prefmh_web.campaigns.engine import transitions
from prefmh_web.campaigns.model_judges import asker as asking
from prefmh_web.campaigns.model_judges import turns
from prefmh_web.campaigns.model_judges.asker import Asker, answered
from prefmh_web.campaigns.models import Campaign, Comparison, Turn, Vote
from prefmh_web.endpoints import loop
from prefmh_web.endpoints.models import Endpoint, Usage
from prefmh_web.transport import publishing
from tests.support.campaigns import make_campaign, make_config, registered
from tests.support.models import SCORES, Held, KnownJudge, Script, is_vote, scripted_server
from tests.support.records import assert_record_is_whole

QUESTIONS = ("Which is darker?", "Which is calmer?")
AT_ONCE = 4


JUDGE = KnownJudge(SCORES)


class Slow(Held):
    """Answers votes after a while, and remembers which question each was about."""

    def __init__(self) -> None:
        super().__init__(self._judged)
        self.asked: list[str] = []
        self.may_go_on.set()

    def __call__(self, body: dict) -> dict:
        if not is_vote(body):
            return JUDGE(body)
        self.asked.extend(question for question in QUESTIONS if question in str(body["messages"]))
        return super().__call__(body)

    def _judged(self, body: dict) -> dict:
        threading.Event().wait(0.05)
        return JUDGE(body)


@pytest.fixture
def slow() -> Slow:
    return Slow()


@pytest.fixture
def script(slow, settings, researcher) -> Iterator[Script]:
    with scripted_server(slow) as script:
        registered(researcher, script.url, settings, concurrency=AT_ONCE)
        yield script


@pytest.fixture
def quiet(script, monkeypatch) -> None:
    """No hint of a turn arrives."""
    publish = publishing.publish
    monkeypatch.setattr(publishing, "publish", lambda hint: hint.task == asking.TASK or publish(hint))


@pytest.fixture
def make_asker(slow, script, monkeypatch) -> Iterator[Callable[[], Asker]]:
    """Let this process take turns by itself, as often as it is called; the last one's turns bring their successors."""
    made: list[Asker] = []
    publish = publishing.publish

    def begin() -> Asker:
        made.append(Asker())
        return made[-1]

    def published(hint: publishing.TaskMessage) -> None:
        if hint.task != asking.TASK or not made:
            publish(hint)
        else:
            made[-1].offer(*hint.arguments)

    monkeypatch.setattr(publishing, "publish", published)
    yield begin
    slow.may_go_on.set()
    for each in made:
        each.end()


@pytest.fixture
def asker(make_asker) -> Asker:
    return make_asker()


@pytest.fixture
def make(researcher, script) -> Callable[..., Campaign]:
    def make(question: str = QUESTIONS[0], votes: int = 2, asked: dict | None = None, **changes) -> Campaign:
        source = {"kind": "model", "endpoint": "A model", "votes": "sampled"} | (asked or {})
        config = make_config(judges=[{"question": question, "votes": votes, "source": source}], **changes)
        return make_campaign(researcher, config=config)

    return make


def finished(*campaigns: Campaign) -> bool:
    return (
        not Campaign.objects.filter(pk__in=[campaign.pk for campaign in campaigns]).exclude(status="finished").exists()
    )


def wanted_of(campaign: Campaign) -> list[turns.TurnKey]:
    """Return the turns of the open comparisons of a campaign."""
    judge = campaign.judges.get().pk
    return [(opened.pk, judge) for opened in Comparison.objects.filter(chain__campaign=campaign, verdict=None)]


def assert_each_vote_was_asked_for_once(slow: Slow, campaign: Campaign) -> None:
    votes = Vote.objects.filter(judge__campaign=campaign)
    assert len(slow.asked) == votes.count() == votes.values("comparison", "slot").distinct().count()
    assert_record_is_whole(campaign)


def test_campaigns_are_finished_within_the_endpoints_limit_and_each_vote_is_asked_for_once(
    asker, make, slow, eventually
):
    campaign = make(chains=8, steps=4)
    eventually(lambda: finished(campaign), 60)
    assert 1 < slow.most <= AT_ONCE
    assert_each_vote_was_asked_for_once(slow, campaign)
    # What was counted in memory is written.
    eventually(lambda: Usage.objects.get().answered >= len(slow.asked))


def test_a_campaign_that_comes_later_does_not_wait_for_all_turns_of_the_one_before(asker, make, slow, eventually):
    make(QUESTIONS[0], chains=30, steps=50)
    eventually(lambda: len(slow.asked) > 10)
    later = make(QUESTIONS[1], chains=30, steps=50)
    eventually(lambda: QUESTIONS[1] in slow.asked)
    begin = slow.asked.index(QUESTIONS[1])
    eventually(lambda: len(slow.asked) > begin + 40)
    # In turn, half and half, whatever had waited for longer; one turn of two votes more or less.
    assert 40 / 2 - 6 <= slow.asked[begin : begin + 40].count(QUESTIONS[1]) <= 40 / 2 + 6
    assert later.chains.exists()
    Campaign.objects.update(status="paused")


def test_turns_are_claimed_only_as_their_server_has_room(asker, make, slow, eventually):
    slow.may_go_on.clear()
    campaign = make(chains=12, steps=2)
    # It is guessed how many votes the next turn wants: one place may be left.
    eventually(lambda: slow.now >= AT_ONCE - 1)
    claimed = Turn.objects.filter(asked__gt=0)
    # The others wait in memory, and anybody may take them.
    assert sum(turn.asked for turn in claimed) <= AT_ONCE
    assert len(set(turns.waiting())) == 12 - claimed.count()
    slow.may_go_on.set()
    eventually(lambda: finished(campaign), 60)
    assert_each_vote_was_asked_for_once(slow, campaign)


def test_votes_from_log_probabilities_take_up_room_for_the_two_orders_of_a_pair_only(asker, make, slow, eventually):
    asked = {"votes": "log-probabilities", "all_at_once": True}
    campaign = make(chains=8, steps=6, votes=2 * AT_ONCE, asked=asked)
    # Start has asked as well.
    slow.most = 0
    eventually(lambda: finished(campaign), 60)
    assert 2 < slow.most <= AT_ONCE
    assert_record_is_whole(campaign)


def test_the_same_turn_given_again_and_again_is_asked_once(asker, make, slow, eventually):
    slow.may_go_on.clear()
    campaign = make(chains=3, steps=1)
    eventually(lambda: slow.now)
    for _ in range(5):
        for wanted in wanted_of(campaign):
            assert asker.offer(*wanted)
    slow.may_go_on.set()
    eventually(lambda: finished(campaign), 60)
    assert_each_vote_was_asked_for_once(slow, campaign)


def test_two_processes_that_are_given_the_same_turns_store_no_vote_twice(make_asker, make, slow, eventually):
    first, second = make_asker(), make_asker()
    campaign = make(chains=8, steps=4)

    def ended() -> bool:
        for wanted in wanted_of(campaign):
            first.offer(*wanted)
            second.offer(*wanted)
        return finished(campaign)

    eventually(ended, 60)
    assert_each_vote_was_asked_for_once(slow, campaign)


def test_what_comes_after_somebody_else_took_the_turn_is_stored_once(quiet, make, slow):
    campaign = make(chains=1, steps=1)
    [wanted] = wanted_of(campaign)
    first, second = uuid.uuid4(), uuid.uuid4()
    [late] = turns.work([], [wanted], first)
    # Its process stood still until its claim was over.
    Turn.objects.update(until=timezone.now() - timedelta(seconds=1))
    [taken] = turns.work([], [wanted], second)
    answers = [loop.run(answered(each)) for each in (late, taken)]
    turns.work(answers[:1], [], first)
    stored = set(Vote.objects.values_list("key", "chosen_side"))
    turns.work(answers[1:], [], second)
    assert set(Vote.objects.values_list("key", "chosen_side")) == stored
    assert Counter(Vote.objects.values_list("slot", flat=True)).most_common(1)[0][1] == 1
    assert_record_is_whole(campaign)


def test_a_turn_is_claimed_as_the_votes_of_another_judge_on_the_same_pair_come(quiet, slow, researcher):
    source = {"kind": "model", "endpoint": "A model", "votes": "sampled"}
    judges = [{"question": question, "votes": 3, "source": source} for question in QUESTIONS]
    campaign = make_campaign(researcher, config=make_config(judges=judges, chains=6, steps=1))
    first, second = campaign.judges.order_by("index")
    owner = uuid.uuid4()
    opened = Comparison.objects.filter(chain__campaign=campaign, verdict=None).values_list("pk", flat=True)
    taken = turns.work([], [(key, first.pk) for key in opened], owner)
    answers = [loop.run(answered(each)) for each in taken]
    assert turns.work(answers, [(key, second.pk) for key in opened], owner)
    assert_record_is_whole(campaign)


def test_a_defect_in_one_turn_costs_that_turn_alone(asker, make, slow, eventually, monkeypatch, caplog):
    cast, broken = transitions.cast_votes, []

    def cast_votes(comparison, ballots, seen):
        if comparison.pk == broken[0]:
            raise RuntimeError("a defect")
        return cast(comparison, ballots, seen)

    slow.may_go_on.clear()
    campaign = make(chains=6, steps=1)
    broken.append(wanted_of(campaign)[0][0])
    monkeypatch.setattr(transitions, "cast_votes", cast_votes)
    slow.may_go_on.set()
    with caplog.at_level(logging.ERROR):
        eventually(lambda: [comparison for comparison, _ in wanted_of(campaign)] == broken)
        eventually(lambda: "a turn failed" in caplog.text)
    assert not Vote.objects.filter(comparison=broken[0]).exists()
    # Once it is fixed, and the claim has run out, the sweep brings it back.
    monkeypatch.setattr(transitions, "cast_votes", cast)
    Turn.objects.update(until=timezone.now())
    tasks.judge_whatever_waits()
    eventually(lambda: finished(campaign))
    assert_record_is_whole(campaign)


@pytest.fixture
def away(monkeypatch) -> list[str]:
    """The connection is lost with all that has been done in it: three times as answers come, and as claims are."""
    work, refused = turns.work, []

    def away(answered, wanted, owner):
        what = "answers" if answered else "claims"
        if refused.count(what) < 3:
            refused.append(what)
            connections.close_all()
            raise OperationalError("the database is away")
        return work(answered, wanted, owner)

    monkeypatch.setattr(turns, "work", away)
    return refused


def test_an_answer_survives_a_database_that_is_away_for_a_moment(asker, make, slow, eventually, away):
    campaign = make(chains=2, steps=1)
    eventually(lambda: finished(campaign))
    assert away.count("answers") == 3
    assert_each_vote_was_asked_for_once(slow, campaign)


def test_where_a_minute_is_limited_no_turn_is_claimed_that_it_has_no_room_for(quiet, make, slow, eventually):
    campaign = make(chains=12, steps=2)
    Endpoint.objects.update(requests_per_minute=5)
    asker = Asker()
    try:
        for wanted in wanted_of(campaign):
            assert asker.offer(*wanted)
        eventually(lambda: len(slow.asked) >= 4 and not Turn.objects.exists())
    finally:
        asker.end()
    # Nor does one rest that was claimed in vain.
    assert not Turn.objects.exists()
    assert len(slow.asked) == Vote.objects.count() <= 5


def test_after_a_start_what_others_have_reserved_counts_as_sent_in_this_minute(quiet, make, slow, eventually):
    campaign = make(chains=12, steps=2)
    Endpoint.objects.update(requests_per_minute=6)
    wanted = wanted_of(campaign)
    # By a process that was killed.
    held = sum(len(taken.asking.slots) for taken in turns.work([], wanted[:2], uuid.uuid4()))
    asker = Asker()
    try:
        for each in wanted[2:]:
            assert asker.offer(*each)
        # It is guessed that a turn wants two votes: one request may be left.
        eventually(lambda: len(slow.asked) >= 6 - held - 1)
    finally:
        asker.end()
    assert len(slow.asked) <= 6 - held
