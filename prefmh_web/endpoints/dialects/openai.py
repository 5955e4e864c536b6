"""OpenAI's chat models, and whatever speaks as they do and is not known better.

https://platform.openai.com/docs/api-reference/chat/create and https://platform.openai.com/docs/guides/rate-limits (as
of 2026-11-23). A field that is not known is refused with a 400. `max_tokens` is deprecated there, and chat models still
take it; servers alike often know nothing else. A 429 comes with `retry-after-ms` or `retry-after`, or with
`x-ratelimit-*`, whose times are written as 6m0s.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

from prefmh_web.endpoints import waits
from prefmh_web.endpoints.dialects.server import Server


class OpenAI(Server):
    """Chat models of OpenAI, or alike."""

    hosts: ClassVar[tuple[str, ...]] = ("api.openai.com",)
    has_detail: ClassVar[bool] = True

    def wait(self, headers: Mapping[str, str], reply: Any) -> float | None:
        """Return what its headers ask for: milliseconds, seconds, or the time when a limit that is used up is reset."""
        return waits.first_said(waits.retry_after_ms(headers), waits.retry_after(headers), waits.reset(headers))

    def is_filtered(self, status: int, reply: Any) -> bool:
        """Say whether the error's code is that of the content filter."""
        error = reply.get("error") if isinstance(reply, dict) else None
        return (
            status == 400
            and isinstance(error, dict)
            and error.get("code") in ("content_filter", "content_policy_violation")
        )
