"""Programs that the site declares in SCORERS: an object as a line of JSON in, its number as a line out.

Each process of ours keeps one child for each of them, started when it is first needed. An object for which the child
fails is tried once more in a fresh one. Scores leave here only when the child has stayed quiet after the last of them:
a program that writes twice for an object is found out before any of its answers is believed.
"""

from __future__ import annotations

import atexit
import base64
import hashlib
import json
import math
import re
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from celery import signals
from django.conf import settings

from prefmh_web.objects import ObjectKind, StoredObject
from prefmh_web.objects.kind import Look
from prefmh_web.scorers.child import Child, ChildError, OutOfStepError, shown
from prefmh_web.scorers.scorer import Answer, NoScore, ScorerError, ScorerInterrupted

TRIES = 2
# Failures without a number in between, after which it is the scorer that fails and not an object.
MOST_FAILURES = 5
MOST_OBJECT_BYTES = 16 * 2**20
# A fresh child loads its model before it answers.
START_FACTOR = 10
_LEAST_QUIET_S = 0.1
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|[-+]?(?:nan|inf(?:inity)?)", re.IGNORECASE)


class Command:
    """One program of SCORERS, with its child.

    Args:
        words: the program and its arguments.
        seconds: how long it may take for an object.
    """

    def __init__(self, name: str, words: Sequence[str], seconds: float) -> None:
        self.name = name
        self._words = tuple(words)
        self._seconds = seconds
        self._lock = threading.Lock()
        self._child: Child | None = None
        self._failures = 0

    def description(self) -> dict[str, str]:
        """Return its name and a hash of its command, which may hold keys and is not for records itself."""
        sha256 = hashlib.sha256(json.dumps(self._words).encode()).hexdigest()
        return {"name": self.name, "kind": "command", "command_sha256": sha256}

    def scores(self, kind: ObjectKind, objects: Sequence[StoredObject]) -> list[Answer]:
        """Return the number of each object, or why it has none. One batch at a time; others wait.

        Raises:
            ScorerError: the program cannot be started, fails for one object after the other, or writes more lines than
                it is asked for.
            ScorerInterrupted: this process ends.
        """
        lines = [_line(kind, each) for each in objects]
        with self._lock:
            try:
                return self._answers(lines)
            except OutOfStepError as error:
                raise ScorerError(f"“{self.name}” does not write one line for each object: {error}") from error

    def close(self) -> None:
        """End its child; at once if another thread waits for it, which then hears so."""
        child = self._child
        if child is None:
            return
        if self._lock.acquire(blocking=False):
            try:
                child.close()
            finally:
                self._lock.release()
        else:
            child.interrupt()

    def _answers(self, lines: Sequence[bytes | NoScore]) -> list[Answer]:
        found: dict[int, Answer] = {place: line for place, line in enumerate(lines) if isinstance(line, NoScore)}
        asked = {place: line for place, line in enumerate(lines) if not isinstance(line, NoScore)}
        tries: Counter[int] = Counter()
        # Answers of the present child, which count once it has stayed quiet after them.
        given: dict[int, Answer] = {}
        longest = _LEAST_QUIET_S
        while waiting := [place for place in asked if place not in found | given]:
            # One that has failed comes first, in a fresh child.
            place = max(waiting, key=tries.__getitem__)
            began = time.monotonic()
            try:
                given[place] = self._one(asked[place])
                longest = max(longest, time.monotonic() - began)
                if len(waiting) == 1 and self._child is not None:
                    self._child.stay_quiet(min(longest, self._seconds))
            except OutOfStepError:
                raise
            except ChildError as error:
                _demand_life()
                self._note_failure(error)
                # What this child has said is asked again: it may have been out of step before it failed.
                given = {}
                tries[place] += 1
                if tries[place] == TRIES:
                    found[place] = NoScore(str(error))
        return [(found | given)[place] for place in range(len(lines))]

    def _one(self, line: bytes) -> Answer:
        seconds = self._seconds
        # Closed after any error.
        if self._child is None or self._child.is_closed:
            self._child = Child(self._words)
            seconds *= START_FACTOR
        else:
            self._child.stay_quiet(0)
        # After it was started: whoever ends this process from now on ends it, too.
        _demand_life()
        answer = self._child.answer(line, seconds)
        reply = answer.decode(errors="replace").strip()
        if not _NUMBER.fullmatch(reply):
            self._child.kill()
            raise ChildError(f"it wrote {shown(answer)}, which is no number")
        self._failures = 0
        number = float(reply)
        return number if math.isfinite(number) else NoScore(f"it wrote “{reply}”, which is no finite number")

    def _note_failure(self, error: ChildError) -> None:
        self._failures += 1
        if self._failures >= MOST_FAILURES:
            # Counted anew when somebody tries again.
            self._failures = 0
            raise ScorerError(f"“{self.name}” failed {MOST_FAILURES} times in a row; at last {error}")


def offered(objects: str) -> Iterator[Command]:
    """Yield every program that is declared: which objects it can read is for the researcher to know."""
    for name, words in settings.SCORERS.items():
        declared = name, tuple(words), settings.SCORER_TIMEOUT_SECONDS
        with _commands_lock:
            command = _commands.setdefault(declared, Command(*declared))
        yield command


_ending = threading.Event()
_commands: dict[tuple[Any, ...], Command] = {}
_commands_lock = threading.Lock()


# Processes of a Celery worker's pool end without `atexit`.
@signals.worker_process_shutdown.connect
@atexit.register
def close_all(**_: Any) -> None:
    """End every child of this process."""
    for command in list(_commands.values()):
        command.close()


def end() -> None:
    """End every child, and start none any more: this process ends, and its threads must not wait for answers."""
    _ending.set()
    close_all()


def forget() -> None:
    """Begin anew, as a fresh process does."""
    _ending.clear()
    _commands.clear()


def _demand_life() -> None:
    if _ending.is_set():
        raise ScorerInterrupted


def _line(kind: ObjectKind, scored: StoredObject) -> bytes | NoScore:
    about = {**dict(scored.told), "kind": kind.name, "content": scored.content}
    if kind.medium != "words":
        try:
            file = kind.media(scored, Look(raster=True))
        except OSError:
            return NoScore("its file cannot be read")
        assert file is not None
        about |= {"media_type": file.media_type, kind.medium: base64.b64encode(file.body).decode()}
    # ASCII: whatever characters end a line elsewhere, none of them is in it.
    line = json.dumps(about).encode() + b"\n"
    if len(line) > MOST_OBJECT_BYTES:
        return NoScore(f"it takes {len(line):,} bytes to send; {MOST_OBJECT_BYTES:,} are possible")
    return line
