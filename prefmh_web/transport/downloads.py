"""Downloads that are drawn from the database piece by piece, while people go on voting."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

from django.db import connections
from django.http import StreamingHttpResponse


def stream(make: Callable[[], Iterator[str | bytes]], content_type: str) -> StreamingHttpResponse:
    """Return a download of what `make()` yields, drawn out of the way of people who vote."""
    return StreamingHttpResponse(_in_own_thread(make), content_type=content_type)


async def _in_own_thread(make: Callable[[], Iterator[str | bytes]]) -> AsyncIterator[str | bytes]:
    """Yield what `make()` yields, drawn on a thread and a database connection of its own.

    On the connection that all votes of this process share, a cursor left open between two chunks would hold an
    old snapshot, and the next vote could not write over it.
    """
    loop = asyncio.get_running_loop()
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="export") as thread:
        try:
            chunks = await loop.run_in_executor(thread, make)
            while (chunk := await loop.run_in_executor(thread, next, chunks, None)) is not None:
                yield chunk
        finally:
            await loop.run_in_executor(thread, connections.close_all)
