"""One request to a webhook: bounded in time and in what is read of the answer, whatever the receiver does.

The rules for addresses are those of model servers (`endpoints/addresses.py`).
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import httpx
from django.conf import settings

from prefmh_web.campaigns.models import DeliveryAttempt
from prefmh_web.endpoints.addresses import WEBHOOKS, CheckedTransport, checked_url
from prefmh_web.endpoints.connections import Allowance, within
from prefmh_web.endpoints.errors import EndpointError

# What may come over the wire, its header included; of the body, far less is read.
_MOST_ON_THE_WIRE = 2**20
# A character takes four bytes at most.
_MOST_READ = 4 * DeliveryAttempt.MOST_REPLY


@dataclass(frozen=True)
class Answer:
    """What came of a request.

    Args:
        seconds: how long it took.
        code: of HTTP; None without an answer.
        reply: how the answer begins.
        problem: why it failed; empty if it did not.
    """

    seconds: float
    code: int | None = None
    reply: str = ""
    problem: str = ""


def post(url: str, body: bytes, headers: dict[str, str]) -> Answer:
    """Send a request; no redirect is followed. Only an answer of 200 to 299 is a success, however long its body is."""
    began = time.monotonic()
    try:
        code, reply = _exchange(url, body, headers)
    except EndpointError as error:
        return Answer(time.monotonic() - began, problem=error.reason)
    return Answer(time.monotonic() - began, code, reply, _problem(code))


def _exchange(url: str, body: bytes, headers: dict[str, str]) -> tuple[int, str]:
    # Checked again: whoever runs the site may have taken the host off the list.
    address = checked_url(url, WEBHOOKS)
    # From the look-up of the name to what is read of the answer.
    allowance = Allowance(settings.WEBHOOK_TIMEOUT_SECONDS, _MOST_ON_THE_WIRE, is_tls=address.startswith("https:"))
    with (
        httpx.Client(transport=CheckedTransport(WEBHOOKS), follow_redirects=False, trust_env=False) as client,
        within(allowance),
        client.stream("POST", address, content=body, headers=_usual | headers) as response,
    ):
        return response.status_code, _beginning(response)


_usual = {"User-Agent": "prefmh-webhooks", "Accept-Encoding": "identity", "Connection": "close"}


def _beginning(response: httpx.Response) -> str:
    """Return how an answer begins, as it came; what is left of it is not read."""
    content = b""
    try:
        for piece in response.iter_raw():
            content += piece
            if len(content) >= _MOST_READ:
                break
    except EndpointError:
        # Its status has come, and says whether it was taken in.
        pass
    text = content[:_MOST_READ].decode("utf-8", "replace")
    return "".join(c if c.isprintable() or c == "\n" else " " for c in text)[: DeliveryAttempt.MOST_REPLY]


def _problem(code: int) -> str:
    if 200 <= code < 300:
        return ""
    if 300 <= code < 400:
        return "the receiver answered with a redirect, which is not followed; enter its final address"
    return f"the receiver answered {code}"
