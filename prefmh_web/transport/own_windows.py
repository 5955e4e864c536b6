"""Rates counted in the memory of one process.

`limits.storage.MemoryStorage` does the same, and starts a thread for nearly every use that looks at all keys for what
has run out: with five hundred people a vote paid for all of them. Here a key's old uses go when it is used again, and
keys that nobody uses any more go when the number of keys has doubled. So what a use costs depends on no other key.
"""

import threading
import time
from collections import deque
from typing import NamedTuple

from limits import RateLimitItem, WindowStats

_FEWEST_TO_SWEEP = 1024


class _Window(NamedTuple):
    """When a key was used, oldest first, as far as that counts still."""

    seconds: float
    uses: deque[float]

    def forget_before(self, now: float) -> None:
        while self.uses and self.uses[0] <= now - self.seconds:
            self.uses.popleft()


class OwnWindows:
    """Moving windows in memory, with what `rate_limits` asks of `limits.strategies.MovingWindowRateLimiter`.

    A rate bounds the uses of each key in every window of its length.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._windows: dict[str, _Window] = {}
        self._sweep_at = _FEWEST_TO_SWEEP

    def hit(self, rate: RateLimitItem, *key: str) -> bool:
        """Count one use; False, and not counted, when it is beyond the rate."""
        with self._lock:
            now = time.monotonic()
            uses = self._window(rate, key, now).uses
            if len(uses) >= rate.amount:
                return False
            uses.append(now)
            return True

    def test(self, rate: RateLimitItem, *key: str) -> bool:
        """Say whether one more use would be within the rate."""
        with self._lock:
            return len(self._window(rate, key, time.monotonic()).uses) < rate.amount

    def get_window_stats(self, rate: RateLimitItem, *key: str) -> WindowStats:
        """Return when the oldest use stops counting, in seconds of `time.time`, and how many uses are left."""
        with self._lock:
            now = time.monotonic()
            uses = self._window(rate, key, now).uses
            wait = uses[0] + rate.get_expiry() - now if uses else 0.0
            return WindowStats(time.time() + wait, rate.amount - len(uses))

    def reset(self) -> None:
        """Forget every use."""
        with self._lock:
            self._windows.clear()

    def _window(self, rate: RateLimitItem, key: tuple[str, ...], now: float) -> _Window:
        name = rate.key_for(*key)
        window = self._windows.get(name)
        if window is None:
            self._sweep(now)
            window = self._windows[name] = _Window(rate.get_expiry(), deque())
        window.forget_before(now)
        return window

    def _sweep(self, now: float) -> None:
        if len(self._windows) < self._sweep_at:
            return
        for window in self._windows.values():
            window.forget_before(now)
        self._windows = {name: window for name, window in self._windows.items() if window.uses}
        self._sweep_at = max(_FEWEST_TO_SWEEP, 2 * len(self._windows))
