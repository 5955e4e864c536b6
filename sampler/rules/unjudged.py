"""Rules that ask no judge: Base, which accepts every draw from p0, and what all such rules share.

A campaign of such a rule has no questions and takes no votes. The paper's method Base is independent draws from p0
without acceptance (section 1.1 of its stories, L1120).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar, Literal

from pydantic import BaseModel, ConfigDict

from sampler.declared import Declared, ui
from sampler.judges.config import JudgeConfig


class UnjudgedConfig(Declared):
    """What rules without judges have in common."""

    objects_shown: ClassVar[int] = 0
    """How many objects a judge sees at a time: there is no judge."""
    asks_judges: ClassVar[bool] = False
    """Whether somebody answers questions."""

    def misfits(self, judges: Sequence[JudgeConfig]) -> Iterator[tuple[str, str]]:
        """Yield that there must be no judge, if there is one."""
        if judges:
            yield "judges", "must be empty, []: this rule asks nobody"

    def unbalanced(self, judges: Sequence[JudgeConfig]) -> Iterator[tuple[str, str]]:
        """Yield nothing: nobody sees two objects in an order."""
        yield from ()

    def kernel_misfits(self, kernel: BaseModel) -> Iterator[tuple[str, str]]:
        """Yield the field and the reason of a kernel that does not go with the rule."""
        yield from ()


class BaseConfig(UnjudgedConfig):
    """Every proposal is accepted, and each is a fresh draw from p0: the states are independent draws from p0."""

    model_config = ConfigDict(
        title="Nobody: each state is an independent draw from p0, always accepted",
        json_schema_extra=ui(
            help="There are no questions, no votes and no links for voters. The states are independent draws from the "
            "objects’ own law: the paper’s method Base."
        ),
    )

    evidence: ClassVar[str] = "none"
    """What decides a step."""
    scorers: ClassVar[tuple[str, ...]] = ()
    """Whose numbers decide a step."""
    kind: Literal["base"] = "base"

    def law(self, judges: Sequence[JudgeConfig]) -> str:
        """Return the law."""
        return "p0(x); each state is an independent draw"

    def kernel_misfits(self, kernel: BaseModel) -> Iterator[tuple[str, str]]:
        """Yield that the kernel must be independent draws: anything else that is always accepted leaves p0."""
        if getattr(kernel, "kind", None) != "independent":
            yield "kernel", "must be 'independent' under rule 'base': only fresh draws from p0 may all be accepted"
