"""Programs that the site declares in SCORERS: an object as a line of JSON in, its number as a line out.

Each process of ours keeps one child for each of them, started when it is first needed. An object for which the child
fails is tried once more in a fresh one. Scores leave here only when the child has stayed quiet after the last of them:
a program that writes twice for an object is found out before any of its answers is believed.

A child answers each line on its standard input with one on its standard output. One line is in flight at a time, and
whatever comes without being asked for ends it: so an answer is never taken for another line's. Once something went
wrong, nothing more is read from it.
"""

from __future__ import annotations

import asyncio
import atexit
import base64
import contextlib
import hashlib
import json
import math
import os
import re
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Sequence
from typing import Any, TypeVar

from celery import signals
from django.conf import settings

from prefmh_web.objects import ObjectKind, StoredObject
from prefmh_web.objects.kind import RenderOptions
from prefmh_web.scorers.scorer import Answer, NoScore, ScorerError, ScorerInterrupted

Result = TypeVar("Result")

MAX_REPLY_BYTES = 4096
_INPUT, _OUTPUT = 0, 1
_KEPT_WORDS = 2000
_SHOWN_WORDS = 200
# Between being asked to end and being killed.
_GRACE_S = 2.0
# What a program gets of our environment; keys, passwords and addresses of servers are none of its business.
_PASSED = ("PATH", "HOME", "USER", "LANG", "TZ", "TMPDIR", "LD_LIBRARY_PATH", "HF_HOME", "XDG_CACHE_HOME")
_PASSED_GROUPS = ("LC_", "CUDA_", "NVIDIA_", "OMP_", "SLURM_")


class ChildError(Exception):
    """The program gave no usable line; it has been killed. The message is a clause without a full stop."""


class OutOfStepError(ChildError):
    """It wrote more than it was asked for: its earlier answers may be another line's."""


