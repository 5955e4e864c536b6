"""Which share of a call each of its parts takes: functions are wrapped while it is measured, and timed without others.

Wrapping costs about a microsecond a call, which the part around it is charged with: shares are read, not totals.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any


class Shares:
    """Clocks for the parts of a call.

    Args:
        parts: for each part the functions that it consists of, each as its owner (a module or a class) and its name.
    """

    def __init__(self, parts: Mapping[str, Sequence[tuple[Any, str]]]) -> None:
        self._parts = parts
        self._seconds: Counter[str] = Counter()
        self._within: list[float] = []

    @contextmanager
    def wrapped(self) -> Iterator[None]:
        """Time the parts of what is called meanwhile."""
        originals = [(owner, name, getattr(owner, name)) for each in self._parts.values() for owner, name in each]
        try:
            for part, functions in self._parts.items():
                for owner, name in functions:
                    setattr(owner, name, self._timed(part, getattr(owner, name)))
            yield
        finally:
            for owner, name, original in originals:
                setattr(owner, name, original)

    def of(self, rest: str, call: Callable[..., Any], *args: Any) -> tuple[Counter[str], Any]:
        """Return the seconds that each part of a call takes, `rest` being what is none of them, and its result."""
        self._seconds.clear()
        result = self._timed(rest, call)(*args)
        return Counter(self._seconds), result

    def _timed(self, part: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*args: Any, **options: Any) -> Any:
            self._within.append(0.0)
            begun = time.perf_counter()
            try:
                return function(*args, **options)
            finally:
                took = time.perf_counter() - begun
                self._seconds[part] += took - self._within.pop()
                if self._within:
                    self._within[-1] += took

        return timed
