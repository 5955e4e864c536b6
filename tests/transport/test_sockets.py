"""What the application's sockets share."""

import asyncio
import gc
import weakref

from asgiref.sync import async_to_sync

from prefmh_web.transport.sockets import LiveConsumer


def test_work_that_has_ended_is_not_kept_for_as_long_as_the_page():
    async def remembered() -> int:
        page, references = LiveConsumer(), []
        for _ in range(20):
            references.append(weakref.ref(page.in_background(asyncio.sleep(0))))
            await asyncio.sleep(0.01)
        gc.collect()
        return sum(reference() is not None for reference in references)

    assert async_to_sync(remembered)() <= 1
