"""What stands between calls and their server: its circuit, its places, its limits a minute, and what is counted."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta

import numpy as np
import pytest
from django.db import OperationalError, connection
from django.utils import timezone

from prefmh_web.endpoints import judge_calls, limits
from prefmh_web.endpoints.calls import call, called
from prefmh_web.endpoints.client import LABEL_TOKENS
from prefmh_web.endpoints.errors import (
    AddressRefused,
    CircuitOpen,
    MinuteFull,
    RateLimited,
    Refused,
    Stopped,
    Unreachable,
)
from prefmh_web.endpoints.limits import FIRST_PAUSE_S, Circuit, request_limits_of
from prefmh_web.endpoints.models import Endpoint
from prefmh_web.endpoints.servers import ChatRequest, Dialect
from tests.endpoints.conftest import PAIR
from tests.support.models import Held, Script, status

# What the scripted server says that each reply took.
TOKENS_IN, TOKENS_OUT = 50, 2
DOWN = Unreachable("the server cannot be reached")


def ask(endpoint: Endpoint, votes: int = 1) -> judge_calls.Answers:
    return called(judge_calls.votes(endpoint, PAIR, [True] * votes, np.random.default_rng(1)))


class Clock:
    """Tells the seconds that a test says have passed."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


class TestCircuit:
    @pytest.fixture
    def clock(self) -> Clock:
        return Clock()

    @pytest.fixture
    def broken(self, clock: Clock) -> Circuit:
        """One that failures have opened."""
        circuit = Circuit(0, None, clock)
        for _ in range(limits.FAILURES_TO_OPEN):
            circuit.failed(DOWN, is_trial=False)
        return circuit

    @pytest.fixture
    def half_open(self, broken: Circuit, clock: Clock) -> Circuit:
        """One whose pause is over, and that lets one call try."""
        clock.now += FIRST_PAUSE_S
        assert broken.admit("it") is False
        return broken

    def test_half_open_lets_one_caller_try(self, half_open):
        with pytest.raises(CircuitOpen, match="cannot be reached"):
            half_open.admit("it")

    def test_each_failed_trial_doubles_the_pause_up_to_a_limit(self, half_open, clock):
        pauses = []
        for _ in range(8):
            half_open.failed(DOWN, is_trial=True)
            pauses.append(half_open.open_for)
            clock.now += half_open.open_for
            assert half_open.admit("it") is False
        assert pauses == [10, 20, 40, 80, 160, 300, 300, 300]

    @pytest.mark.parametrize(
        ("errors", "pause"),
        [
            # Hundreds are asked side by side, and a server that restarts fails all of them.
            ([DOWN] * 200, FIRST_PAUSE_S),
            ([Stopped("the campaign was paused")], FIRST_PAUSE_S),
            ([RateLimited("slow down", retry_after=60.0), RateLimited("slow down", retry_after=1.0)], 60),
        ],
        ids=["failures", "what we end ourselves", "a wait that is asked for"],
    )
    def test_what_was_under_way_lengthens_the_pause_only_where_a_wait_is_asked_for(self, broken, errors, pause):
        for error in errors:
            broken.failed(error, is_trial=False)
        assert broken.open_for == pause

    def test_an_answer_to_what_was_under_way_does_not_end_the_pause_and_the_trials_does(self, half_open):
        half_open.answered(is_trial=False)
        assert half_open.open_for is not None
        half_open.answered(is_trial=True)
        assert (half_open.failures, half_open.admit("it")) == (0, True)

    @pytest.mark.parametrize("error", [Stopped("the campaign was paused"), AddressRefused("not here")])
    def test_a_trial_that_sent_nothing_leaves_it_to_the_next_caller(self, half_open, error):
        half_open.failed(error, is_trial=True)
        assert half_open.admit("it") is False

    def test_a_server_that_refuses_the_request_has_answered(self, half_open):
        half_open.failed(Refused("the server answered 400"), is_trial=True)
        assert half_open.admit("it") is True

    def test_some_failures_in_a_row_open_it_and_nothing_is_sent(self, scripted, script: Script) -> None:
        script.faults.extend([status(500)] * 3)
        for _ in range(3):
            ask(scripted)
        votes = ask(scripted)
        assert isinstance(votes.failure, CircuitOpen)
        assert 0 < votes.failure.retry_after <= FIRST_PAUSE_S
        assert "500" in votes.failure.reason
        assert len(script.requests) == 3
        scripted.refresh_from_db()
        assert scripted.is_circuit_open
        assert "500" in scripted.last_error
        # Nor by a process that has just begun.
        limits.forget()
        assert isinstance(ask(scripted).failure, CircuitOpen)

    def test_it_closes_by_itself_when_the_server_recovers(self, scripted) -> None:
        rests_no_longer(scripted)
        assert ask(scripted).failure is None
        scripted.refresh_from_db()
        assert (scripted.failures, scripted.open_until) == (0, None)

    def test_the_trial_sends_one_request_at_a_time_and_stops_at_the_first_failure(self, scripted, script) -> None:
        rests_no_longer(scripted)
        script.faults.append(status(500))
        assert ask(scripted, votes=4).given == ()
        assert len(script.requests) == 1

    def test_a_server_that_asks_for_a_pause_gets_it_at_once(self, scripted, script: Script) -> None:
        script.faults.append(status(429, Retry_After="30"))
        assert isinstance(ask(scripted).failure, RateLimited)
        assert 25 < ask(scripted).failure.retry_after <= 30
        assert len(script.requests) == 1


