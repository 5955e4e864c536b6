"""Rules that ask no judge: scorers' numbers decide (MARS, QUEST, any score), or nothing does (Base).

    score, form mars          min(1, r0 (s(x') / s(x))^beta)     s = (min(QED, 0.7) + min((10 - SA) / 9, 0.7)) / 2
    score, form power         min(1, r0 (s(x') / s(x))^beta)     s the scorer's number, 0 or more
    score, form exponential   min(1, r0 exp(beta (s(x') - s(x))))
    quest                     min(1, r0 exp((r(x') - r(x)) / beta))     r = logit(clip(s, 1e-3, 1 - 1e-3))
    base                      1: independent draws from p0, the paper's method Base (section 1.1 of its stories, L1120)

An object keeps its numbers, so each is exact for p0 times the factor of s. With r0 = 1, as the released MARS and the
paper's molecular experiment take it, p0 and q are left out of the balance (appendix, de novo molecular design). QUEST
draws the suffix of a translation of n tokens again from a cut chosen uniformly, so r0 = n / n' (appendix, machine
translation). A campaign of such a rule has no questions and takes no votes.

Every object gets its numbers once: whoever keeps the record keeps them with the object.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, ClassVar, Literal

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from sampler.acceptance import FloatArray
from sampler.declared import ui
from sampler.judges.config import JudgeConfig
from sampler.rules.base import RuleDeclared, accept_by_weight, log_odds

Scorer = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]*$", max_length=40)]
Scores = Mapping[str, float]
"""An object's numbers, by scorer."""
MARS_SCORERS = ("qed", "synthetic_accessibility")
"""QED and SA, as this program measures molecules."""
MARS_BETA, QUEST_BETA = 30.0, 0.1
_FORMS = {
    "mars": "MARS: s = ½[min(QED, 0.7) + min((10 − SA)/9, 0.7)], samples p0·s to the power β",
    "power": "Power: samples p0·s to the power β, for scores of 0 or more",
    "exponential": "Exponential: samples p0·exp(β·s)",
}
CLIP = 1e-3
"""QUEST keeps quality estimates so far from 0 and 1."""


def mars_score(qed: npt.ArrayLike, sa: npt.ArrayLike) -> FloatArray:
    """Return s, at most 0.7.

    Args:
        qed: drug-likeness from 0 to 1, any shape.
        sa: synthetic accessibility from 1 (easy) to 10 (hard), the same shape.

    Raises:
        ValueError: a property is out of its range.
    """
    likeness, hardness = np.asarray(qed, dtype=np.float64), np.asarray(sa, dtype=np.float64)
    if not np.all((likeness >= 0) & (likeness <= 1)) or not np.all((hardness >= 1) & (hardness <= 10)):
        raise ValueError("qed must lie in [0, 1] and sa in [1, 10]")
    return np.asarray((np.minimum(likeness, 0.7) + np.minimum((10 - hardness) / 9, 0.7)) / 2)


def accept_by_power(
    log_r0: npt.ArrayLike, current: npt.ArrayLike, proposal: npt.ArrayLike, beta: float = MARS_BETA
) -> FloatArray:
    """Return min(1, r0 (s(x') / s(x))^beta), the rule of MARS, for scores of 0 or more, all of one shape.

    Raises:
        ValueError: a score is negative.
    """
    before, after = np.asarray(current, dtype=np.float64), np.asarray(proposal, dtype=np.float64)
    if not (np.all(before >= 0) and np.all(after >= 0)):
        raise ValueError("scores must not be negative")
    with np.errstate(divide="ignore"):
        return accept_by_weight(log_r0, beta * np.log(before), beta * np.log(after))


def quest_reward(quality: npt.ArrayLike) -> FloatArray:
    """Return r = logit(clip(QE, 1e-3, 1 - 1e-3)) of quality estimates, any shape."""
    return log_odds(np.clip(np.asarray(quality, dtype=np.float64), CLIP, 1 - CLIP))


class UnjudgedConfig(RuleDeclared):
    """What rules without judges have in common."""

    asks_judges: ClassVar[bool] = False
    """Whether somebody answers questions."""

    def validation_errors(self, judges: Sequence[JudgeConfig]) -> Iterator[tuple[str, str]]:
        """Yield that there must be no judge, if there is one."""
        if judges:
            yield "judges", "must be empty, []: this rule asks nobody"


class BaseConfig(UnjudgedConfig):
    """Every proposal is accepted, and each is a fresh draw from p0: the states are independent draws from p0."""

    model_config = ConfigDict(
        title="Nobody: each state is an independent draw from p0, always accepted",
        json_schema_extra=ui(
            help="There are no questions, no votes and no links for voters. The states are independent draws from the "
            "objects’ own distribution: the paper’s method Base."
        ),
    )

    evidence: ClassVar[str] = "none"
    """What decides a step."""
    scorers: ClassVar[tuple[str, ...]] = ()
    """Whose numbers decide a step."""
    kind: Literal["base"] = "base"

    def distribution(self, judges: Sequence[JudgeConfig]) -> str:
        """Return the distribution."""
        return "p0(x); each state is an independent draw"

    def kernel_errors(self, kernel: BaseModel) -> Iterator[tuple[str, str]]:
        """Yield that the kernel must be independent draws: anything else that is always accepted leaves p0."""
        if getattr(kernel, "kind", None) != "independent":
            yield "kernel", "must be 'independent' under rule 'base': only fresh draws from p0 may all be accepted"


