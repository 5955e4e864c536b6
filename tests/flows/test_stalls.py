"""Servers that are frozen: nothing is refused, and nothing comes back.

A vote needs the database and nothing else. While Redis or the broker stands still, people vote, join and load pages;
probes say what is wrong; and afterwards every chain goes on.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import httpx
import numpy as np
import pytest

from prefmh_web.demo.voters import SimulatedVoter
from tests.support import servers
from tests.support.campaigns import AnyScore, CarefulVoter
from tests.support.installations import Crowd, Installation, cookies_after_joining, open_socket, send, wait_for
from tests.support.servers import RabbitMQ
from tests.voting.test_socket import lease_in

# Twenty votes a second, and more pairs than they can use up: each takes three votes at least.
PEOPLE, SECONDS_A_VOTE = 8, 0.4
CHAINS, VOTES = 50, 60
PATIENCE_S = 30
LAYER, BROKER = "The channel layer does not answer", "The task broker does not answer"


@dataclass
class Stall:
    """What stands still, in which installation, and what the probes say of it."""

    installation: Installation
    freeze: Callable[[], None]
    thaw: Callable[[], None]
    wrong: tuple[str, ...]
    well: tuple[str, ...] = ()


@pytest.fixture(scope="module")
def beside_rabbitmq(tmp_path_factory) -> Iterator[tuple[Installation, RabbitMQ]]:
    """An installation whose tasks go through RabbitMQ."""
    servers.require_engines()
    servers.require_rabbitmq()
    broker = RabbitMQ()
    # A busy machine takes longer than usual to ask a broker that is well.
    variables = {"CELERY_BROKER_URL": broker.url, "BROKER_TIMEOUT_SECONDS": "3"}
    try:
        broker.start()
        with Installation(tmp_path_factory.mktemp("stalls"), variables).running() as installation:
            yield installation, broker
    finally:
        broker.remove()


@pytest.fixture(params=["Redis is all", "Redis beside RabbitMQ", "RabbitMQ", "RabbitMQ without disk"])
def stall(request) -> Stall:
    if request.param == "Redis is all":
        installation = request.getfixturevalue("installation")
        redis = installation.redis
        return Stall(installation, redis.freeze, redis.thaw, (LAYER, BROKER))
    installation, broker = request.getfixturevalue("beside_rabbitmq")
    if request.param == "RabbitMQ":
        return Stall(installation, broker.freeze, broker.thaw, (BROKER,), (LAYER,))
    if request.param == "RabbitMQ without disk":
        fill, empty = (partial(broker.require_free_disk, size) for size in ("1000000GB", "1MB"))
        return Stall(installation, fill, empty, (BROKER,), (LAYER,))
    return Stall(installation, installation.redis.freeze, installation.redis.thaw, (LAYER,), (BROKER,))


def steady(rng: np.random.Generator) -> float:
    return float(rng.uniform(0.5, 1.5)) * SECONDS_A_VOTE


def test_people_vote_and_join_while_a_server_stands_still(stall):
    installation = stall.installation
    judges = [{"question": "Which is darker?", "votes": 5}]
    [(campaign, path)] = installation.make_campaigns({"judges": judges, "chains": CHAINS, "steps": 1000})
    wait_for(lambda: installation.open_steps(campaign) == CHAINS, "every chain has a pair")
    voters = [person(installation, path, seed) for seed in range(PEOPLE)]
    crowd = Crowd(voters)
    crowd.start()
    try:
        wait_for(lambda: len(crowd.acknowledged) > PEOPLE, "the first votes")
        for web in installation.webs:
            web.mark()
        stall.freeze()
        before = len(crowd.acknowledged)
        wait_for(
            lambda: len(crowd.acknowledged) >= before + VOTES, "votes while a server stands still", seconds=PATIENCE_S
        )
        assert_somebody_new_votes(installation, path)
        assert_probes_say(installation, stall)
        assert_few_waited_for_redis(installation)
    finally:
        crowd.stop()
        stall.thaw()
    wait_for(lambda: installation.open_steps(campaign) == CHAINS, "every chain goes on", seconds=PATIENCE_S)
    assert_every_vote_is_stored_once(installation, campaign, voters)
    installation.assert_record_is_whole_and_replays(campaign)
    wait_for(lambda: all(httpx.get(f"{url}/readyz").is_success for url in installation.urls), "ready again")
    installation.look_after()


def test_a_page_without_a_pair_says_why_it_waits_while_the_broker_stands_still(installation):
    # Texts that the chain makes: a task writes them.
    made = {"space": {"kind": "texts", "scenarios": [3]}, "kernel": {"kind": "suffix"}}
    only_one = {"judges": [{"question": "Which?", "votes": 1}], "chains": 1, "steps": 50}
    [(campaign, path)] = installation.make_campaigns(only_one | made)
    wait_for(lambda: installation.open_steps(campaign) == 1, "the pair")
    cookies = cookies_after_joining(installation.urls[0] + path)
    with open_socket(installation.urls[0], f"/ws{path}", cookies) as socket:
        lease = lease_in(socket.recv(timeout=PATIENCE_S))
        installation.redis.freeze()
        try:
            send(socket, lease=lease, choice="first", elapsed_ms="700")
            screen = screen_within(socket, PATIENCE_S, lambda screen: "could not be made yet" in screen)
            assert "could not be made yet" in screen
        finally:
            installation.redis.thaw()
        assert 'name="lease"' in screen_within(socket, PATIENCE_S, lambda screen: 'name="lease"' in screen)


def test_what_was_lost_while_rabbitmq_was_away_is_found_when_it_is_back(beside_rabbitmq):
    installation, broker = beside_rabbitmq
    [(campaign, _)] = installation.make_campaigns({"chains": 1, "steps": 50}, start=False)
    broker.kill()
    try:
        # This process ends before anybody takes its hints.
        installation.call("start", campaign)
    finally:
        broker.start()
    wait_for(lambda: installation.open_steps(campaign) == 1, "the pair")


def test_a_worker_goes_on_when_rabbitmq_has_waited_too_long_for_the_end_of_a_task(beside_rabbitmq):
    installation, broker = beside_rabbitmq
    worker, one = installation.worker, {"chains": 1, "steps": 50}
    [(long, _), (other, _)] = installation.make_campaigns(one, one, start=False)
    broker.wait_for_acknowledgements(2)
    worker.stop()
    installation.call("start", long)
    with installation.holding("campaigns_chain", "campaign_id = %s", long):
        worker.start()
        wait_for(lambda: "delivery acknowledgement on channel 1 timed out" in worker.log_since(), "the channel closed")
    broker.wait_for_acknowledgements(1800)
    installation.call("start", other)
    wait_for(lambda: installation.open_steps(other) == installation.open_steps(long) == 1, "both pairs")
    installation.look_after()


def person(installation: Installation, path: str, seed: int) -> SimulatedVoter:
    return CarefulVoter(installation.urls[seed % 2] + path, AnyScore(), np.random.default_rng(seed), steady)


def screen_within(socket, seconds: float, is_wanted: Callable[[str], bool]) -> str:
    """Return the first screen that is as wanted, or the last one that came in this time."""
    found = []

    def is_there() -> bool:
        try:
            found.append(socket.recv(timeout=0.5))
        except TimeoutError:
            return False
        return is_wanted(found[-1])

    try:
        wait_for(is_there, "the screen", seconds=seconds)
    except AssertionError:
        assert found, "no screen came at all"
    return found[-1]


def assert_somebody_new_votes(installation: Installation, path: str) -> None:
    for site in installation.urls:
        cookies = cookies_after_joining(site + path)
        page = httpx.get(f"{site}{path}vote/", headers={"Cookie": cookies}, timeout=PATIENCE_S)
        assert 'name="lease"' in page.text
        with open_socket(site, f"/ws{path}", cookies) as socket:
            lease = lease_in(socket.recv(timeout=PATIENCE_S))
            send(socket, lease=lease, choice="first", elapsed_ms="700")
            assert lease not in socket.recv(timeout=PATIENCE_S)


def assert_few_waited_for_redis(installation: Installation) -> None:
    """Whoever has waited for Redis in vain says so; the next ones should know without waiting."""
    for web in installation.webs:
        in_vain = web.log_since().count("Redis does not answer")
        assert in_vain <= 2, f"{in_vain} calls of {web.name} waited for Redis, one after another"


def assert_probes_say(installation: Installation, stall: Stall) -> None:
    for site in installation.urls:
        answer = httpx.get(f"{site}/readyz", timeout=PATIENCE_S)
        assert answer.status_code == 503
        assert answer.json()["database"] == "ok"
        assert all(reason in answer.text for reason in stall.wrong)
        assert not any(reason in answer.text for reason in stall.well)
    # A machine that is busy with other tests may keep a server that is well from answering in time, once.
    told = [doctor(installation)]
    while any(reason in told[-1] for reason in stall.well) and len(told) < 3:
        told.append(doctor(installation))
    assert all(reason in told[-1] for reason in stall.wrong)
    assert not any(reason in told[-1] for reason in stall.well)


def doctor(installation: Installation) -> str:
    """Return what it prints of an installation that is not well."""
    ended = installation.run("manage.py", "doctor", timeout=PATIENCE_S, check=False)
    assert ended.returncode == 1
    return ended.stdout


def assert_every_vote_is_stored_once(installation: Installation, campaign: int, voters: list[SimulatedVoter]) -> None:
    stored = installation.vote_keys(campaign)
    assert len(stored) == len(set(stored))
    for voter in voters:
        # The answer to the very last one may have been on its way when they stopped.
        assert set(voter.sent[:-1]) <= set(voter.acknowledged)
        assert set(voter.acknowledged) <= set(stored)
