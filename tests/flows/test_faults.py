"""What may break while people vote on several processes. After each fault no acknowledged vote is lost; after all of
them the records are whole and replay.

Everything is shared: one installation, one campaign, and a crowd that votes on it all the time. Each fault leaves the
installation running for the next one. A process that ends fails the test, unless the fault kills it or says that it
may end.
"""

import contextlib
import resource
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import httpx
import numpy as np
import pytest
from celery import Celery
from django.core.files.uploadedfile import SimpleUploadedFile

from tests.console.test_pages import form
from tests.support.campaigns import AnyScore, CarefulVoter
from tests.support.installations import (
    Crowd,
    Installation,
    Process,
    cookies_after_joining,
    hurried,
    is_ready,
    open_socket,
    send,
    wait_for,
)
from tests.support.models import port_from
from tests.voting.test_socket import lease_in, recv_until

JUDGES = [{"question": "Which is darker?", "votes": 3}, {"question": "Which is better?", "votes": 2}]
PEOPLE = 6
# Decided steps that show that a campaign goes on.
GOES_ON = 5


@dataclass
class Busy:
    """The installation with a campaign on which people vote, and the campaigns that faults have struck beside it."""

    installation: Installation
    campaign: int
    crowd: Crowd
    quiet: int
    contest: tuple[int, str]
    struck: set[int] = field(default_factory=set)

    def decided(self) -> int:
        found = self.installation.query("SELECT sum(step) FROM campaigns_chain WHERE campaign_id = %s", self.campaign)
        return found[0][0]


@pytest.fixture(scope="module")
def busy(installation) -> Iterator[Busy]:
    [(campaign, path)] = installation.make_campaigns({"judges": JUDGES, "chains": 6, "steps": 10_000})
    # One chain that waits for nobody but two certain people, and one campaign that has not started.
    one = {"chains": 1, "steps": 10_000, "judges": [{"question": "Which?", "votes": 1}]}
    [contest] = installation.make_campaigns(one)
    [(quiet, _)] = installation.make_campaigns({"chains": 1, "steps": 50}, start=False)
    crowd = Crowd(
        [
            CarefulVoter(installation.urls[seed % 2] + path, AnyScore(), np.random.default_rng(seed), hurried)
            for seed in range(PEOPLE)
        ]
    )
    crowd.start()
    busy = Busy(installation, campaign, crowd, quiet, contest)
    wait_for(lambda: busy.decided() > GOES_ON, "the first steps")
    yield busy
    crowd.stop()


@pytest.fixture(autouse=True)
def nothing_ends_by_itself(busy) -> Iterator[None]:
    """Before a fault and after it all processes run on, those too that the fault itself may end."""
    busy.installation.look_after()
    yield
    busy.installation.look_after()


@pytest.fixture
def survives(busy) -> Callable[..., None]:
    """Return a call that waits until voting has gone on since the fault, and no acknowledged vote is lost; given the
    processes that the fault may end, which are then started again.
    """

    def look(*may_end: Process) -> None:
        before, acknowledged = busy.decided(), set(busy.crowd.acknowledged)

        def goes_on() -> bool:
            busy.installation.look_after(*may_end)
            return busy.decided() >= before + GOES_ON

        wait_for(goes_on, "steps after the fault")
        stored = busy.installation.vote_keys(busy.campaign)
        assert acknowledged <= set(stored)
        assert len(stored) == len(set(stored))

    return look


def test_a_killed_web_process(busy, survives):
    web = busy.installation.webs[0]
    web.kill()
    web.start()
    wait_for(lambda: is_ready(busy.installation.urls[0]), "the web process ready again")
    survives()


def test_a_worker_killed_in_the_middle_of_a_proposal(busy, survives):
    installation, worker = busy.installation, busy.installation.worker
    [(campaign, _)] = installation.make_campaigns({"chains": 1, "steps": 50}, start=False)
    worker.send(signal.SIGSTOP)
    try:
        installation.call("start", campaign)
        [(chain,)] = installation.query("SELECT id FROM campaigns_chain WHERE campaign_id = %s", campaign)
        with installation.holding("campaigns_chain", "id = %s", chain):
            # A lock on the chain holds the worker where it has drawn a proposal and not yet stored it.
            worker.send(signal.SIGCONT)
            proposal = '%FROM "campaigns_chain"%FOR NO KEY UPDATE%'
            wait_for(lambda: installation.waiting_for_a_lock(proposal), "a proposal under way")
            worker.kill()
    finally:
        worker.kill()
    worker.start()
    wait_for(lambda: installation.open_steps(campaign) == 1, "the proposal drawn again")
    busy.struck.add(campaign)
    survives()


def test_redis_flushed_its_connections_cut_and_then_killed(busy, survives):
    installation, redis = busy.installation, busy.installation.redis
    [(campaign, _)] = installation.make_campaigns({"chains": 1, "steps": 50}, start=False)
    # A Celery worker that was speaking with its broker when that went may end with “Unrecoverable error”, and slowly.
    may_end = (installation.worker, installation.beat)
    redis.client.flushall()
    for kind in ("normal", "pubsub"):
        redis.client.client_kill_filter(_type=kind, skipme=True)
    survives(*may_end)
    redis.kill()
    redis.start()
    survives(*may_end)
    installation.call("start", campaign)

    def draws() -> bool:
        installation.look_after(*may_end)
        return installation.open_steps(campaign) == 1

    wait_for(draws, "a proposal by the worker")


def test_postgresql_killed_and_started_again(busy, survives):
    busy.installation.postgres.kill()
    busy.installation.postgres.start()
    survives()


