"""Which object is A and which is B.

A is the object that stands first. Where the proposal stands is drawn for each vote by one of `sampler.ORDER_LABELS`, before
anybody is asked, and kept by the caller with the vote.
"""

from __future__ import annotations

from typing import TypeVar

Shown = TypeVar("Shown")


def in_order(current: Shown, proposal: Shown, proposal_first: bool) -> tuple[Shown, Shown]:
    """Return the two in the order of A and B."""
    return (proposal, current) if proposal_first else (current, proposal)


def label_is_for_proposal(label: str, proposal_first: bool) -> bool:
    """Say whether a label is a vote for the proposal."""
    return (label == "A") == proposal_first


def preference_for_proposal(preference_for_first: float, proposal_first: bool) -> float:
    """Return the probability of a vote for the proposal, given that of a vote for A."""
    return preference_for_first if proposal_first else 1.0 - preference_for_first
