"""Questions that are asked of servers which may be frozen."""

import threading
import time

import pytest

from prefmh_web.operations.queues import begin, within


@pytest.fixture
def frozen():
    """A question without an answer until the test ends; it counts how often it has been asked."""
    over = threading.Event()
    asked = []

    def question() -> str:
        asked.append(threading.current_thread())
        over.wait(60)
        return "late"

    question.asked, question.over = asked, over
    yield question
    over.set()
    for thread in asked:
        thread.join()


def test_an_answer_and_an_error_are_handed_on():
    assert within(10, lambda: 5) == 5
    assert within(10, divmod, 7, 2) == (3, 1)
    with pytest.raises(ZeroDivisionError):
        within(10, divmod, 7, 0)


def test_a_question_without_an_answer_is_given_up_and_asked_once_only(frozen):
    for _ in range(3):
        with pytest.raises(TimeoutError):
            within(0.05, frozen)
    assert len(frozen.asked) == 1
    frozen.over.set()
    frozen.asked[0].join()
    # Answered, or given up by the library, it is asked anew.
    assert within(10, frozen) == "late"
    assert len(frozen.asked) == 2


def test_a_question_may_be_asked_before_its_answer_is_wanted(frozen):
    begin(frozen)
    frozen.over.set()
    assert within(10, frozen) == "late"


def test_an_answer_that_came_before_it_was_wanted_is_not_asked_for_again():
    """Two questions begun together, and wanted one after the other: the second wait adds nothing to the first."""
    asked: list[threading.Thread] = []

    def question() -> str:
        asked.append(threading.current_thread())
        raise ConnectionError

    begin(question)
    while not asked:
        time.sleep(0.001)
    asked[0].join()
    with pytest.raises(ConnectionError):
        within(10, question)
    assert len(asked) == 1
    with pytest.raises(ConnectionError):
        within(10, question)
    assert len(asked) == 2
