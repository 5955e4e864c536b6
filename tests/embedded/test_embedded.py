"""One process: tasks on threads, a channel layer that other threads may use, ports, links."""

import asyncio
import logging
import threading

from celery import shared_task

from prefmh_web.embedded.layer import InProcessChannelLayer
from prefmh_web.embedded.serving import Clock
from prefmh_web.embedded.tasks import wait_until_idle

seen = []


@shared_task
def note(value):
    seen.append((value, threading.current_thread().name))
    if value == "queue another":
        note.delay("another")


@shared_task
def fail():
    raise ZeroDivisionError("on purpose")


def test_tasks_run_on_other_threads_and_idle_waits_for_those_they_queue(db):
    seen.clear()
    note.delay("queue another")
    wait_until_idle()
    assert [value for value, _ in seen] == ["queue another", "another"]
    assert all(name.startswith("task") for _, name in seen)


def test_a_failing_task_is_logged_and_harms_no_other(db, caplog):
    seen.clear()
    with caplog.at_level(logging.ERROR, logger="prefmh_web"):
        fail.delay()
        note.delay("after")
        wait_until_idle()
    assert "on purpose" in caplog.text
    assert [value for value, _ in seen] == ["after"]


def test_a_message_from_another_thread_wakes_its_reader():
    layer = InProcessChannelLayer()

    async def receive() -> dict:
        channel = await layer.new_channel()
        await layer.group_add("group", channel)
        message = {"type": "look.again"}
        threading.Thread(target=asyncio.run, args=(layer.group_send("group", message),)).start()
        return await asyncio.wait_for(layer.receive(channel), 10)

    assert asyncio.run(receive()) == {"type": "look.again"}
    # Nobody listens any more: a message to a closed loop is dropped, as to a page that has gone.
    asyncio.run(layer.group_send("group", {"type": "look.again"}))


def test_the_clock_ticks_at_once_and_stops():
    ticked = threading.Event()
    clock = Clock(ticked.set, every_s=60)
    clock.start()
    assert ticked.wait(10)
    clock.stop()
    assert not clock.is_alive()
