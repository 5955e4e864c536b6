"""Signatures as Standard Webhooks has them (https://www.standardwebhooks.com), version 1."""

from __future__ import annotations

import base64
import hashlib
import hmac


def signature(key: bytes, event_id: str, timestamp: str, body: bytes) -> str:
    """Return what a receiver compares: HMAC-SHA256 of `id.timestamp.body`, in base64.

    Args:
        timestamp: of the attempt, in seconds since 1970, so that a request that was recorded is not believed later.
    """
    signed = f"{event_id}.{timestamp}.".encode() + body
    return "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
