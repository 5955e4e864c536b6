"""Turns of an endpoint with a limit a minute: they wait in memory, without a thread or a place, campaigns in turn."""

from __future__ import annotations

from prefmh_web.campaigns.model_judges import turns
from prefmh_web.campaigns.model_judges.scheduling import Scheduler
from prefmh_web.campaigns.models import Campaign, Turn, Vote
from prefmh_web.endpoints import calls
from prefmh_web.endpoints.limits import limit_of
from prefmh_web.endpoints.models import Endpoint, MinuteUse
from prefmh_web.transport import publishing
from tests.endpoints.test_limits_a_minute import a_minute_passes
from tests.flows.test_turns_scheduled import JUDGE_TASK, QUESTIONS, make, script, slow
from tests.support.campaigns import assert_record_is_whole

__all__ = ["make", "script", "slow"]

LIMIT = 8


def test_a_full_minute_holds_nothing_and_campaigns_share_the_next_one(
    make, slow, script, monkeypatch, eventually, idle_tasks
):
    publish = publishing.publish
    monkeypatch.setattr(publishing, "publish", lambda hint: hint.task == JUDGE_TASK or publish(hint))
    campaigns = [make(question, chains=10, steps=50) for question in QUESTIONS]
    idle_tasks()
    waiting = list(turns.waiting())
    slow.asked.clear()
    Endpoint.objects.update(requests_a_minute=LIMIT)
    monkeypatch.setattr(calls, "_gates", None)
    gates = calls.many_at_once()
    scheduler = Scheduler(16, gates)
    try:
        for turn in waiting:
            assert scheduler.offer(*turn)
        # The last one may be too few for a whole turn.
        eventually(lambda: len(slow.asked) >= LIMIT - 1)
        eventually(lambda: not scheduler._under_way)
        assert len(slow.asked) <= LIMIT
        assert not Turn.objects.filter(asked__gt=0).exists()
        a_minute_passes()
        eventually(lambda: len(slow.asked) >= 2 * LIMIT - 2)
        eventually(lambda: not scheduler._under_way)
    finally:
        Campaign.objects.update(status="paused")
        scheduler.end()
        gates.end()
    assert limit_of(Endpoint.objects.get()).under_way == 0
    # Half and half, one turn of two votes more or less.
    assert all(abs(slow.asked.count(question) - LIMIT) <= 2 for question in QUESTIONS)
    assert Vote.objects.count() == len(slow.asked) <= 2 * LIMIT
    # What was set aside for the next turn has gone back.
    assert sum(entry[1] for entry in MinuteUse.objects.get().spent) <= 2 * LIMIT
    for campaign in campaigns:
        assert_record_is_whole(campaign)