class _Heard(asyncio.SubprocessProtocol):
    """What a program has written and nobody has read yet, and how far it is."""

    def __init__(self) -> None:
        self.said = self.words = b""
        self.has_closed = self.has_exited = self.is_over = False
        self._changed = asyncio.Event()

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd == _OUTPUT:
            self.said += data
        else:
            self.words = (self.words + data)[-_KEPT_WORDS:]
        self._changed.set()

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        self.has_closed |= fd in (_INPUT, _OUTPUT)
        self._changed.set()

    def process_exited(self) -> None:
        self.has_exited = True
        self._changed.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_over = True
        self._changed.set()

    async def until(self, is_so: Callable[[], object], seconds: float | None) -> None:
        """Take in what happens until something is so, but no longer; at least one look takes in what has come."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not is_so():
                    self._changed.clear()
                    await self._changed.wait()


class Child:
    """A running program.

    Args:
        words: the program and its arguments.

    Raises:
        ChildError: it cannot be started.
    """

    def __init__(self, words: Sequence[str]) -> None:
        # A loop of its own, which runs while something is asked, on whichever thread asks.
        self._loop = asyncio.new_event_loop()
        # A group of its own, so that what it has started goes with it.
        passed = {name: os.environ[name] for name in os.environ if name in _PASSED or name.startswith(_PASSED_GROUPS)}
        options: dict[str, Any] = {"env": passed, "start_new_session": True}
        try:
            self._process, self._heard = self._run(self._loop.subprocess_exec(_Heard, *words, **options))
        except (OSError, ValueError) as error:
            self._loop.close()
            raise ChildError(f"it cannot be started: {error}") from error
        self._input: Any = self._process.get_pipe_transport(_INPUT)
        self._owner = os.getpid()
        self.is_closed = False

    def answer(self, line: bytes, seconds: float) -> bytes:
        """Send a line, which ends with a newline, and return the one that comes back, without its end.

        Raises:
            OutOfStepError: there was more than one.
            ChildError: none came in time, it was too long, or the program has ended.
        """
        heard = self._heard

        def is_settled() -> bool:
            return b"\n" in heard.said or heard.has_closed or len(heard.said) > MAX_REPLY_BYTES

        with self._killed_by_an_error():
            self._input.write(line)
            self._run(heard.until(is_settled, seconds))
            if b"\n" in heard.said:
                return self._one_line()
            if len(heard.said) > MAX_REPLY_BYTES:
                raise ChildError(f"it wrote a line of more than {MAX_REPLY_BYTES} bytes: {shown(heard.said)}")
            raise ChildError(
                self._ending() if heard.has_closed else f"it did not answer within {seconds:g} s{self._last_words()}"
            )

    def stay_quiet(self, seconds: float) -> None:
        """Return after so many seconds in which it wrote nothing on its standard output.

        Raises:
            OutOfStepError: it did.
        """
        heard = self._heard
        with self._killed_by_an_error():
            self._run(heard.until(lambda: heard.said or heard.has_closed, seconds))
            if heard.said:
                raise OutOfStepError(f"it wrote a line that nobody had asked for: {shown(heard.said)}")

    def close(self) -> None:
        """Let it end: its input ends, it is asked to, and it is killed if it does not."""
        if not self.is_closed and self._owner == os.getpid():
            self._input.close()
            self._signal(signal.SIGTERM)
            self._run(self._heard.until(lambda: self._heard.has_exited, _GRACE_S))
        self.kill()

    def interrupt(self) -> None:
        """End it from another thread than the one that waits for its answer, which is told as of any end."""
        if not self.is_closed and self._owner == os.getpid():
            self._signal(signal.SIGKILL)

    def kill(self) -> None:
        """End it and what it has started, at once."""
        if self.is_closed or self._owner != os.getpid():
            return
        self.is_closed = True
        self._signal(signal.SIGKILL)
        self._run(self._heard.until(lambda: self._heard.has_exited, None))
        self._process.close()
        self._run(self._heard.until(lambda: self._heard.is_over, _GRACE_S))
        self._loop.close()

    def _run(self, work: Coroutine[Any, Any, Result]) -> Result:
        return self._loop.run_until_complete(work)

    @contextlib.contextmanager
    def _killed_by_an_error(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            # Also where this thread is interrupted: a late answer must find nobody.
            self.kill()
            raise

    def _one_line(self) -> bytes:
        line, _, more = self._heard.said.partition(b"\n")
        if more:
            raise OutOfStepError(f"it wrote more than one line for one object: {shown(self._heard.said)}")
        if self._input.get_write_buffer_size():
            raise OutOfStepError(f"it wrote before it had read the object: {shown(line)}")
        self._heard.said = b""
        return line

    def _ending(self) -> str:
        self._run(self._heard.until(lambda: self._heard.is_over, _GRACE_S))
        code = self._process.get_returncode()
        if code is None:
            return f"it closed its input or output{self._last_words()}"
        how = f"was ended by signal {-code}" if code < 0 else f"ended with status {code}"
        return f"it {how}{self._last_words()}"

    def _last_words(self) -> str:
        words = _printable(self._heard.words)
        return f"; its last words: {words[-_SHOWN_WORDS:]}" if words else ""

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.get_pid(), number)


def shown(line: bytes) -> str:
    """Return the beginning of what a program wrote, for a person to read."""
    return f"“{_printable(line[:_SHOWN_WORDS])[:80]}”"


def _printable(words: bytes) -> str:
    text = words.decode(errors="replace")
    return " ".join("".join(each if each.isprintable() else " " for each in text).split())


TRIES = 2
# Failures without a number in between, after which it is the scorer that fails and not an object.
MAX_FAILURES = 5
MAX_OBJECT_BYTES = 16 * 2**20
# A fresh child loads its model before it answers.
START_FACTOR = 10
_MIN_QUIET_S = 0.1
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
        found: dict[int, Answer] = {index: line for index, line in enumerate(lines) if isinstance(line, NoScore)}
        asked = {index: line for index, line in enumerate(lines) if not isinstance(line, NoScore)}
        tries: Counter[int] = Counter()
        # Answers of the present child, which count once it has stayed quiet after them.
        given: dict[int, Answer] = {}
        longest = _MIN_QUIET_S
        while waiting := [index for index in asked if index not in found | given]:
            # One that has failed comes first, in a fresh child.
            index = max(waiting, key=tries.__getitem__)
            began = time.monotonic()
            try:
                given[index] = self._one(asked[index])
                longest = max(longest, time.monotonic() - began)
                if len(waiting) == 1 and self._child is not None:
                    self._child.stay_quiet(min(longest, self._seconds))
            except OutOfStepError:
                raise
            except ChildError as error:
                _require_life()
                self._note_failure(error)
                # What this child has said is asked again: it may have been out of step before it failed.
                given = {}
                tries[index] += 1
                if tries[index] == TRIES:
                    found[index] = NoScore(str(error))
        return [(found | given)[index] for index in range(len(lines))]

    def _one(self, line: bytes) -> Answer:
        seconds = self._seconds
        # Closed after any error.
        if self._child is None or self._child.is_closed:
            self._child = Child(self._words)
            seconds *= START_FACTOR
        else:
            self._child.stay_quiet(0)
        # After it was started: whoever ends this process from now on ends it, too.
        _require_life()
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
        if self._failures >= MAX_FAILURES:
            # Counted anew when somebody tries again.
            self._failures = 0
            raise ScorerError(f"“{self.name}” failed {MAX_FAILURES} times in a row; at last {error}")


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


def _require_life() -> None:
    if _ending.is_set():
        raise ScorerInterrupted


def _line(kind: ObjectKind, scored: StoredObject) -> bytes | NoScore:
    about = {**dict(scored.told), "kind": kind.name, "content": scored.content}
    if kind.medium != "words":
        try:
            file = kind.media(scored, RenderOptions(raster=True))
        except OSError:
            return NoScore("its file cannot be read")
        assert file is not None
        about |= {"media_type": file.media_type, kind.medium: base64.b64encode(file.body).decode()}
    # ASCII: whatever characters end a line elsewhere, none of them is in it.
    line = json.dumps(about).encode() + b"\n"
    if len(line) > MAX_OBJECT_BYTES:
        return NoScore(f"it takes {len(line):,} bytes to send; {MAX_OBJECT_BYTES:,} are possible")
    return line