class ScoreConfig(UnjudgedConfig):
    """A function of scorers' numbers decides: exact for p0 s^beta (forms mars and power) or p0 exp(beta s).

    Args:
        form: of the function; see the module.
        scorers: of mars two, QED and SA, by default those that this program measures; of the others one.
        beta: the exponent.
    """

    model_config = ConfigDict(
        title="A score of each object, such as MARS’s: exact for p0 times a function of the score",
        json_schema_extra=ui(
            help="There are no questions and no votes. Each step waits until the scorer has given both objects a "
            "number, and these decide."
        ),
    )

    evidence: ClassVar[str] = "scores"
    """What decides a step."""
    kind: Literal["score"] = "score"
    form: Literal["mars", "power", "exponential"] = Field(
        title="What is made of the scores", json_schema_extra=ui(labels=_FORMS)
    )
    scorers: tuple[Scorer, ...] = Field(
        default=MARS_SCORERS,
        title="Scorers",
        description="One per line. Of MARS two, of QED and of SA; leave the two of this site for those of RDKit. Of "
        "the others one.",
    )
    beta: float = Field(default=MARS_BETA, gt=0, le=1000, title="β")

    @model_validator(mode="after")
    def _fits_its_form(self) -> ScoreConfig:
        if self.form == "mars" and len(set(self.scorers)) != 2:
            raise ValueError("form 'mars' takes two scorers, of QED and of SA; leave them out for those of RDKit")
        if self.form != "mars" and (len(self.scorers) != 1 or "scorers" not in self.model_fields_set):
            raise ValueError(f"form '{self.form}' takes one scorer: name it in scorers")
        return self

    def acceptance(self, log_r0: float, current: Sequence[float], proposal: Sequence[float]) -> float:
        """Return the acceptance probability for the numbers of x and of x', in the order of the scorers.

        Raises:
            ValueError: a number is out of its range: see `unusable`.
        """
        if self.form == "mars":
            before, after = (mars_score(*numbers) for numbers in (current, proposal))
            return float(accept_by_power(log_r0, before, after, self.beta))
        (one,), (other,) = current, proposal
        if self.form == "power":
            return float(accept_by_power(log_r0, one, other, self.beta))
        return float(accept_by_weight(log_r0, self.beta * one, self.beta * other))

    def unusable(self, scorer: str, number: float) -> str:
        """Return why the rule cannot use a scorer's number; empty if it can."""
        if self.form == "mars":
            low, high = ((0, 1), (1, 10))[self.scorers.index(scorer)]
            return "" if low <= number <= high else f"rule 'mars' needs a number from {low} to {high}, not {number:g}"
        is_negative = self.form == "power" and number < 0
        return f"form 'power' needs a number of 0 or more, not {number:g}" if is_negative else ""

    def distribution(self, judges: Sequence[JudgeConfig]) -> str:
        """Return the distribution up to a constant factor, with what its letters stand for."""
        if self.form == "mars":
            likeness, hardness = self.scorers
            s = f"s: (min({likeness}, 0.7) + min((10 - {hardness}) / 9, 0.7)) / 2 of scorers"
            return f"p0(x) * s(x)^{self.beta:g}; {s}"
        weight = f"s(x)^{self.beta:g}" if self.form == "power" else f"exp({self.beta:g}*s(x))"
        return f"p0(x) * {weight}; s: the number of scorer “{self.scorers[0]}”"


class QuestConfig(UnjudgedConfig):
    """QUEST: a quality estimate decides, exactly for p0 exp(r / beta), r = logit(clip(QE, 1e-3, 1 - 1e-3)).

    Args:
        scorer: who gives QE.
        beta: temperature.
    """

    model_config = ConfigDict(
        title="A quality estimate, as in QUEST: exact for p0 times exp(r/β)",
        json_schema_extra=ui(
            help="There are no questions and no votes. A scorer estimates the quality of each object from 0 to 1, and "
            "r is its logit. The paper’s base ratio is that of suffixes cut over the text’s own length."
        ),
    )

    evidence: ClassVar[str] = "scores"
    """What decides a step."""
    kind: Literal["quest"] = "quest"
    scorer: Scorer = Field(
        title="Scorer of quality",
        description="From 0 to 1, higher is better.",
        json_schema_extra=ui(choices="scorer names"),
    )
    beta: float = Field(default=QUEST_BETA, gt=0, le=1000, title="β")

    @property
    def scorers(self) -> tuple[str, ...]:
        """Whose numbers decide a step."""
        return (self.scorer,)

    def acceptance(self, log_r0: float, current: Sequence[float], proposal: Sequence[float]) -> float:
        """Return the acceptance probability for the quality estimates of x and of x'."""
        before, after = (quest_reward(quality) / self.beta for (quality,) in (current, proposal))
        return float(accept_by_weight(log_r0, before, after))

    def unusable(self, scorer: str, number: float) -> str:
        """Return nothing: whatever the number, it is clipped."""
        return ""

    def distribution(self, judges: Sequence[JudgeConfig]) -> str:
        """Return the distribution up to a constant factor, with what its letters stand for."""
        return (
            f"p0(x) * exp(r(x)/{self.beta:g}); r: logit of the number of scorer “{self.scorer}”, clipped to "
            f"{CLIP:g} and {1 - CLIP:g}"
        )


ScoredConfig = ScoreConfig | QuestConfig


def numbers_of(rule: ScoredConfig, given: Scores) -> tuple[float, ...] | None:
    """Return an object's numbers in the order of the rule's scorers; None while one is missing.

    Raises:
        ValueError: a number is not finite, or the rule cannot use it.
    """
    if any(scorer not in given for scorer in rule.scorers):
        return None
    numbers = tuple(given[scorer] for scorer in rule.scorers)
    for scorer, number in zip(rule.scorers, numbers, strict=True):
        if not math.isfinite(number):
            raise ValueError(f"the number of scorer “{scorer}” must be finite, not {number}")
        if reason := rule.unusable(scorer, number):
            raise ValueError(f"the number of scorer “{scorer}” cannot be used: {reason}")
    return numbers
