"""Structured logs: one JSON object a line, with the campaign, chain and step that a message is about, without secrets.

A message names them itself (`extra={"campaign": 3}`), or stands below a `context`, as everything a task says does.

Invitations, who is sent to them, links that sign in, cookies and bearer tokens must stand in no log: whoever reads it
could otherwise vote in a campaign, or be its researcher for a day. Two nets, so that neither a logger nor a handler of
somebody else's gets by:

    SafeRecord   every log record of this process: message, arguments, traceback and stack (`install`)
    redacted     once more over each finished line, by both formatters: extra fields, whatever else

That a worker or beat is alive is told by a file, `HEARTBEAT_FILE`, that a worker touches with each heartbeat to the
broker and beat with each task it sends. A container's health check looks at the age of it, which costs no Python start.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar, Token
from types import MappingProxyType

from celery import signals
from django.conf import settings
from pythonjsonlogger.core import RESERVED_ATTRS
from pythonjsonlogger.json import JsonFormatter as _JsonFormatter

from prefmh_web.transport import refusals

_context: ContextVar[Mapping[str, object]] = ContextVar("log_context", default=MappingProxyType({}))


@contextmanager
def context(**fields: object) -> Iterator[None]:
    """Let every message below carry these fields."""
    token = _context.set({**_context.get(), **fields})
    try:
        yield
    finally:
        _context.reset(token)


class ContextFilter(logging.Filter):
    """Adds the fields of the surrounding `context` that a message does not name itself."""

    def filter(self, record: logging.LogRecord) -> bool:
        for name, value in _context.get().items():
            if not hasattr(record, name):
                setattr(record, name, value)
        return True


class LineFormatter(logging.Formatter):
    """One line for people: time, level, logger and message."""

    def __init__(self) -> None:
        super().__init__("{asctime} {levelname} {name}: {message}", style="{")

    def format(self, record: logging.LogRecord) -> str:
        return redacted(super().format(record))


class JsonFormatter(_JsonFormatter):
    """One object a line: time (UTC, ISO 8601), level, logger, message, and whatever the message was given."""

    def __init__(self) -> None:
        super().__init__(
            "%(levelname)s %(name)s %(message)s",
            rename_fields={"levelname": "level", "name": "logger"},
            timestamp="time",
            # Added by uvicorn for terminals, and a request object that no line could hold.
            reserved_attrs=(*RESERVED_ATTRS, "color_message", "request"),
        )

    def format(self, record: logging.LogRecord) -> str:
        return redacted(super().format(record))


REDACTED = "[redacted]"
# What was taken out already stays as it is, however often a text comes by.
_STILL_THERE = rf"(?!{re.escape(REDACTED)})"
# Where a value in an address, a header, a repr or a line of JSON ends.
_VALUE = r"(?![\[(])(?:(?!%2f|%26)[^/?#&;,\s\"'<>\\)\]}])+"
_NAMED = re.compile(
    # The path of an invitation, also inside another address: /join/TOKEN/vote/, next=%2Fjoin%2FTOKEN%2F
    rf"(?P<before>(?:/|%2f)join(?:/|%2f)+"
    # What is called by a telling name: sesame=..., {'sesame': ['...']}, "prefmh_session": "..."
    r"|\b(?:sesame|prefmh_session|prefmh_csrf|prefmh_arrival|csrfmiddlewaretoken|sessionid|token)(?:=|%3d|[\"']?\s*:\s*)"
    rf"{_STILL_THERE}[\[(]?(?:b?[\"'])?"
    rf"|\bbearer\s+){_VALUE}",
    re.IGNORECASE,
)
# What a platform's link says of the person whom it sends: /join/TOKEN/?PROLIFIC_PID=..., also inside another address;
# and as a server takes an address apart, {'query_string': b'PROLIFIC_PID=...'}.
_SENT = re.compile(
    r"(?P<before>(?:/|%2f)join(?:/|%2f)[^\s?\"'<>]{0,200}?(?:\?|%3f)|query_string[\"']?\s*[:=]\s*b?[\"']?)[^\s\"'<>]+",
    re.IGNORECASE,
)
# An invitation standing alone: 16 bytes in base64url, whose last letter holds two bits. A word that happens to look
# like one is no loss.
_ALONE = re.compile(r"(?<![\w-])(?=[\w-]*[A-Z])(?=[\w-]*[a-z])[\w-]{21}[AQgw](?![\w-])", re.ASCII)


def redacted(text: str) -> str:
    """Return a text without what lets somebody in."""
    return _ALONE.sub(REDACTED, _NAMED.sub(rf"\g<before>{REDACTED}", _SENT.sub(rf"\g<before>{REDACTED}", text)))


class SafeRecord(logging.LogRecord):
    """A log record that tells no secret, whichever handler and formatter it meets."""

    def __init__(self, *args, **kwargs) -> None:
        super().__init__(*args, **kwargs)
        # Uvicorn's access log takes the arguments one by one.
        if isinstance(self.args, tuple):
            self.args = tuple(map(_safe, self.args))
        elif isinstance(self.args, dict):
            self.args = {name: _safe(value) for name, value in self.args.items()}
        if self.exc_info and self.exc_info[1] and (trouble := refusals.disk_trouble(self.exc_info[1])):
            # It comes again with each sweep and each page, and a traceback tells nothing more.
            self.msg, self.exc_info = f"{self.msg}: {trouble}", None
        if self.exc_info and self.exc_info[0]:
            # Formatters write no traceback of their own where there is one.
            self.exc_text = redacted(logging.Formatter().formatException(self.exc_info))
        if self.stack_info:
            self.stack_info = redacted(self.stack_info)

    def getMessage(self) -> str:  # noqa: N802 - the standard library's name
        """Return the whole message, without secrets."""
        return redacted(super().getMessage())


def install() -> None:
    """Make every record of this process a safe one from now on."""
    logging.setLogRecordFactory(SafeRecord)


def _safe(value: object) -> object:
    return redacted(value) if isinstance(value, str) else value


_open: dict[str, Token[Mapping[str, object]]] = {}


@signals.task_prerun.connect
def enter_task(task_id: str, task, args, **_) -> None:
    """Let every message of a task carry its name, and the chain that it works on."""
    fields = {"task": task.name.rpartition(".")[2]}
    if task.name == "prefmh_web.tasks.propose" and args:
        fields["chain_id"] = args[0]
    _open[task_id] = _context.set({**_context.get(), **fields})


@signals.task_postrun.connect
def leave_task(task_id: str, **_) -> None:
    if token := _open.pop(task_id, None):
        _context.reset(token)


@signals.heartbeat_sent.connect
@signals.before_task_publish.connect
def beat(**_) -> None:
    """Touch the heartbeat's file, where there is one."""
    if settings.HEARTBEAT_FILE:
        settings.HEARTBEAT_FILE.touch()
