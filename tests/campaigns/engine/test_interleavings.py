"""Votes, skips, expiries, removals, pauses and models at once: a scheduler lets one statement pass at a time.

Each actor stops before every statement until it is its turn. One that waits for a lock in the database is left alone,
and the others go on. Whatever the order: no vote is lost, doubled or in vain, and every step is as its votes say.

On a pair that people and models judge, the sides of the one do not follow from those of the other.
"""

import dataclasses
import threading
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import pytest
from django.conf import settings
from django.db import connection
from django.db.models import Exists, F, OuterRef
from django.utils import timezone

from prefmh_web.campaigns.engine import leases, open_comparisons, sql, transitions
from prefmh_web.campaigns.frozen import started_campaign
from prefmh_web.campaigns.lifecycle import access, changes, pause, resume
from prefmh_web.campaigns.model_judges import asker, turns
from prefmh_web.campaigns.models import Campaign, Comparison, Lease, Side, Vote, Voter
from prefmh_web.transport import publishing
from prefmh_web.voting.responses import Response
from prefmh_web.voting.screens import screen_after
from tests.support.campaigns import make_campaign, make_config, registered
from tests.support.models import SCORES, KnownJudge, scripted_server
from tests.support.process import wait_until_idle
from tests.support.records import assert_record_is_whole

pytestmark = pytest.mark.skipif(settings.EMBEDDED, reason="SQLite has one lock; see tests/support/servers.py")

PEOPLE, ROUNDS = 6, 12
# Seeds of a control, which ends with the first one that fails. The rarest was seen in one of some 90 rounds, so that
# 1,440 pass it by with a probability of about e^-16.
UNTIL_IT_SHOWS = range(1, 121)
# Who has not come to the next statement by then waits for a lock.
A_STATEMENT_S = 0.03
PATIENCE_S = 60
JUDGE_TASK = "prefmh_web.tasks.judge"
DOINGS = ("vote", "skip", "expire", "remove")


class Actor(threading.Thread):
    """Something that is done to the record, one statement at a time."""

    def __init__(self, work: Callable[[], object], changed: threading.Condition) -> None:
        super().__init__(daemon=True)
        self._work, self._changed = work, changed
        self.stands = self.is_done = self._may_go = False
        self.error: Exception | None = None

    def run(self) -> None:
        try:
            with connection.execute_wrapper(self._stop_before):
                self._work()
        except Exception as error:  # noqa: BLE001 - told by the test
            self.error = error
        finally:
            connection.close()
            with self._changed:
                self.is_done = True
                self._changed.notify_all()

    def go_on(self) -> None:
        """Let one statement pass; wait until it is done, or waits for a lock."""
        self.stands, self._may_go = False, True
        self._changed.notify_all()
        self._changed.wait_for(lambda: self.stands or self.is_done, A_STATEMENT_S)

    def _stop_before(self, execute, sql, params, many, context) -> object:
        with self._changed:
            self.stands = True
            self._changed.notify_all()
            assert self._changed.wait_for(lambda: self._may_go, PATIENCE_S), "the scheduler has gone"
            self._may_go = False
        return execute(sql, params, many, context)


def interleave(rng: np.random.Generator, works: list[Callable[[], object]]) -> list[Exception]:
    """Do all of them at once, a statement of this and then one of that; return what was raised."""
    changed = threading.Condition()
    actors = [Actor(work, changed) for work in works]
    with changed:
        for actor in actors:
            actor.start()
        while not all(actor.is_done for actor in actors):
            standing = [actor for actor in actors if actor.stands]
            if standing:
                standing[rng.integers(len(standing))].go_on()
            else:
                # All wait for locks, or have just ended.
                changed.wait(A_STATEMENT_S)
    return [actor.error for actor in actors if actor.error]


@pytest.fixture
def campaign(researcher) -> Campaign:
    judges = [{"question": "Which is darker?", "votes": 3}, {"question": "Which is better?", "votes": 1}]
    return make_campaign(researcher, config=make_config(judges=judges, chains=3, steps=500))


@pytest.fixture
def with_one_judge(researcher) -> Campaign:
    """A campaign whose leases are given by what was seen before the lock, if that still holds."""
    judges = [{"question": "Which is darker?", "votes": 4}]
    return make_campaign(researcher, config=make_config(judges=judges, chains=3, steps=500))


