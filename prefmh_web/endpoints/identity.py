"""Which model a reply says that it is from: its `model` and its `system_fingerprint`.

A judge is one model. A server may load another under the same address, and says so in its replies; votes of two models
are no votes of one judge. `Admitted` says whose replies count: those of the identities given, or, where none is known
yet, of whoever answers first.
"""

import threading
from collections.abc import Collection
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from prefmh_web.endpoints.errors import NeedsAttention

LONGEST_NAME = 200


@dataclass(frozen=True, order=True)
class Identity:
    """What a reply says it is from; empty where it does not say."""

    model: str = ""
    system_fingerprint: str = ""

    def __str__(self) -> str:
        model = f"“{self.model}”" if self.model else "a model without a name"
        return f"{model} (fingerprint {self.system_fingerprint})" if self.system_fingerprint else model


class Changed(NeedsAttention):
    """The server answers as another model than before."""

    kind = "changed"

    def __init__(self, now: Identity, before: Collection[Identity]) -> None:
        known = " or ".join(map(str, sorted(before)))
        super().__init__(f"the server now answers as {now}, and has been asked as {known}")
        self.now = now


class Admitted:
    """Whose replies count. Jobs on several threads may ask it.

    Args:
        identities: those that count; where there is none, that of the first reply checked does.
    """

    def __init__(self, identities: Collection[Identity] = ()) -> None:
        self._identities = set(identities)
        self._lock = threading.Lock()
        self.change: Changed | None = None

    def check(self, identity: Identity | None = None) -> None:
        """Check a reply's identity; without one, check that no reply so far has shown a change.

        Raises:
            Changed: it does not count, or an earlier reply did not.
        """
        with self._lock:
            if identity is not None:
                self._identities = self._identities or {identity}
                if identity not in self._identities:
                    self.change = Changed(identity, self._identities)
            if self.change is not None:
                raise self.change


def identity_of(reply: dict[str, Any]) -> Identity:
    """Return what a reply says it is from, whatever it holds: what is no text counts as not said."""
    return Identity(_name(reply.get("model")), _name(reply.get("system_fingerprint")))


def _name(found: Any) -> str:
    if not isinstance(found, str):
        return ""
    # No control characters, and none that a database or a page cannot hold.
    text = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in found)
    if len(text) <= LONGEST_NAME:
        return text
    # Cut, but two long names that differ stay two names.
    digest = sha256(found.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return f"{text[: LONGEST_NAME - 17]}…{digest}"
