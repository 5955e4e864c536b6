"""A program that is kept running and answers each line on its standard input with one on its standard output.

One line is in flight at a time, and whatever comes without being asked for ends the program: so an answer is never
taken for another line's. Once something went wrong, nothing more is read from it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from typing import Any, TypeVar

Result = TypeVar("Result")

MOST_REPLY_BYTES = 4096
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
        options: dict[str, Any] = {"env": environment(os.environ), "start_new_session": True}
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
            return b"\n" in heard.said or heard.has_closed or len(heard.said) > MOST_REPLY_BYTES

        with self._killed_by_an_error():
            self._input.write(line)
            self._run(heard.until(is_settled, seconds))
            if b"\n" in heard.said:
                return self._one_line()
            if len(heard.said) > MOST_REPLY_BYTES:
                raise ChildError(f"it wrote a line of more than {MOST_REPLY_BYTES} bytes: {shown(heard.said)}")
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


def environment(ours: Mapping[str, str]) -> dict[str, str]:
    """Return what a program gets of our environment."""
    return {name: value for name, value in ours.items() if name in _PASSED or name.startswith(_PASSED_GROUPS)}


def shown(line: bytes) -> str:
    """Return the beginning of what a program wrote, for a person to read."""
    return f"“{_printable(line[:_SHOWN_WORDS])[:80]}”"


def _printable(words: bytes) -> str:
    text = words.decode(errors="replace")
    return " ".join("".join(each if each.isprintable() else " " for each in text).split())
