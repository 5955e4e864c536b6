"""How long a server that refuses for now asks to wait, read from its headers and its error in whatever form it says so.

The forms are those of RFC 9110 (`retry-after`), OpenAI and Azure (`retry-after-ms`, `x-ratelimit-reset-requests` as
6m0s, "try again in 20s"), OpenRouter (`x-ratelimit-reset`, also repeated in the error's metadata) and Google
(`RetryInfo`).
"""

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

LONGEST_RETRY_AFTER_S = 3600.0
# What is read of a reply's header for this.
HEADERS = (
    "retry-after",
    "retry-after-ms",
    "x-ratelimit-remaining-requests",
    "x-ratelimit-remaining-tokens",
    "x-ratelimit-reset",
    "x-ratelimit-reset-requests",
    "x-ratelimit-reset-tokens",
)
_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
# As in 6m0s and 59.9s.
_PIECE = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)(ms|h|m|s)")
_DURATION = re.compile(rf"(?:{_PIECE.pattern})+")
_IN_WORDS = re.compile(rf"try again in ((?:{_PIECE.pattern})+|\d{{1,9}}(?:\.\d{{1,9}})?(?= ?sec))", re.IGNORECASE)
_LONGEST_READ = 2_000


def asked(headers: Mapping[str, str], error: Mapping[str, Any]) -> float | None:
    """Return how many seconds an error asks to wait, by the form that says it best; None where it does not say.

    Args:
        headers: of the reply, by their names in small letters.
        error: the object that describes the error; empty where there is none.
    """
    metadata = error.get("metadata")
    repeated = metadata.get("headers") if isinstance(metadata, dict) else None
    named = {str(name).lower(): str(value) for name, value in repeated.items()} if isinstance(repeated, dict) else {}
    said = (
        _number(headers.get("retry-after-ms"), 1000),
        duration(headers.get("retry-after")),
        _until(headers.get("retry-after")),
        _reset(headers),
        _reset_at(headers),
        _reset_at(named),
        *map(duration, _delays(error)),
    )
    return next((wait for wait in said if wait is not None), None)


def duration(text: str | None) -> float | None:
    """Return the seconds of a duration such as 6m0s, 20ms, 34.5s or 20; None where it is none."""
    if text is None or not _DURATION.fullmatch(text.strip()):
        return _number(text)
    return _bounded(sum(float(number) * _UNITS[unit] for number, unit in _PIECE.findall(text)))


def _until(header: str | None) -> float | None:
    """Return the seconds until a date, in the one form that servers may send (RFC 9110, 5.6.7)."""
    try:
        date = datetime.strptime((header or "").strip(), "%a, %d %b %Y %H:%M:%S GMT").replace(tzinfo=UTC)
    except ValueError:
        return None
    return _bounded((date - datetime.now(UTC)).total_seconds())


def _reset(headers: Mapping[str, str]) -> float | None:
    """Return the seconds until the limits of OpenAI's that are used up are reset."""
    used_up = [
        name for name in ("requests", "tokens") if headers.get(f"x-ratelimit-remaining-{name}", "0").strip() == "0"
    ]
    waits = [duration(headers.get(f"x-ratelimit-reset-{name}")) for name in used_up]
    return max((wait for wait in waits if wait is not None), default=None)


def _reset_at(headers: Mapping[str, str]) -> float | None:
    """Return the seconds until the time in `x-ratelimit-reset`, in milliseconds since 1970."""
    try:
        return _bounded(float(headers["x-ratelimit-reset"]) / 1000 - datetime.now(UTC).timestamp())
    except (KeyError, ValueError):
        return None


def _delays(error: Mapping[str, Any]) -> list[str]:
    """Return the delays that an error holds: Google's, and those in words."""
    details = error.get("details")
    found = [each.get("retryDelay") for each in details if isinstance(each, dict)] if isinstance(details, list) else []
    message = error.get("message")
    if isinstance(message, str) and (match := _IN_WORDS.search(message[:_LONGEST_READ])):
        found.append(match.group(1))
    return [delay for delay in found if isinstance(delay, str)]


def _number(text: str | None, per_second: float = 1.0) -> float | None:
    try:
        return None if text is None else _bounded(float(text) / per_second)
    except ValueError:
        return None


def _bounded(seconds: float) -> float | None:
    return None if math.isnan(seconds) else min(max(seconds, 0.0), LONGEST_RETRY_AFTER_S)
