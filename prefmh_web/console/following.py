"""Which parts of a page that is followed live are sent, and when: what has changed, within an allowance of bytes.

A page that is left open all day must not fill somebody's line, however many chains there are and however fast people
vote. Each group of parts has a bucket of bytes that fills up evenly. A part is sent while there is something in the
bucket, which it may overdraw; so in any minute a group takes at most its capacity, a minute's filling and one part.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field


@dataclass
class Allowance:
    """A bucket of bytes, full at first.

    Args:
        capacity: in bytes.
        a_minute: bytes that it fills up by.
    """

    capacity: float
    a_minute: float
    _left: float = field(init=False)
    _at: float | None = None

    def __post_init__(self) -> None:
        self._left = self.capacity

    def has_some(self, now: float) -> bool:
        """Return whether anything may be sent now, in seconds of a clock that never goes back."""
        if self._at is not None:
            self._left = min(self.capacity, self._left + (now - self._at) * self.a_minute / 60)
        self._at = now
        return self._left > 0

    def take(self, size: int) -> None:
        """Take so many bytes."""
        self._left -= size


@dataclass
class Group:
    """Parts of a page that share an allowance, by their names. Whichever was not sent for longest comes first."""

    allowance: Allowance
    names: Sequence[str]
    _sent: dict[str, str] = field(default_factory=dict)
    _turns: dict[str, float] = field(default_factory=dict)

    def due(self, part: Callable[[str], str], now: float) -> list[str]:
        """Return what is to be sent now, in order; `part` renders one of them, and is asked for no other."""
        found = []
        for name in sorted(self.names, key=lambda name: self._turns.get(name, float("-inf"))):
            if not self.allowance.has_some(now):
                break
            html = part(name)
            if html == self._sent.get(name):
                continue
            self.allowance.take(len(html.encode()))
            self._sent[name], self._turns[name] = html, now
            found.append(html)
        return found
