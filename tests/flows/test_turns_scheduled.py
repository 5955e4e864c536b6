"""Turns in one process: as many as the endpoint serves, campaigns in turn, none lost or taken twice."""

import threading
import time
from collections.abc import Callable, Iterator

import pytest

import sampler
from prefmh_web.campaigns.model_judges.scheduling import Scheduler
from prefmh_web.campaigns.models import Campaign, Vote
from prefmh_web.endpoints.gates import Gates
from prefmh_web.endpoints.models import Usage
from prefmh_web.transport import publishing
from tests.support.campaigns import TEXTS, assert_record_is_whole, make_campaign, make_config, registered
from tests.support.models import KnownJudge, Script, is_vote, scripted_server

JUDGE_TASK = "prefmh_web.campaigns.tasks.judge"
QUESTIONS = ("Which is darker?", "Which is calmer?")
AT_ONCE = 4


class Slow:
    """Answers votes after a while, and remembers which question each was about and how many there were at once."""

    def __init__(self) -> None:
        scores = {line.rsplit(",", 1)[0]: place / 4 for place, line in enumerate(TEXTS.splitlines()[1:])}
        self._judge, self._lock = KnownJudge(scores), threading.Lock()
        self.asked: list[str] = []
        self.most = self._now = 0

    def __call__(self, body: dict) -> dict:
        if not is_vote(body):
            return self._judge(body)
        with self._lock:
            self.asked += [question for question in QUESTIONS if question in str(body["messages"])]
            self._now += 1
            self.most = max(self.most, self._now)
        time.sleep(0.05)
        with self._lock:
            self._now -= 1
        return self._judge(body)


@pytest.fixture
def slow() -> Slow:
    return Slow()


@pytest.fixture
def script(slow, settings, researcher) -> Iterator[Script]:
    with scripted_server(slow) as script:
        registered(researcher, script.url, settings, concurrency=AT_ONCE)
        yield script


@pytest.fixture
def scheduler(script, monkeypatch) -> Iterator[Scheduler]:
    """One whose turns bring their own successors; nobody else takes any."""
    gates = Gates()
    scheduler = Scheduler(16, gates)
    publish = publishing.publish
    monkeypatch.setattr(
        publishing,
        "publish",
        lambda hint: scheduler.offer(*hint.arguments) if hint.task == JUDGE_TASK else publish(hint),
    )
    yield scheduler
    scheduler.end()
    gates.end()


@pytest.fixture
def make(researcher, script) -> Callable[..., Campaign]:
    def make(question: str, **changes) -> Campaign:
        source = {"kind": "model", "endpoint": "A model", "votes": "sampled"}
        config = make_config(judges=[{"question": question, "votes": 2, "source": source}], **changes)
        return make_campaign(researcher, config=sampler.parse_config(config).model_dump(mode="json"))

    return make


def finished(*campaigns: Campaign) -> bool:
    return (
        not Campaign.objects.filter(pk__in=[campaign.pk for campaign in campaigns]).exclude(status="finished").exists()
    )


def test_campaigns_are_finished_within_the_endpoints_limit_and_each_vote_is_asked_for_once(
    scheduler, make, slow, script, eventually
):
    campaign = make(QUESTIONS[0], chains=8, steps=4)
    eventually(lambda: finished(campaign), 60)
    votes = Vote.objects.filter(judge__campaign=campaign)
    assert 1 < slow.most <= AT_ONCE
    assert len(slow.asked) == votes.count() == votes.values("comparison", "slot").distinct().count()
    assert_record_is_whole(campaign)
    # What was counted in memory is written.
    eventually(lambda: Usage.objects.get().answered >= len(slow.asked))


def test_a_campaign_that_comes_later_does_not_wait_for_all_turns_of_the_one_before(scheduler, make, slow, eventually):
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
