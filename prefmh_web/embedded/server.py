"""The embedded server: pages, sockets, tasks and the clock that sweeps, in this one process."""

import errno
import signal
import socket
import threading
from collections.abc import Callable

import uvicorn

from prefmh_web.embedded.patience import PatientProtocol

SWEEP_EVERY_S = 5


class CannotListen(Exception):  # noqa: N818 - reads as the sentence it starts
    """The wanted address or port is not to be had; the message says what to do."""


def free_port(address: str, wanted: int | None, first: int = 8000, tries: int = 20) -> int:
    """Return `wanted`, or the first free port from `first` on when none is wanted.

    Raises:
        CannotListen: there is none, or the address is not this computer's.
    """
    for port in [wanted] if wanted else range(first, first + tries):
        with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((address, port))
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    raise CannotListen(f"Cannot listen on {address} port {port}: {error.strerror}.") from error
                continue
            return port
    taken = f"Port {wanted}" if wanted else f"Every port from {first} to {first + tries - 1}"
    raise CannotListen(f"{taken} is already in use on {address}. Choose another one with --port.")


class Clock(threading.Thread):
    """Calls `tick` at once and then every few seconds, until stopped."""

    def __init__(self, tick: Callable[[], None], every_s: float = SWEEP_EVERY_S) -> None:
        super().__init__(name="clock", daemon=True)
        self._tick, self._every_s, self._stopped = tick, every_s, threading.Event()

    def run(self) -> None:
        self._tick()
        while not self._stopped.wait(self._every_s):
            self._tick()

    def stop(self) -> None:
        self._stopped.set()
        self.join()


class EmbeddedServer(uvicorn.Server):
    """Says when it listens, and stops at Ctrl-C, whatever libraries do.

    While RDKit looks for a substructure it handles the interrupt itself, and puts back what it found; of two threads
    that do so at once the second finds the first one's handler, and that is what stays.
    """

    def __init__(self, config: uvicorn.Config, on_listening: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_listening = on_listening

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._on_listening()

    async def on_tick(self, counter: int) -> bool:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, self.handle_exit)
        return await super().on_tick(counter)


def server(address: str, port: int, on_listening: Callable[[], None] = lambda: None) -> uvicorn.Server:
    """Return the configured server. `run()` serves until interrupted; `on_listening` is called once it listens."""
    config = uvicorn.Config(
        "prefmh_web.asgi:application",
        host=address,
        port=port,
        http=PatientProtocol,
        lifespan="off",
        # `LOGGING` says it all: uvicorn's own handlers would write what ours keep out of the log.
        log_config=None,
        ws_max_size=64 * 1024,
        timeout_graceful_shutdown=3,
    )
    return EmbeddedServer(config, on_listening)
