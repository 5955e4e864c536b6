"""What happens when two transactions want the same rows: one passes by, gives way, or is tried again."""

import dataclasses
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress

import psycopg
import pytest
from django.conf import settings
from django.db import OperationalError, connection, transaction
from django.utils import timezone

from prefmh_web.campaigns import lifecycle
from prefmh_web.campaigns.engine import leases, sql, transitions
from prefmh_web.campaigns.engine.locks import ATTEMPTS, lock_caps, lock_people, retried_after_conflicts
from prefmh_web.campaigns.engine.open_comparisons import wanted_by
from prefmh_web.campaigns.lifecycle import status
from prefmh_web.campaigns.models import Comparison, Lease, Side, Vote, Voter
from tests.support.campaigns import make_campaign, make_config
from tests.support.process import on_own_connection

row_locks = pytest.mark.skipif(settings.EMBEDDED, reason="SQLite has one lock; see tests/support/servers.py")


def conflict() -> OperationalError:
    error = OperationalError("could not serialize access due to concurrent update")
    error.__cause__ = psycopg.errors.SerializationFailure()
    return error


@pytest.mark.parametrize("failures", [0, 1, ATTEMPTS - 1])
def test_a_transaction_that_gave_way_is_tried_again(transactional_db, failures):
    errors = [conflict() for _ in range(failures)]

    @retried_after_conflicts
    def work() -> str:
        if errors:
            raise errors.pop()
        return "done"

    assert work() == "done"


@pytest.mark.parametrize("error", [conflict(), OperationalError("the server closed the connection")])
def test_what_keeps_failing_or_is_no_conflict_is_raised(transactional_db, error):
    calls = []

    @retried_after_conflicts
    def work() -> None:
        calls.append(1)
        raise error

    with pytest.raises(OperationalError):
        work()
    assert len(calls) == (ATTEMPTS if error.__cause__ else 1)


def test_inside_a_larger_transaction_nothing_is_tried_again(transactional_db):
    calls = []

    @retried_after_conflicts
    def work() -> None:
        calls.append(1)
        raise conflict()

    with pytest.raises(OperationalError), transaction.atomic():
        work()
    assert len(calls) == 1


@row_locks
def test_a_real_deadlock_ends_with_both_done(campaign):
    first, second = Voter.objects.create(campaign=campaign), Voter.objects.create(campaign=campaign)
    both_hold_one = threading.Barrier(2)
    attempts = []

    @retried_after_conflicts
    def wake(one: Voter, other: Voter) -> None:
        with transaction.atomic():
            Voter.objects.filter(pk=one.pk).update(resting=True)
            attempts.append(1)
            if len(attempts) <= 2:
                both_hold_one.wait(20)
            Voter.objects.filter(pk=other.pk).update(resting=True)

    with ThreadPoolExecutor() as pool:
        wait([pool.submit(on_own_connection(wake), *pair) for pair in ((first, second), (second, first))], 30)
    # They may meet again.
    assert len(attempts) >= 3
    assert Voter.objects.filter(resting=True).count() == 2


@row_locks
def test_a_campaign_is_deleted_though_somebody_who_votes_may_finish_it(campaign):
    person = Voter.objects.create(campaign=campaign)
    lifecycle.pause(campaign)
    with ThreadPoolExecutor() as pool:
        # As the last vote does: it holds its person, and then asks for the campaign.
        with suppress(OperationalError), transaction.atomic():
            Voter.objects.select_for_update(no_key=True).get(pk=person.pk)
            deleted = pool.submit(on_own_connection(status.request_deletion), campaign, campaign.name)
            assert_waits(deleted)
            transitions.finish_if_done(campaign)
        deleted.result(20)
    assert status.being_deleted().exists()


@row_locks
def test_a_comparison_that_somebody_holds_is_passed_by(campaign):
    held, _ = next(wanted_by(Voter.objects.create(campaign=campaign)))
    with holding(held):
        lease = leases.take(Voter.objects.create(campaign=campaign))
    assert lease.comparison_id != held.pk


@row_locks
def test_the_only_comparison_is_waited_for(researcher, idle_tasks):
    campaign = make_campaign(researcher, config=make_config(chains=1))
    [only] = Comparison.objects.filter(verdict=None)
    voter = Voter.objects.create(campaign=campaign)
    with ThreadPoolExecutor() as pool:
        with holding(only):
            found = pool.submit(on_own_connection(leases.take), voter)
            assert_waits(found)
            assert not Lease.objects.exists()
        assert found.result(20).comparison_id == only.pk


def vote_while_they_are_removed(person: Voter) -> None:
    """Let a vote wait for its comparison until its person has been removed."""
    lease = leases.take(person)

    with ThreadPoolExecutor() as pool, suppress(Comparison.DoesNotExist):
        with holding(lease.comparison):
            vote = pool.submit(on_own_connection(leases.answer), lease.key, person, Side.FIRST, 900)
            assert_waits(vote)
            Voter.objects.filter(pk=person.pk).update(removed_at=timezone.now())
        vote.result(20)


def assert_waits(work: Future) -> None:
    with pytest.raises(TimeoutError):
        work.result(0.5)


@row_locks
def test_a_vote_that_had_to_wait_sees_that_its_person_was_removed(campaign):
    vote_while_they_are_removed(Voter.objects.create(campaign=campaign))
    assert not Vote.objects.exists()


@row_locks
def test_without_the_lock_of_the_person_it_does_not(campaign, monkeypatch):
    of_two = dataclasses.replace(sql.COMPARISON_OF_LEASE, locks=" FOR NO KEY UPDATE OF c, l")
    monkeypatch.setattr(sql, "COMPARISON_OF_LEASE", of_two)
    vote_while_they_are_removed(Voter.objects.create(campaign=campaign))
    assert Vote.objects.exists()


@row_locks
@pytest.mark.parametrize("lock", [lock_caps, lock_people])
def test_who_takes_a_lock_that_is_held_waits_for_its_end(transactional_db, lock):
    taken = on_own_connection(transaction.atomic(lock))
    with ThreadPoolExecutor(2) as pool:
        with transaction.atomic():
            lock(7)
            pool.submit(taken, 8).result(20)
            other = pool.submit(taken, 7)
            assert_waits(other)
        other.result(20)


@contextmanager
def holding(comparison: Comparison) -> Iterator[None]:
    """Hold a comparison's row in another session."""
    here = connection.settings_dict
    where = {"host": here["HOST"], "port": here["PORT"], "user": here["USER"], "password": here["PASSWORD"]}
    with psycopg.connect(dbname=here["NAME"], **where) as other:
        other.execute("SELECT 1 FROM campaigns_comparison WHERE id = %s FOR NO KEY UPDATE", [comparison.pk])
        yield
