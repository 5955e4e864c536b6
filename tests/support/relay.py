"""One address in front of several servers: each connection goes to the next of them.

All can be cut at once, or frozen: then bytes are taken and none handed on, as where a network drops them.
"""

import asyncio
import contextlib
import itertools
import threading

from tests.support.ports import port_from


class Relay:
    """Hands bytes on, on a thread of its own.

    Args:
        ports: those of the servers, on this computer.
    """

    def __init__(self, ports: list[int]) -> None:
        self.port = port_from(18_500)
        self.url = f"http://127.0.0.1:{self.port}"
        self._next_port = itertools.cycle(ports)
        self._ends: set[asyncio.StreamWriter] = set()
        self._loop = asyncio.new_event_loop()
        self._flows = _open_gate()
        self._lost: list[asyncio.Event] = []
        self._thread = threading.Thread(target=self._loop.run_forever, name="relay")

    def start(self) -> None:
        self._thread.start()
        self._server = self._in_loop(asyncio.start_server(self._relay, "127.0.0.1", self.port))

    def drop_connections(self) -> None:
        """Cut every open connection, sockets included, as a bad network does."""
        self._in_loop(self._drop())

    def freeze(self) -> None:
        """Hand nothing on any more, and tell nobody."""
        self._loop.call_soon_threadsafe(self._flows.clear)

    def thaw(self) -> None:
        """Hand on what has come meanwhile, and all that follows."""
        self._loop.call_soon_threadsafe(self._flows.set)

    def lose_connections(self) -> None:
        """Freeze the open connections for good, while new ones are served, as when one of several servers vanishes."""
        self._loop.call_soon_threadsafe(self._lose)

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._thaw_all)
        self._in_loop(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _in_loop(self, work):
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(10)

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server_reader, server_writer = await asyncio.open_connection("127.0.0.1", next(self._next_port))
        ends = {writer, server_writer}
        self._ends |= ends
        gate = self._flows
        await asyncio.gather(_hand_on(reader, server_writer, gate), _hand_on(server_reader, writer, gate))
        self._ends -= ends

    async def _drop(self) -> None:
        for end in self._ends:
            end.transport.abort()

    async def _end(self) -> None:
        self._server.close()
        await self._drop()
        while self._ends:
            await asyncio.sleep(0.01)

    def _lose(self) -> None:
        self._flows.clear()
        self._lost.append(self._flows)
        self._flows = _open_gate()

    def _thaw_all(self) -> None:
        for gate in (self._flows, *self._lost):
            gate.set()


def _open_gate() -> asyncio.Event:
    gate = asyncio.Event()
    gate.set()
    return gate


async def _hand_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, gate: asyncio.Event) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(2**16):
            await gate.wait()
            writer.write(data)
            await writer.drain()
    # Whoever has nothing more to say has gone: pages and servers close both directions.
    await gate.wait()
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()
