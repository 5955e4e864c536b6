"""How often chains accept."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Acceptance:
    """How many of the proposals that differed from the current state were accepted, over decided steps of all phases.

    A proposal equal to the current state is accepted whatever anybody answers, so it is none of them.
    """

    accepted: int
    differed: int

    @property
    def share(self) -> float | None:
        """None where no proposal differed."""
        return self.accepted / self.differed if self.differed else None

    @property
    def percent(self) -> str:
        """The share as every page and report writes it."""
        return "–" if self.share is None else f"{self.share:.1%}".replace("%", " %")

    def __str__(self) -> str:
        return f"{self.percent} ({self.accepted:,} of {self.differed:,})"
