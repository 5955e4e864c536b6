"""The circuit breaker, the slots and the counts: what all processes see."""

from datetime import timedelta

import httpx
import numpy as np
import pytest
from django.utils import timezone

from prefmh_web.endpoints import breaker, judge_calls, limits, slots
from prefmh_web.endpoints.calls import call
from prefmh_web.endpoints.errors import Busy, CircuitOpen, RateLimited, Stopped, Unreachable
from prefmh_web.endpoints.gates import ByTheRow, Kept
from prefmh_web.endpoints.models import Endpoint, Slot
from tests.endpoints.conftest import PAIR
from tests.support.models import Script, says, status


def ask(endpoint: Endpoint, votes: int = 1) -> judge_calls.Votes:
    return judge_calls.votes_by_sampling(endpoint, PAIR, [True] * votes, np.random.default_rng(1))


def rest_is_over(endpoint: Endpoint) -> None:
    Endpoint.objects.filter(pk=endpoint.pk).update(open_until=timezone.now() - timedelta(seconds=1))


def fail(endpoint: Endpoint, times: int) -> None:
    for _ in range(times):
        breaker.failed(endpoint, Unreachable("the server cannot be reached"))


def seconds_left(endpoint: Endpoint) -> float:
    endpoint.refresh_from_db()
    return (endpoint.open_until - timezone.now()).total_seconds()


class TestBreaker:
    def test_some_failures_in_a_row_open_it_and_nothing_is_sent(self, scripted, script: Script) -> None:
        script.faults.extend([status(500)] * 3)
        for _ in range(3):
            ask(scripted)
        votes = ask(scripted)
        assert isinstance(votes.failure, CircuitOpen)
        assert 0 < votes.failure.retry_after <= breaker.FIRST_PAUSE_S
        assert "500" in votes.failure.reason
        assert len(script.requests) == 3
        scripted.refresh_from_db()
        assert scripted.is_resting

    def test_an_answer_in_between_keeps_it_closed(self, scripted, script: Script) -> None:
        script.faults.extend([status(500), status(500), says("A"), status(500), status(500), says("A")])
        failures = [ask(scripted).failure is None for _ in range(6)]
        assert failures == [False, False, True, False, False, True]

    def test_it_closes_by_itself_when_the_server_recovers(self, scripted, script: Script) -> None:
        fail(scripted, 3)
        rest_is_over(scripted)
        assert ask(scripted).failure is None
        scripted.refresh_from_db()
        assert (scripted.failures, scripted.open_until) == (0, None)

    def test_half_open_lets_one_caller_try(self, scripted) -> None:
        fail(scripted, 3)
        rest_is_over(scripted)
        assert breaker.admit(scripted) is False
        with pytest.raises(CircuitOpen):
            breaker.admit(scripted)

    def test_the_trial_sends_one_request_at_a_time_and_stops_at_the_first_failure(self, scripted, script) -> None:
        fail(scripted, 3)
        rest_is_over(scripted)
        script.faults.append(status(500))
        assert ask(scripted, votes=4).cast == ()
        assert len(script.requests) == 1

    def test_each_failed_trial_doubles_the_pause_up_to_a_limit(self, scripted, monkeypatch) -> None:
        monkeypatch.setattr(breaker, "LONGEST_PAUSE_S", 12.0)
        fail(scripted, 3)
        pauses = [seconds_left(scripted)]
        for _ in range(3):
            rest_is_over(scripted)
            assert breaker.admit(scripted) is False
            breaker.failed(scripted, Unreachable("the server cannot be reached"), is_trial=True)
            pauses.append(seconds_left(scripted))
        assert pauses == pytest.approx([5, 10, 12, 12], abs=1)

    def test_failures_of_what_was_under_way_lengthen_no_pause(self, scripted) -> None:
        # Hundreds are asked side by side, and a server that restarts fails all of them.
        fail(scripted, 200)
        assert 0 < seconds_left(scripted) <= breaker.FIRST_PAUSE_S

    @pytest.mark.parametrize("gate_of", [ByTheRow, Kept])
    def test_an_answer_to_what_was_under_way_does_not_end_the_pause_and_the_trials_does(self, scripted, gate_of):
        gate = gate_of(scripted)
        fail(scripted, 3)
        gate.passed((), 0, None, was_usual=True)
        assert 0 < seconds_left(scripted) <= breaker.FIRST_PAUSE_S
        rest_is_over(scripted)
        assert gate.admit() is False
        gate.passed((), 0, None, was_usual=False)
        scripted.refresh_from_db()
        assert (scripted.failures, scripted.open_until) == (0, None)

    def test_what_we_end_ourselves_does_not_end_the_pause(self, scripted):
        fail(scripted, 3)
        breaker.failed(scripted, Stopped("the campaign was paused"))
        assert 0 < seconds_left(scripted) <= breaker.FIRST_PAUSE_S

    def test_a_server_that_asks_for_a_longer_pause_gets_it_while_its_circuit_is_open(self, scripted) -> None:
        fail(scripted, 3)
        breaker.failed(scripted, RateLimited("slow down", retry_after=60.0))
        assert 55 < seconds_left(scripted) <= 60
        breaker.failed(scripted, RateLimited("slow down", retry_after=1.0))
        assert 55 < seconds_left(scripted) <= 60

    def test_a_server_that_asks_for_a_pause_gets_it_at_once(self, scripted, script: Script) -> None:
        script.faults.append(status(429, Retry_After="30"))
        assert isinstance(ask(scripted).failure, RateLimited)
        assert 25 < ask(scripted).failure.retry_after <= 30
        assert len(script.requests) == 1