def test_the_same_task_twice_at_once(busy, survives):
    installation = busy.installation
    installation.worker.send(signal.SIGSTOP)
    try:
        installation.call("start", busy.quiet)
        [(chain,)] = installation.query("SELECT id FROM campaigns_chain WHERE campaign_id = %s", busy.quiet)
        with installation.holding("campaigns_chain", "id = %s", chain):
            propose(installation, chain, times=4)
            installation.worker.send(signal.SIGCONT)
            wait_for(lambda: installation.waiting_for_a_lock('%FROM "campaigns_chain"%') >= 2, "two tasks at once")
    finally:
        installation.worker.send(signal.SIGCONT)
    wait_for(lambda: installation.open_steps(busy.quiet) == 1, "one open comparison")
    busy.struck.add(busy.quiet)
    survives()


def test_two_processes_deciding_the_same_step(busy, survives):
    installation, (campaign, path) = busy.installation, busy.contest
    first, second = (Person(url, path) for url in installation.urls)
    lease = first.see()
    # The first person's time runs out, and the second is asked the same.
    installation.query("UPDATE campaigns_lease SET expires_at = now() - interval '1 hour' WHERE key = %s", lease)
    other = second.see()
    [(comparison, uses)] = installation.query(
        "SELECT comparison_id, count(*) FROM campaigns_lease WHERE key IN (%s, %s) GROUP BY comparison_id", lease, other
    )
    assert uses == 2
    with installation.holding("campaigns_comparison", "id = %s", comparison):
        first.choose(lease, "first")
        second.choose(other, "second")
        wait_for(lambda: installation.waiting_for_a_lock("%FROM campaigns_comparison c%") == 2, "both at the door")
    votes = "SELECT count(*), count(number) FROM campaigns_vote WHERE comparison_id = %s"
    wait_for(lambda: installation.query(votes, comparison) == [(2, 1)], "one vote counted and one kept")
    decided = "SELECT count(*) FROM campaigns_comparison WHERE id = %s AND verdict IS NOT NULL"
    assert installation.query(decided, comparison) == [(1,)]
    first.leave()
    second.leave()
    busy.struck.add(campaign)
    survives()


@pytest.mark.parametrize("hours", [1, -1])
def test_the_clock_moved_by_an_hour(busy, survives, hours):
    # A clock that jumps ahead is, to the record, leases that are an hour older; one set back, leases from the future.
    by = f"interval '{hours} hours'"
    busy.installation.query(
        f"UPDATE campaigns_lease SET issued_at = issued_at - {by}, expires_at = expires_at - {by} "
        "WHERE ended_at IS NULL"
    )
    busy.installation.query(f"UPDATE campaigns_voter SET online_until = online_until - {by}")
    survives()


def test_a_full_disk_on_upload(busy, survives):
    installation, port = busy.installation, port_from(29_990)
    before = installation.query("SELECT count(*) FROM campaigns_campaign")
    limit = 200_000
    # No file of this process may grow beyond that, as on a disk with no more room.
    web = installation.web(
        "web-full", port, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    )
    site = f"http://127.0.0.1:{port}"
    web.start()
    try:
        wait_for(lambda: is_ready(site), "the web process without room")
        texts = "text\n" + "\n".join(f"The {number} houses stood there." for number in range(4 * limit // 25))
        with httpx.Client(base_url=site, timeout=30) as browser:
            browser.get(installation.sign_in_path(), follow_redirects=True)
            assert upload(browser, "small", "text\nOne.\nTwo.\nThree.\nFour.\nFive.\nSix.\n") == 302
            assert upload(browser, "large", texts) >= 500
    finally:
        web.kill()
    [(after,)] = installation.query("SELECT count(*) FROM campaigns_campaign")
    assert after == before[0][0] + 1
    assert installation.query("SELECT count(*) FROM campaigns_campaign WHERE name = 'large'") == [(0,)]
    survives()


def test_the_records_are_whole_and_replay_after_all_faults(busy):
    busy.installation.assert_record_is_whole_and_replays(busy.campaign, *busy.struck)


class Person:
    """Somebody with a socket, who votes when told to."""

    def __init__(self, site: str, path: str) -> None:
        self._path, self._site = path, site
        self._open = contextlib.ExitStack()
        self._cookies = cookies_after_joining(site + path)

    def see(self) -> str:
        """Open the page and wait for a pair; return its key."""
        self._socket = self._open.enter_context(open_socket(self._site, f"/ws{self._path}", self._cookies))
        return lease_in(recv_until(self._socket, lease_in, seconds=30))

    def choose(self, lease: str, side: str) -> None:
        send(self._socket, lease=lease, choice=side, elapsed_ms="900")

    def leave(self) -> None:
        self._open.close()


def propose(installation: Installation, chain: int, times: int = 1) -> None:
    """Send the task, as any process may."""
    with Celery(broker=installation.redis.url, set_as_current=False) as app:
        for _ in range(times):
            app.send_task("prefmh_web.tasks.propose", [chain], queue="default")


def upload(browser: httpx.Client, name: str, texts: str) -> int:
    """Send a new campaign's form and return the answer's status."""
    page = browser.get("/campaigns/new/")
    fields = form(name=name, csrfmiddlewaretoken=page.cookies.get("prefmh_csrf") or browser.cookies["prefmh_csrf"])
    [of_file] = [name for name, value in fields.items() if isinstance(value, SimpleUploadedFile)]
    del fields[of_file]
    files = {of_file: ("texts.csv", texts.encode(), "text/csv")}
    return browser.post("/campaigns/new/", data=fields, files=files, headers={"Referer": str(page.url)}).status_code
