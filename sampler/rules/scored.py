"""QUEST: min(1, (n / n') exp((r(y') - r(y)) / beta)), r = logit(clip(QE, 1e-3, 1 - 1e-3)).

Exact for p0(y) exp(r(y) / beta): the quality estimate QE (CometKiwi) becomes a log density, whatever people prefer.
The suffix of a translation of n tokens is drawn again from a cut chosen uniformly, so r0 = n / n'.
(Appendix, machine translation.)

MARS: min(1, r0 (s(x') / s(x))^30), s = (min(QED, 0.7) + min((10 - SA) / 9, 0.7)) / 2.

Exact for p0(x) s(x)^30, a target made of two computed properties and no judge; with r0 = 1, as the released
MARS and the paper's molecular experiment take it, p0 and q are left out of the balance. (Appendix, de novo
molecular design.)

Rules that ask no judge: Base, which accepts every draw from p0, and what all such rules share.

A campaign of such a rule has no questions and takes no votes. The paper's method Base is independent draws from p0
without acceptance (section 1.1 of its stories, L1120).

Rules that numbers decide which scorers give each object: MARS's, QUEST's, and powers and exponentials of any score.

    score, form mars          min(1, r0 (s(x') / s(x))^beta)     s = (min(QED, 0.7) + min((10 - SA) / 9, 0.7)) / 2
    score, form power         min(1, r0 (s(x') / s(x))^beta)     s the scorer's number, 0 or more
    score, form exponential   min(1, r0 exp(beta (s(x') - s(x))))
    quest                     min(1, r0 exp((r(x') - r(x)) / beta))     r = logit(clip(s, 1e-3, 1 - 1e-3))

An object keeps its numbers, so each is exact for p0 times the factor of s. `mars.py` and `quest.py` say where the paper
has them. A step waits until its two objects have their numbers (`tell_by_scores`); no judge is asked.

The second half of a step whose rule goes by scorers' numbers: what `tell` is to votes.

    ask(plan, position)                                   as ever (`chain.py`): log r0 is kept and U drawn, before
    tell_by_scores(rule, comparison, current, proposal)   ACCEPT iff U < the rule's acceptance, once all numbers are in

Every object gets its numbers once: whoever keeps the record keeps them with the object.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from sampler.acceptance import Verdict
from sampler.chain import Comparison, State
from sampler.declared import Declared, ui
from sampler.judges.config import JudgeConfig
from sampler.rules.shape import FloatArray, accept_by_weight, log_odds

# The temperatures the paper compares.
PUBLISHED_BETAS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
CLIP = 1e-3


@dataclass(frozen=True)
class Quest:
    """The rule of QUEST on `Quest.reward`.

    Args:
        beta: temperature; the paper compares `PUBLISHED_BETAS`.

    Raises:
        ValueError: beta is not positive.
    """

    beta: float = 0.1
    name: ClassVar[str] = "quest"

    def __post_init__(self) -> None:
        if not self.beta > 0:
            raise ValueError(f"beta must be positive, not {self.beta}")

    @staticmethod
    def reward(quality: npt.ArrayLike) -> FloatArray:
        """Return r = logit(clip(QE, 1e-3, 1 - 1e-3)), any shape."""
        return log_odds(np.clip(np.asarray(quality, dtype=np.float64), CLIP, 1 - CLIP))

    @staticmethod
    def log_r0(length: npt.ArrayLike, proposed_length: npt.ArrayLike) -> FloatArray:
        """Return log(n / n'), n and n' the tokens of y and y', any shape.

        Raises:
            ValueError: a length is less than 1.
        """
        before, after = np.asarray(length, dtype=np.float64), np.asarray(proposed_length, dtype=np.float64)
        if not (np.all(before >= 1) and np.all(after >= 1)):
            raise ValueError("lengths must be at least 1")
        return np.asarray(np.log(before) - np.log(after))

    def acceptance(self, log_r0: npt.ArrayLike, current: npt.ArrayLike, proposal: npt.ArrayLike) -> FloatArray:
        """Return the acceptance probability for rewards r(y) and r(y'), all of one shape."""
        before, after = np.asarray(current, dtype=np.float64), np.asarray(proposal, dtype=np.float64)
        return accept_by_weight(log_r0, before / self.beta, after / self.beta)


@dataclass(frozen=True)
class Mars:
    """The rule of MARS on `Mars.score`.

    Args:
        beta: the default of MARS is 30.
    """

    beta: float = 30.0
    name: ClassVar[str] = "mars"

    @staticmethod
    def score(qed: npt.ArrayLike, sa: npt.ArrayLike) -> FloatArray:
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

    def acceptance(self, log_r0: npt.ArrayLike, current: npt.ArrayLike, proposal: npt.ArrayLike) -> FloatArray:
        """Return the acceptance probability for scores s(x) and s(x'), all of one shape.

        Raises:
            ValueError: a score is negative.
        """
        before, after = np.asarray(current, dtype=np.float64), np.asarray(proposal, dtype=np.float64)
        if not (np.all(before >= 0) and np.all(after >= 0)):
            raise ValueError("scores must not be negative")
        with np.errstate(divide="ignore"):
            return accept_by_weight(log_r0, self.beta * np.log(before), self.beta * np.log(after))


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


Scorer = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]*$", max_length=40)]
Scores = Mapping[str, float]
"""An object's numbers, by scorer."""
MARS_SCORERS = ("qed", "synthetic_accessibility")
"""QED and SA, as this program measures molecules."""
MARS_BETA, QUEST_BETA = 30.0, 0.1
_FORMS = {
    "mars": "MARS: s = ½[min(QED, 0.7) + min((10 − SA)/9, 0.7)], the law is p0·s to the power β",
    "power": "Power: the law is p0·s to the power β, for scores of 0 or more",
    "exponential": "Exponential: the law is p0·exp(β·s)",
}


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
            before, after = (Mars.score(*numbers) for numbers in (current, proposal))
            return float(Mars(self.beta).acceptance(log_r0, before, after))
        (one,), (other,) = current, proposal
        if self.form == "power":
            return float(Mars(self.beta).acceptance(log_r0, one, other))
        return float(accept_by_weight(log_r0, self.beta * one, self.beta * other))

    def unusable(self, scorer: str, number: float) -> str:
        """Return why the rule cannot use a scorer's number; empty if it can."""
        if self.form == "mars":
            low, high = ((0, 1), (1, 10))[self.scorers.index(scorer)]
            return "" if low <= number <= high else f"rule 'mars' needs a number from {low} to {high}, not {number:g}"
        is_negative = self.form == "power" and number < 0
        return f"form 'power' needs a number of 0 or more, not {number:g}" if is_negative else ""

    def law(self, judges: Sequence[JudgeConfig]) -> str:
        """Return the law up to a constant factor, with what its letters stand for."""
        if self.form == "mars":
            likeness, hardness = self.scorers
            s = f"s: (min({likeness}, 0.7) + min((10 - {hardness}) / 9, 0.7)) / 2 of scorers"
            return f"p0(x) * s(x)^{self.beta:g}; {s}"
        tilt = f"s(x)^{self.beta:g}" if self.form == "power" else f"exp({self.beta:g}*s(x))"
        return f"p0(x) * {tilt}; s: the number of scorer “{self.scorers[0]}”"


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
        rule = Quest(self.beta)
        before, after = (rule.reward(quality) for (quality,) in (current, proposal))
        return float(rule.acceptance(log_r0, before, after))

    def unusable(self, scorer: str, number: float) -> str:
        """Return nothing: whatever the number, it is clipped."""
        return ""

    def law(self, judges: Sequence[JudgeConfig]) -> str:
        """Return the law up to a constant factor, with what its letters stand for."""
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


def tell_by_scores(rule: ScoredConfig, comparison: Comparison[State], current: Scores, proposal: Scores) -> Verdict:
    """Return the verdict; UNDECIDED while a number is missing. A proposal to stay needs none.

    Args:
        current, proposal: the objects' numbers, by scorer.

    Raises:
        ValueError: as `numbers_of`.
    """
    if comparison.is_identity:
        return Verdict.ACCEPT
    before, after = (numbers_of(rule, given) for given in (current, proposal))
    if before is None or after is None:
        return Verdict.UNDECIDED
    accepted = comparison.uniform < rule.acceptance(comparison.log_r0, before, after)
    return Verdict.ACCEPT if accepted else Verdict.REJECT