@pytest.fixture
def with_a_model(researcher, settings, monkeypatch) -> Iterator[Campaign]:
    """A campaign in which a model judges beside people. No hint of its turns arrives: the scheduler takes them."""
    with scripted_server(KnownJudge(SCORES)) as script:
        registered(researcher, script.url, settings, timeout_s=20)
        source = {"kind": "model", "endpoint": "A model", "temperature": 0.7, "votes": "sampled"}
        judges = [
            {"question": "Which is darker?", "votes": 3},
            {"question": "Which is better?", "votes": 2, "source": source},
        ]
        campaign = make_campaign(researcher, config=make_config(judges=judges, chains=3, steps=500))
        publish = publishing.publish
        monkeypatch.setattr(publishing, "publish", lambda hint: hint.task == JUDGE_TASK or publish(hint))
        yield campaign
        wait_until_idle()


def run(campaign: Campaign, seed: int) -> Iterator[tuple[list[Exception], set, set]]:
    """Let things happen at once, again and again; yield what was raised, which votes were cast, and which leases were
    ended by somebody else meanwhile.
    """
    rng = np.random.default_rng(seed)
    for _ in range(ROUNDS):
        # The pairs of those who were there before are free again.
        Lease.objects.filter(ended_at__isnull=True).update(expires_at=timezone.now())
        leases.expire()
        wait_until_idle()
        voted, ended, works = set(), set(), []
        for person in [Voter.objects.create(campaign=campaign) for _ in range(PEOPLE)]:
            if lease := leases.take(person):
                doing = str(rng.choice(DOINGS, p=(0.6, 0.2, 0.1, 0.1)))
                works += _works(doing, person, lease, Side.FIRST if rng.random() < 0.5 else Side.SECOND)
                (voted if doing == "vote" else ended).add(lease.key)
        # The first vote's lease runs out while it is on its way.
        if voted and rng.random() < 0.5:
            late = min(voted)
            ended.add(late)
            works += _works("expire", None, Lease.objects.get(key=late), Side.FIRST)
        # Some hints come twice.
        for turn in list(turns.waiting()):
            works += [partial(asker.take, *turn)] * int(rng.integers(1, 3))
        if rng.random() < 0.3:
            works.append(lambda: pause(Campaign.objects.get(pk=campaign.pk)))
        errors = interleave(rng, works)
        campaign.refresh_from_db()
        if campaign.status == Campaign.Status.PAUSED:
            resume(campaign)
        # What went on with the campaign may decide a step that needs no vote, while its record is looked at.
        wait_until_idle()
        yield errors, voted, ended


def _works(doing: str, person: Voter | None, lease: Lease, side: Side) -> list[Callable[[], object]]:
    if doing == "expire":
        Lease.objects.filter(key=lease.key).update(expires_at=timezone.now())
        return [leases.expire]
    if doing == "remove":
        return [lambda: access.remove(person)]
    return [lambda: screen_after(Response(lease.key, side if doing == "vote" else None, 900), person)]


def assert_all_is_well(campaign: Campaign, errors: list[Exception], voted: set, ended: set) -> None:
    assert not errors
    assert_record_is_whole(campaign)
    assert voted == set(Vote.objects.filter(key__in=voted).values_list("key", flat=True))
    in_vain = Vote.objects.filter(number__isnull=True).exclude(key__in=ended)
    assert not in_vain.filter(key__in=voted).exists()
    assert not in_vain.filter(voter=None).exists()
    started = started_campaign(campaign)
    for comparison in Comparison.objects.filter(verdict__isnull=True, chain__campaign=campaign):
        opened = open_comparisons.on(comparison.pk, campaign)
        assert all(opened.asked(judge) <= judge.max_votes for judge in started.judges)
        # Where models judge too, room comes and goes with their turns, and is not noted.
        assert comparison.is_askable == (started.uses_models or opened.has_room_for_somebody())


def assert_nothing_goes_wrong(campaign: Campaign, *seeds: int) -> None:
    for seed in seeds:
        for errors, voted, ended in run(campaign, seed):
            assert_all_is_well(campaign, errors, voted, ended)