def rests_no_longer(endpoint: Endpoint) -> None:
    """Let the pause of an endpoint that failed be over."""
    over = timezone.now() - timedelta(seconds=1)
    Endpoint.objects.filter(pk=endpoint.pk).update(failures=3, open_until=over, last_error=DOWN.reason)
    endpoint.refresh_from_db()


async def broken_job(client) -> None:
    raise RuntimeError("a fault of ours")


class TestPlaces:
    @pytest.fixture
    def held(self, script: Script) -> Iterator[Held]:
        script.answer = held = Held(script.answer)
        yield held
        held.may_go_on.set()

    @contextmanager
    def asked_beside(self, endpoint: Endpoint, votes: int) -> Iterator[Callable]:
        """Ask in another thread, as another caller in this process does; yield what waits for what it came to."""

        def asked() -> judge_calls.Answers:
            try:
                return ask(endpoint, votes)
            finally:
                connection.close()

        with ThreadPoolExecutor(1) as pool:
            yield pool.submit(asked).result

    def test_two_calls_at_once_share_the_places_of_their_server(
        self, transactional_db, scripted, held: Held, eventually
    ) -> None:
        scripted.concurrency = 3
        with self.asked_beside(scripted, 4) as first, self.asked_beside(scripted, 4) as second:
            eventually(lambda: held.now == 3)
            held.may_go_on.set()
            assert len(first().given) == len(second().given) == 4
        assert held.most == 3

    def test_an_error_gives_the_place_back(self, scripted) -> None:
        scripted.concurrency = 1
        with pytest.raises(RuntimeError, match="a fault of ours"):
            called(call(scripted, [broken_job]))
        assert ask(scripted).failure is None


class TestMinute:
    @pytest.fixture
    def impatient(self, monkeypatch) -> None:
        """Who would have to wait is refused."""
        monkeypatch.setattr(limits, "_PATIENCE_S", 0.0)

    def test_what_would_pass_the_limit_is_not_sent_and_is_no_failure_of_the_servers(
        self, scripted, script: Script, impatient
    ):
        scripted.requests_per_minute = 5
        votes = ask(scripted, 8)
        assert len(votes.given) == len(script.requests) == 5
        assert isinstance(votes.failure, MinuteFull)
        assert 0 < votes.failure.retry_after <= limits.COUNTS_FOR_S
        assert "5 requests a minute" in votes.failure.reason
        assert isinstance(ask(scripted).failure, MinuteFull)
        assert len(script.requests) == 5
        kept = Endpoint.objects.get()
        assert (kept.failures, kept.open_until, kept.last_error) == (0, None, "")

    def test_a_request_waits_until_the_minute_has_passed(self, scripted, monkeypatch):
        monkeypatch.setattr(limits, "COUNTS_FOR_S", 1)
        scripted.requests_per_minute = 2
        votes = ask(scripted, 5)
        assert (len(votes.given), votes.failure) == (5, None)

    def test_tokens_are_those_that_the_server_counted(self, scripted, script: Script, impatient):
        scripted.tokens_per_minute = 100_000
        ask(scripted, 4)
        guess = Dialect.VLLM.server.estimate(ChatRequest("tiny", PAIR.messages(True), LABEL_TOKENS))
        assert guess > TOKENS_IN + TOKENS_OUT
        scripted.tokens_per_minute = 4 * (TOKENS_IN + TOKENS_OUT) + guess
        assert ask(scripted).failure is None
        assert isinstance(ask(scripted).failure, MinuteFull)
        assert len(script.requests) == 5

    def test_what_a_process_that_has_ended_may_have_sent_counts(self, scripted, script: Script, impatient):
        scripted.requests_per_minute = 5
        request_limits_of(scripted).count_as_spent(3)
        assert len(ask(scripted, 5).given) == 2

    def test_a_turn_is_not_begun_where_the_minute_has_no_room_for_it(self, scripted):
        scripted.requests_per_minute = 5
        request_limits = request_limits_of(scripted)
        assert request_limits.has_minute(5, unsent=0)
        assert not request_limits.has_minute(3, unsent=3)
        # What could never be sent at once begins in an empty minute.
        assert request_limits.has_minute(9, unsent=0)
        ask(scripted)
        assert request_limits.has_minute(4, unsent=0)
        assert not request_limits.has_minute(5, unsent=0)


class TestUsage:
    def test_of_calls_that_are_counted_together_the_largest_stays_the_largest(self, scripted) -> None:
        with limits.tallied() as tally:
            ask(scripted)
            ask(scripted, 2)
        assert (tally.tokens_in, tally.tokens_out) == (3 * TOKENS_IN, 3 * TOKENS_OUT)
        assert (tally.max_tokens_in, tally.max_tokens_out) == (TOKENS_IN, TOKENS_OUT)

    @pytest.mark.parametrize("table", ["endpoints_usage", "endpoints_endpoint"])
    def test_what_the_database_did_not_take_is_written_once_when_it_does(self, scripted, script, table: str) -> None:
        def away(execute, sql, params, many, context):
            if sql.startswith("UPDATE") and table in sql:
                raise OperationalError("away")
            return execute(sql, params, many, context)

        script.faults.append(status(500))
        with connection.execute_wrapper(away), pytest.raises(OperationalError):
            ask(scripted)
        limits.flush()
        scripted.refresh_from_db()
        assert (scripted.totals.requests, scripted.failures) == (1, 1)
        limits.flush()
        assert scripted.totals.requests == 1

    def test_the_server_sees_nothing_of_this_machine(self, scripted, script: Script) -> None:
        ask(scripted)
        assert set(script.headers[0]) == {
            "Host", "Accept", "Accept-Encoding", "User-Agent", "Content-Type", "Content-Length"
        }  # fmt: skip
        assert script.headers[0]["User-Agent"] == "prefmh"
