"""How long a server that refuses for now asks to wait: read from its headers, in whichever form it says so."""

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime

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
# As in 6m0s and 59.9s; a number alone is one of seconds.
_DURATION = re.compile(r"(?:\d{1,9}(?:\.\d{1,9})?(?:ms|h|m|s))+")
_PIECE = re.compile(r"(\d+(?:\.\d+)?)(ms|h|m|s)")


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds of a Retry-After header, which holds a number or a date; None where it is neither."""
    header = headers.get("retry-after")
    if header is None:
        return None
    try:
        seconds = float(header)
    except ValueError:
        try:
            # The one form that servers may send (RFC 9110, 5.6.7).
            date = datetime.strptime(header.strip(), "%a, %d %b %Y %H:%M:%S GMT").replace(tzinfo=UTC)
        except ValueError:
            return None
        seconds = (date - datetime.now(UTC)).total_seconds()
    return _bounded(seconds)


def retry_after_ms(headers: Mapping[str, str]) -> float | None:
    """Return the seconds of a `retry-after-ms` header, as OpenAI and Azure send it."""
    try:
        return _bounded(float(headers["retry-after-ms"]) / 1000)
    except (KeyError, ValueError):
        return None


def reset(headers: Mapping[str, str]) -> float | None:
    """Return the seconds until a limit of OpenAI's that is used up is reset; None where none is said to be."""
    used_up = [
        name for name in ("requests", "tokens") if headers.get(f"x-ratelimit-remaining-{name}", "").strip() == "0"
    ]
    waits = [duration(headers.get(f"x-ratelimit-reset-{name}", "")) for name in used_up]
    known = [wait for wait in waits if wait is not None]
    return max(known) if known else None


def reset_at(headers: Mapping[str, str]) -> float | None:
    """Return the seconds until the time in `x-ratelimit-reset`, in milliseconds since 1970, as OpenRouter sends it."""
    try:
        return _bounded(float(headers["x-ratelimit-reset"]) / 1000 - datetime.now(UTC).timestamp())
    except (KeyError, ValueError):
        return None


def duration(text: str) -> float | None:
    """Return the seconds of a duration such as 6m0s, 20ms or 34.5s; None where it is none."""
    if not _DURATION.fullmatch(text.strip()):
        return None
    return _bounded(sum(float(number) * _UNITS[unit] for number, unit in _PIECE.findall(text)))


def first_said(*waits: float | None) -> float | None:
    """Return the first wait that is known."""
    return next((wait for wait in waits if wait is not None), None)


def _bounded(seconds: float) -> float | None:
    return None if math.isnan(seconds) else min(max(seconds, 0.0), LONGEST_RETRY_AFTER_S)
