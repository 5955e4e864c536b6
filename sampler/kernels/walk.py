"""A walk: propose the state after L steps of the kernel's chain without judges. log r0 = 0.

A person's vote is the scarce thing, and a question about one small move tells little. Let K be a kernel with its exact
base ratio, and K_0 the Metropolis-Hastings chain that proposes with K and accepts with min(1, r0). K_0 is reversible
for p0, and so is K_0 taken L times: p0(x) K_0^L(x, x') = p0(x') K_0^L(x', x). With q = K_0^L the base ratio is 1, and
the judges are asked about a pair that lies L steps apart.

This needs

* the same kernel in all L steps, with the same parameters. A random part of a mixture at each step is fine; two kernels
  in turns are not, because their product is not reversible;
* exactly L steps. A walk that stops at its first move, or starts again until it has moved, has another distribution;
* an L that nothing the chain has seen decides: it stands in the config, or is drawn from a distribution that stands
  there. Each L has base ratio 1 by itself, so their mixture is exact. A declared warm-up may choose L once
  (`warm_up.py`).

A walk may end where it began. Such a step needs no vote.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Generic, Literal

import numpy as np
from pydantic import ConfigDict, Field, field_serializer, field_validator, model_validator

from sampler.chain import FirstSteps, Kernel, Proposal, State, after_steps
from sampler.declared import Declared, Sparse, ui
from sampler.kernels.discrete import IndependentConfig
from sampler.kernels.mixture import SUM_TO_ONE, ComponentConfig, Mixture, MixtureConfig, Weights
from sampler.kernels.suffix import least_cut
from sampler.kernels.warm_up import LONGEST_WALK, NotChosen, WarmUp

# So many steps of a fast kernel take less than a millisecond.
_FAST_STEPS = 512


class WalkLength(Declared):
    """One length, and the probability that a step walks so far."""

    weight: float = Field(gt=0, le=1, title="Share of the steps, in percent", json_schema_extra=ui(unit="percent"))
    length: int = Field(ge=1, le=LONGEST_WALK, title="Moves")


class WalkConfig(Sparse):
    """The part of a config that says: between two questions walk so many steps of this kernel.

    Args:
        kernel: one kernel, or a mixture.
        length: L, or the distribution of L: at most eight lengths with their probabilities. With a warm-up it is one
            number, and used only if the warm-up is ended before it has chosen.
        warm_up: how the first steps find L; None, or 0 in a config, for no warm-up.
    """

    model_config = ConfigDict(title="A walk: several moves between two pairs")
    unwritten: ClassVar[tuple[str, ...]] = ("warm_up",)

    kind: Literal["walk"] = "walk"
    kernel: Annotated[ComponentConfig | MixtureConfig, Field(discriminator="kind", title="Move")]
    length: Annotated[tuple[WalkLength, ...], SUM_TO_ONE] = Field(
        min_length=1, max_length=8, title="Moves between two pairs", json_schema_extra=ui(rows="Add a length")
    )
    warm_up: WarmUp | None = Field(
        default=None,
        title="Warm-up",
        description="In the first steps, pairs of several distances are tried; then the campaign keeps the one at "
        "which votes move the chains furthest. The result stays exact. Leave all of it empty for none.",
    )

    @field_validator("warm_up", mode="before")
    @classmethod
    def _none_is_zero(cls, warm_up: Any) -> Any:
        return None if type(warm_up) is int and warm_up == 0 else warm_up

    @field_validator("length", mode="before")
    @classmethod
    def _one_length(cls, length: Any) -> Any:
        if isinstance(length, list | tuple):
            return length
        if type(length) is not int or not 1 <= length <= LONGEST_WALK:
            raise ValueError(f"must be a whole number from 1 to {LONGEST_WALK}, or a list of weights and lengths")
        return ({"weight": 1, "length": length},)

    @field_serializer("length")
    def _written(self, length: tuple[WalkLength, ...]) -> int | list[dict[str, Any]]:
        return length[0].length if len(length) == 1 else [each.model_dump() for each in length]

    @model_validator(mode="after")
    def _is_exact(self) -> WalkConfig:
        if any(getattr(part, "convention", "exact") != "exact" for part in self.components):
            raise ValueError("a walk needs the kernel's exact base ratio; use the convention 'exact'")
        if self.warm_up is not None and len(self.length) > 1:
            raise ValueError("length must be one number where a warm-up chooses it")
        return self

    @property
    def weighted(self) -> tuple[tuple[float, ComponentConfig], ...]:
        """The parts of the kernel that walks, with their probabilities."""
        inner = self.kernel
        return tuple((p.weight, p.kernel) for p in inner.parts) if isinstance(inner, MixtureConfig) else ((1.0, inner),)

    @property
    def components(self) -> tuple[ComponentConfig, ...]:
        """The parts of the kernel that walks."""
        return tuple(part for _, part in self.weighted)

    @property
    def may_be_always_even(self) -> bool:
        """True when all walks may have an even length: then a chain may never leave one half of a graph."""
        chosen = () if self.warm_up is None else self.warm_up.grid
        return all(each.length % 2 == 0 for each in self.length) or any(length % 2 == 0 for length in chosen)

    @property
    def has_parts(self) -> bool:
        """True where steps draw their length, if only those of a warm-up."""
        return len(self.length) > 1 or self.warm_up is not None

    def part(self, rng: np.random.Generator, step: int) -> int | None:
        """Return which of several lengths a step walks, by its index in the config; None where there is one.

        Args:
            rng: the PROPOSAL stream of the step, from its beginning.
            step: its number.
        """
        if self.warm_up is not None:
            return self.warm_up.part(rng, step)
        if len(self.length) == 1:
            return None
        return Weights([each.weight for each in self.length]).index(rng.random())

    def validation_errors(self, space: str) -> Iterator[tuple[str, str]]:
        """Yield the field and what is wrong with it where a walk does not fit a kind of space."""
        if space == "model-texts" and any(getattr(part, "cut", "limit") != "limit" for part in self.components):
            message = (
                "a walk of texts that a model on a server writes needs the cut 'limit': then one request is enough"
            )
            yield "kernel.kernel", message

    def first_steps(self, space: Any) -> FirstSteps[Any] | None:
        """Return the kernel of the warm-up on this space; None without a warm-up."""
        if self.warm_up is None:
            return None
        walks = [self._walk(space, length) for length in self.warm_up.grid]
        return FirstSteps(self.warm_up.steps, Mixture(self.warm_up.shares, walks))

    def after_warm_up(self, space: Any, length: int | None) -> Kernel[Any]:
        """Return the kernel of the steps after the warm-up; one that refuses before their length is chosen."""
        return NotChosen() if length is None else self._walk(space, length)

    def build(self, space: Any) -> Kernel[Any]:
        """Return the kernel on this space, which every part must move in, with the config's own length."""
        walks = [self._walk(space, each.length) for each in self.length]
        return walks[0] if len(walks) == 1 else Mixture([each.weight for each in self.length], walks)

    def _walk(self, space: Any, length: int) -> Kernel[Any]:
        # So many fresh draws are one.
        if all(isinstance(part, IndependentConfig) for part in self.components):
            return self.components[0].build(space)
        return least_cut(space, self.weighted, length) or WalkKernel(self.kernel.build(space), length)


class WalkKernel(Generic[State]):
    """Propose the state after L steps of a kernel's chain without judges; log r0 = 0.

    Args:
        kernel: what each step proposes with; its base ratio must be exact.
        length: L, at least 1.

    Raises:
        ValueError: the length is less than 1.
    """

    def __init__(self, kernel: Kernel[State], length: int) -> None:
        if length < 1:
            raise ValueError(f"length must be at least 1, not {length}")
        self._kernel, self._length = kernel, length

    @property
    def is_fast(self) -> bool:
        """True where so many steps of the kernel are; see `Plan.is_fast_at`."""
        return bool(getattr(self._kernel, "is_fast", False)) and self._length <= _FAST_STEPS

    def propose(self, rng: np.random.Generator, state: State) -> Proposal[State]:
        """Walk from `state`. It may be where the walk ends."""
        return Proposal(after_steps(self._kernel, rng, state, self._length), 0.0)