def another_process() -> None:
    """Forget what this process knows in memory alone: how many requests it has under way."""
    limits.forget()


class TestSlots:
    def test_no_more_requests_than_the_endpoint_may_have(self, scripted) -> None:
        scripted.concurrency = 3
        with slots.held(scripted, 2) as first, slots.held(scripted, 2) as second:
            assert (len(first), len(second)) == (2, 1)
            with pytest.raises(Busy), slots.held(scripted, 1, patience_s=0):
                pass
        with slots.held(scripted, 5) as again:
            assert len(again) == 3

    def test_a_slot_whose_holder_died_frees_itself(self, scripted) -> None:
        scripted.concurrency = 1
        gone = slots.held(scripted, 1)
        gone.__enter__()
        Slot.objects.update(until=timezone.now() - timedelta(seconds=1))
        another_process()
        with slots.held(scripted, 1, patience_s=0) as granted:
            assert len(granted) == 1
            # The dead one comes back to life: it gives back nothing that is not its own.
            gone.__exit__(None, None, None)
            with pytest.raises(Busy), slots.held(scripted, 1, patience_s=0):
                pass

    def test_a_holder_that_works_longer_keeps_its_slot(self, scripted) -> None:
        scripted.concurrency = 1
        with slots.held(scripted, 1) as holder:
            soon = timezone.now() + timedelta(seconds=1)
            Slot.objects.update(until=soon)
            holder._until = soon
            holder.renew()
            assert Slot.objects.get().until > soon + timedelta(seconds=slots.LEASE_S / 2)
        with slots.held(scripted, 1, patience_s=0):
            pass

    def test_work_ahead_of_time_leaves_room_for_what_somebody_waits_for(self, scripted) -> None:
        scripted.concurrency = 8
        with slots.held(scripted, 8, is_ahead=True) as ahead:
            assert (len(ahead), ahead.grow(1)) == (6, 0)
            with slots.held(scripted, 8, patience_s=0) as urgent:
                assert len(urgent) == 2
                with pytest.raises(Busy), slots.held(scripted, 1, patience_s=0, is_ahead=True):
                    pass
        # A server that takes one request at a time takes it for whoever comes.
        scripted.concurrency = 1
        with slots.held(scripted, 1, is_ahead=True) as only:
            assert len(only) == 1

    def test_an_error_gives_the_slots_back(self, scripted) -> None:
        def broken(client):
            raise RuntimeError("a fault of ours")

        with pytest.raises(RuntimeError, match="a fault of ours"):
            call(scripted, [broken])
        assert not Slot.objects.filter(until__gt=timezone.now()).exists()


class TestUsage:
    def test_requests_tokens_time_and_cost_are_summed(self, scripted, script: Script) -> None:
        scripted.input_price, scripted.output_price = 3.0, 15.0
        script.faults.append(says("neither"))
        ask(scripted, votes=4)
        script.faults.append(status(500))
        ask(scripted)
        totals = scripted.totals()
        assert (totals["requests"], totals["answered"], totals["server_error"], totals["unparsable"]) == (6, 5, 1, 1)
        # The scripted server reads 50 tokens and writes 2 each time.
        assert (totals["tokens_in"], totals["tokens_out"]) == (250, 10)
        assert totals["cost"] == pytest.approx((250 * 3 + 10 * 15) / 1e6)
        assert totals["seconds"] > 0
        assert scripted.usage.count() == 1

    def test_the_server_sees_nothing_of_this_machine(self, scripted, script: Script) -> None:
        ask(scripted)
        assert set(script.headers[0]) == {
            "Host", "Accept", "Accept-Encoding", "Connection", "User-Agent", "Content-Type", "Content-Length"
        }  # fmt: skip
        assert httpx.__version__ not in script.headers[0]["User-Agent"]
