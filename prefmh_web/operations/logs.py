"""Structured logs: one JSON object a line, with the campaign, chain and step that a message is about.

A message names them itself (`extra={"campaign": 3}`), or stands below a `context`, as everything a task says does.
"""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType

from pythonjsonlogger.json import JsonFormatter as _JsonFormatter

from prefmh_web.operations.secrecy import redacted

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
            reserved_attrs=(*_reserved(), "color_message", "request"),
        )

    def format(self, record: logging.LogRecord) -> str:
        return redacted(super().format(record))


def _reserved() -> list[str]:
    return [*logging.makeLogRecord({}).__dict__, "message", "asctime", "taskName"]
