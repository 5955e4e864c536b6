"""A program that is kept running and answers each line on its standard input with one on its standard output.

One line is in flight at a time, and whatever comes without being asked for ends the program: so an answer is never
taken for another line's. Once something went wrong, nothing more is read from it.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence

MOST_REPLY_BYTES = 4096
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


class Child:
    """A running program.

    Args:
        words: the program and its arguments.

    Raises:
        ChildError: it cannot be started.
    """

    def __init__(self, words: Sequence[str]) -> None:
        try:
            # A group of its own, so that what it has started goes with it.
            self._process = subprocess.Popen(  # noqa: S603 - the site's administrator has declared it
                words,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=environment(os.environ),
                start_new_session=True,
                bufsize=0,
            )
        except (OSError, ValueError) as error:
            raise ChildError(f"it cannot be started: {error}") from error
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        self._in, self._out, self._err = (each.fileno() for each in (process.stdin, process.stdout, process.stderr))
        for descriptor in (self._in, self._out, self._err):
            os.set_blocking(descriptor, False)
        self._owner = os.getpid()
        self._said = b""
        self._words = b""
        self.is_closed = False
        self._ready: set[int] = set()
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._out, selectors.EVENT_READ)
        self._selector.register(self._err, selectors.EVENT_READ)

    def answer(self, line: bytes, seconds: float) -> bytes:
        """Send a line, which ends with a newline, and return the one that comes back, without its end.

        Raises:
            OutOfStepError: there was more than one.
            ChildError: none came in time, it was too long, or the program has ended.
        """
        try:
            return self._answer(memoryview(line), time.monotonic() + seconds, seconds)
        except BaseException:
            # Also where this thread is interrupted: a late answer must find nobody.
            self.kill()
            raise

    def stay_quiet(self, seconds: float) -> None:
        """Return after so many seconds in which it wrote nothing on its standard output.

        Raises:
            OutOfStepError: it did.
        """
        deadline = time.monotonic() + seconds
        try:
            # At least one look, which takes in what has come already.
            while self._look(max(0.0, deadline - time.monotonic())) and not self._said:
                if time.monotonic() >= deadline:
                    break
            if self._said:
                raise OutOfStepError(f"it wrote a line that nobody had asked for: {_shown(self._said)}")
        except BaseException:
            self.kill()
            raise

    def close(self) -> None:
        """Let it end: its input ends, it is asked to, and it is killed if it does not."""
        if self.is_closed or self._owner != os.getpid():
            return
        with contextlib.suppress(OSError):
            self._process.stdin.close()  # type: ignore[union-attr]  # it has one: see above
        self._signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_GRACE_S)
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
        self._process.wait()
        self._selector.close()
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            with contextlib.suppress(OSError):
                stream.close()  # type: ignore[union-attr]  # it has all three

    def _answer(self, unsent: memoryview, deadline: float, seconds: float) -> bytes:
        self._selector.register(self._in, selectors.EVENT_WRITE)
        while True:
            if b"\n" in self._said:
                return self._one_line(bool(unsent))
            if len(self._said) > MOST_REPLY_BYTES:
                raise ChildError(f"it wrote a line of more than {MOST_REPLY_BYTES} bytes: {_shown(self._said)}")
            left = deadline - time.monotonic()
            if left <= 0:
                raise ChildError(f"it did not answer within {seconds:g} s{self._last_words()}")
            if not self._look(left):
                raise ChildError(self._ending())
            if self._in in self._ready and unsent:
                unsent = self._send(unsent)
            if not unsent and self._in in self._selector.get_map():
                self._selector.unregister(self._in)

    def _send(self, unsent: memoryview) -> memoryview:
        try:
            return unsent[os.write(self._in, unsent[:65_536]) :]
        except BlockingIOError:
            return unsent
        except BrokenPipeError:
            raise ChildError(self._ending()) from None

    def _one_line(self, is_unsent: bool) -> bytes:
        line, _, more = self._said.partition(b"\n")
        if more:
            raise OutOfStepError(f"it wrote more than one line for one object: {_shown(self._said)}")
        if is_unsent:
            raise OutOfStepError(f"it wrote before it had read the object: {_shown(line)}")
        self._said = b""
        return line

    def _look(self, seconds: float) -> bool:
        """Wait for something to happen and take in what it wrote; False where its output has ended."""
        self._ready = {key.fd for key, _ in self._selector.select(seconds)}
        if self._err in self._ready:
            self._take_words()
        if self._out not in self._ready:
            return True
        try:
            some = os.read(self._out, 65_536)
        except BlockingIOError:
            return True
        self._said += some
        return bool(some)

    def _take_words(self) -> None:
        try:
            some = os.read(self._err, 65_536)
        except BlockingIOError:
            return
        if not some:
            self._selector.unregister(self._err)
        self._words = (self._words + some)[-_KEPT_WORDS:]

    def _ending(self) -> str:
        try:
            code: int | None = self._process.wait(_GRACE_S)
        except subprocess.TimeoutExpired:
            return f"it closed its input or output{self._last_words()}"
        how = f"was ended by signal {-code}" if code is not None and code < 0 else f"ended with status {code}"
        return f"it {how}{self._last_words()}"

    def _last_words(self) -> str:
        if self._err in self._selector.get_map():
            self._take_words()
        words = _printable(self._words)
        return f"; its last words: {words[-_SHOWN_WORDS:]}" if words else ""

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)


def environment(ours: Mapping[str, str]) -> dict[str, str]:
    """Return what a program gets of our environment."""
    return {name: value for name, value in ours.items() if name in _PASSED or name.startswith(_PASSED_GROUPS)}


def _shown(line: bytes) -> str:
    return f"“{_printable(line[:_SHOWN_WORDS])[:80]}”"


def _printable(words: bytes) -> str:
    text = words.decode(errors="replace")
    return " ".join("".join(each if each.isprintable() else " " for each in text).split())
