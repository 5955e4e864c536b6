"""A thread that does something every second, for as long as the process wants it."""

import logging
import threading
from collections.abc import Callable

from django.db import Error, connection

logger = logging.getLogger(__name__)

EVERY_S = 1.0


class Keeper:
    """Calls `work` every second on a thread of its own. What the database refuses is tried again the next time."""

    def __init__(self, work: Callable[[], None]) -> None:
        self._work = work
        self._over = threading.Event()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def begin(self) -> None:
        """Begin, unless it has begun."""
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="keeper", daemon=True)
                self._thread.start()

    def end(self) -> None:
        """End, and wait for what is being done."""
        self._over.set()
        with self._lock:
            if self._thread is not None:
                self._thread.join()

    def _run(self) -> None:
        while not self._over.wait(EVERY_S):
            try:
                self._work()
            except Error:
                logger.warning("could not write how model servers are doing; trying again", exc_info=True)
            finally:
                connection.close()