def test_nothing_is_lost_doubled_or_in_vain_in_any_order(campaign):
    assert_nothing_goes_wrong(campaign, 1, 2)
    assert Comparison.objects.filter(verdict__isnull=False, chain__campaign=campaign).count() > ROUNDS


def test_nor_where_what_was_seen_before_a_lock_decides(with_one_judge):
    assert_nothing_goes_wrong(with_one_judge, 1, 2)
    assert Comparison.objects.filter(verdict__isnull=False, chain__campaign=with_one_judge).count() > ROUNDS


def test_nor_where_a_model_judges_beside_people(with_a_model):
    assert_nothing_goes_wrong(with_a_model, 1, 2)
    assert Comparison.objects.filter(verdict__isnull=False, chain__campaign=with_a_model).count() > ROUNDS
    assert Vote.objects.filter(voter=None).count() > ROUNDS


def assert_extensions_lose_no_chain(researcher) -> None:
    """Extend a campaign by one step, again and again, while the last steps of its chains are decided."""
    judges = [{"question": "Which is darker?", "votes": 1}]
    campaign = make_campaign(researcher, config=make_config(judges=judges, chains=3, steps=1))
    rng = np.random.default_rng(1)
    for steps in range(2, 2 + ROUNDS):
        wait_until_idle()
        found = [(person, leases.take(person)) for person in map(_newcomer, [campaign] * 3)]
        works = [work for person, lease in found if lease for work in _works("vote", person, lease, Side.FIRST)]
        # What the verdict reads comes before the extension, and would keep it apart from the votes.
        works.append(lambda: changes.extend(Campaign.objects.get(pk=campaign.pk), 1, verdict="cannot be judged"))
        assert not interleave(rng, works)
        campaign.refresh_from_db()
        assert campaign.config_data["steps"] == steps
        assert {chain.length for chain in campaign.chains.all()} == {steps}
        # Paused, where it had finished before it was extended.
        if campaign.status == Campaign.Status.PAUSED:
            resume(campaign)
        wait_until_idle()
        is_open = Comparison.objects.filter(chain=OuterRef("pk"), verdict__isnull=True)
        assert not campaign.chains.filter(~Exists(is_open), step__lt=F("length")).exists()
        assert_record_is_whole(campaign)


def test_nor_where_a_campaign_is_extended_while_its_last_steps_are_decided(researcher):
    assert_extensions_lose_no_chain(researcher)


def test_without_a_second_look_at_the_length_it_shows(researcher, monkeypatch):
    monkeypatch.setattr(transitions, "_end", lambda chain: transitions.finish_if_done(chain.campaign))
    with pytest.raises(AssertionError):
        assert_extensions_lose_no_chain(researcher)


def _newcomer(campaign: Campaign) -> Voter:
    return Voter.objects.create(campaign=campaign)


def test_without_the_lock_of_models_turns_it_shows(with_a_model, monkeypatch):
    monkeypatch.setattr(sql, "COMPARISONS", dataclasses.replace(sql.COMPARISONS, locks=""))
    with pytest.raises(AssertionError):
        assert_nothing_goes_wrong(with_a_model, *UNTIL_IT_SHOWS)


def test_without_asking_whether_it_still_holds_it_shows(with_one_judge, monkeypatch):
    anything = sql.Condition("TRUE", [])
    monkeypatch.setattr(open_comparisons.OpenComparison, "is_unchanged", lambda _: anything)
    with pytest.raises(AssertionError):
        assert_nothing_goes_wrong(with_one_judge, *UNTIL_IT_SHOWS)


# What each statement still locks: nothing, all but the comparison, all but the lease. The person is tested in
# test_transactions.
@pytest.mark.parametrize(
    ("name", "locks"),
    [
        ("PAIR", ""),
        ("COMPARISON_OF_LEASE", " FOR NO KEY UPDATE OF l, a"),
        ("COMPARISON_OF_LEASE", " FOR NO KEY UPDATE OF c, a"),
    ],
)
def test_without_a_lock_it_shows(campaign, monkeypatch, name, locks):
    monkeypatch.setattr(sql, name, dataclasses.replace(getattr(sql, name), locks=locks))
    with pytest.raises(AssertionError):
        assert_nothing_goes_wrong(campaign, *UNTIL_IT_SHOWS)
