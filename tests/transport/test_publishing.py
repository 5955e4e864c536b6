"""Hints on their way to a broker that stands still, and to one that answers again."""

import socket
import threading

import pytest
from kombu import Connection

from prefmh_web.transport.publishing import AT_MOST_WAITING, Publisher, TaskMessage


class Broker:
    """A server that takes connections and says nothing; once it is well, another one that takes messages."""

    def __init__(self, silent: socket.socket) -> None:
        self._silent = f"amqp://guest:guest@127.0.0.1:{silent.getsockname()[1]}//"
        self.is_well = False
        self.sent: list[TaskMessage] = []
        self.goes_on = threading.Event()
        self.goes_on.set()

    def connect(self) -> Connection:
        return Connection("memory://" if self.is_well else self._silent, connect_timeout=0.1)

    def send(self, hint: TaskMessage, connection: Connection) -> None:
        connection.ensure_connection(max_retries=1, interval_start=0.01)
        self.goes_on.wait(30)
        self.sent.append(hint)


@pytest.fixture
def broker():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        broker = Broker(silent)
        yield broker
        # The publisher's thread lives on, and has nothing to do.
        broker.is_well = True


@pytest.fixture
def publisher(broker):
    publisher = Publisher(broker.connect, broker.send)
    yield publisher
    broker.is_well = True
    assert publisher.wait_until_sent(30)


def hints(count: int) -> list[TaskMessage]:
    return [TaskMessage("propose", (number,)) for number in range(count)]


def test_what_waits_for_a_broker_that_stands_still_is_bounded(publisher, broker):
    taken = [publisher.put(hint) for hint in hints(AT_MOST_WAITING + 500)]
    # One may be on its way while the others wait.
    assert AT_MOST_WAITING <= sum(taken) <= AT_MOST_WAITING + 1
    assert not publisher.wait_until_sent(0.1)
    assert broker.sent == []


def test_a_hint_that_waits_already_is_not_sent_twice(publisher, broker):
    for hint in hints(3) * 4:
        assert publisher.put(hint)
    broker.is_well = True
    assert publisher.wait_until_sent(30)
    # The very first one may have been on its way when it came again.
    assert set(broker.sent) == set(hints(3))
    assert len(broker.sent) <= 4


def test_once_the_broker_answers_all_that_waits_is_sent_in_order(publisher, broker):
    for hint in hints(50):
        publisher.put(hint)
    assert not publisher.wait_until_sent(0.5)
    broker.is_well = True
    assert publisher.wait_until_sent(30)
    assert broker.sent == hints(50)


def test_a_hint_that_comes_again_while_it_is_being_sent_is_sent_again(publisher, broker):
    # What it is about may have been read before it came again.
    broker.is_well = True
    broker.goes_on.clear()
    [hint] = hints(1)
    publisher.put(hint)
    while publisher._sending is None:
        threading.Event().wait(0.01)
    publisher.put(hint)
    broker.goes_on.set()
    assert publisher.wait_until_sent(30)
    assert broker.sent == [hint, hint]
