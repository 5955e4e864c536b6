"""What every space offers, whatever its objects are.

A state is hashable and compares by value. The record keeps two texts of it: `encode`, from which `decode` makes the
very same state again, and `content`, what a person reads or what names it. To add a space: copy one of the files
beside this file, and follow the list in `sampler.spaces`.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np

from sampler.chain import State

Tokens = tuple[int, ...]
"""A text as a language model writes it."""


@runtime_checkable
class Space(Protocol[State]):
    """The objects X with their base law p0, as far as the record and the pages need them."""

    def start(self, rng: np.random.Generator, chain: int) -> State:
        """Draw x^(0) of chain number `chain`."""
        ...

    def encode(self, state: State) -> str:
        """Return the state as text that `decode` reads; equal states give equal texts."""
        ...

    def decode(self, code: str) -> State:
        """Return the state that `encode` wrote.

        Raises:
            ValueError: the text is none that `encode` writes for this space.
        """
        ...

    def is_close(self, one: State, other: State) -> bool:
        """True when two states are the same but for what another machine may round otherwise."""
        ...

    def content(self, state: State) -> str:
        """Return what a person reads: the text, the SMILES; of an image, a name."""
        ...


class Refreshing(Protocol[State]):
    """A space that can draw from p0: what the kernel `independent` needs."""

    def refresh(self, rng: np.random.Generator, state: State) -> State:
        """Draw x' ~ p0 whatever `state` is, but for what never changes along a chain (a text's prompt)."""
        ...
