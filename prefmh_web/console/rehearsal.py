"""Chains that are walked without being stored: for what a voter would see of a campaign that has not started.

All is computed as the campaign itself would, from its config and seed, and nothing is written. Where a model makes the
objects there is nothing to compute: nobody is asked for a preview.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from django.urls import reverse

import sampler
from prefmh_web.campaigns.models import Campaign, State
from prefmh_web.campaigns.started import context_of
from prefmh_web.campaigns.started.plans import catalog_of
from prefmh_web.console.unstored import Unstored
from sampler.judges import Context

# Of a step that needs no vote, the next one is drawn: so many at most, and for so long.
_MOST_STEPS, _LONGEST_S = 200, 1.0
# Moves between two pairs, at most: more would take too long for a page.
_MOST_MOVES = 512


class NotComputable(Exception):  # noqa: N818 - no error, but what a page tells
    """There is no pair to show before the start; the message says why."""


@dataclass(frozen=True)
class Seen:
    """An object as a page shows it."""

    content: str
    address: str
    context: Context = ()


class Rehearsal:
    """The chains of a draft, whose list has been read if it has one.

    Raises:
        NotComputable: a model makes the objects, or the walk is too long.
    """

    def __init__(self, campaign: Campaign):
        config = campaign.config
        if isinstance(config.space, (sampler.ServedTextsConfig, sampler.ServedImagesConfig)):
            raise NotComputable("A model makes the objects once the campaign has started. These only hold their place.")
        if _moves_of(config) > _MOST_MOVES:
            raise NotComputable("So many moves between two pairs take a while, so these are samples.")
        self._config, self._campaign = config, campaign
        try:
            self.plan = config.build(None if config.generates else catalog_of(campaign))
        except sampler.ConfigError as error:
            raise NotComputable(f"The first pair cannot be drawn yet: {error}.") from error

    def position(self, chain: int, step: int = 0, code: str = "") -> sampler.Position[Any]:
        """Return where a chain stands; at its start if there is no code."""
        if not code:
            return sampler.begin(self.plan, chain)
        state = self._space.decode(code) if self._config.generates else int(code)
        return sampler.Position(chain, step, state)

    def code_of(self, state: Any) -> str:
        """Return what `position` takes back."""
        return str(self._space.encode(state)) if self._config.generates else str(state)

    def next_pair(self, position: sampler.Position[Any]) -> sampler.Comparison[Any]:
        """Return the next comparison of a chain that needs a vote.

        Raises:
            NotComputable: there is none within the steps that are looked at.
        """
        until = time.monotonic() + _LONGEST_S
        for _ in range(_MOST_STEPS):
            drawn = sampler.ask(self.plan, position)
            verdict = sampler.tell(drawn, sampler.Tally.empty(len(drawn.budgets)))
            if verdict is sampler.Verdict.UNDECIDED and not drawn.is_identity:
                return drawn
            position = sampler.advance(position, drawn, verdict)
            if time.monotonic() > until:
                break
        raise NotComputable("The first steps of this chain need no vote, so these are samples.")

    def seen(self, state: Any, beside: Any) -> Seen:
        """Return how an object of a pair is shown beside the other."""
        kind = self._config.space.objects
        if not self._config.generates:
            rows = {row.place: row for row in self._rows(state, beside)}
            return _seen_of(rows[state], rows[beside].content, self._config)
        space = self._space
        code = space.encode(state) if kind == "images" else ""
        other = space.content(beside) if kind == "molecules" else ""
        shown = Unstored(kind, space.content(state), code, other)
        return Seen(shown.content, shown.address)

    def _rows(self, *places: int) -> list[State]:
        return list(State.objects.filter(campaign=self._campaign, place__in=places))

    @property
    def _space(self) -> sampler.Space[Any]:
        space: Any = self.plan.space
        return space


def _seen_of(row: State, beside: str, config: sampler.ChainConfig) -> Seen:
    kind = config.space.objects
    if kind == "images":
        address = reverse("console:picture", args=[row.pk])
    else:
        address = Unstored(kind, row.content, "", beside).address if kind == "molecules" else ""
    return Seen(row.content, address, context_of(row, config))


def _moves_of(config: sampler.ChainConfig) -> int:
    kernel: Any = config.kernel
    return max(each.length for each in kernel.length) if kernel.kind == "walk" else 1
