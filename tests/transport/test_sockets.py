"""What the application's sockets share."""

import asyncio
import gc
import weakref

from asgiref.sync import async_to_sync

from prefmh_web.transport.sockets import LiveConsumer, set_within


def test_work_that_has_ended_is_not_kept_for_as_long_as_the_page():
    async def remembered() -> int:
        page, references = LiveConsumer(), []
        for _ in range(20):
            references.append(weakref.ref(page.in_background(asyncio.sleep(0))))
            await asyncio.sleep(0.01)
        gc.collect()
        return sum(reference() is not None for reference in references)

    assert async_to_sync(remembered)() <= 1


def test_who_waits_ends_when_told_to_even_in_the_moment_of_what_they_wait_for():
    async def ends() -> bool:
        event = asyncio.Event()
        waiting = asyncio.create_task(set_within(event, 10))
        for _ in range(2):
            await asyncio.sleep(0)
        event.set()
        waiting.cancel()
        await asyncio.wait([waiting])
        return waiting.cancelled()

    assert asyncio.run(ends())


def test_who_waits_goes_on_after_the_event_or_after_the_time():
    async def ways() -> None:
        event = asyncio.Event()
        await set_within(event, 0.01)
        assert not event.is_set()
        asyncio.get_running_loop().call_soon(event.set)
        await set_within(event, None)
        assert event.is_set()

    asyncio.run(ways())
