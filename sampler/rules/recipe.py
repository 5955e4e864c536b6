"""The part of a recipe that says how a step is decided: by votes, exactly, or by ratings, as the paper's baselines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from sampler.judges.rating_scale import RatingScale
from sampler.rules.pointwise import PointwiseDifference, PointwiseJoint, PointwisePower, PointwiseSeparate

PAPER_BETA = 30.0


class NVoteRecipe(BaseModel):
    """Judges compare, and the N-vote rule decides: exact for p0 exp(sum_i s_i)."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    evidence: ClassVar[str] = "votes"
    """What decides a step."""
    kind: Literal["n-vote"] = "n-vote"


class PointwiseRecipe(BaseModel):
    """Judges rate each object alone, by a whole number; the budget N_i is how many ratings of an object are averaged.

    A baseline: it samples another law than p0 exp(sum_i s_i) of the judges' own comparisons, which law depends on what
    the numbers are. `sampler.rules.pointwise` has the formulas and when they are exact for anything.

    Args:
        form: separate, one rating a judge, divided by the highest and summed; joint (divided so too), difference and
            power, of one judge.
        lowest, highest: the ends of the scale.
        beta: of form power.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    evidence: ClassVar[str] = "ratings"
    """What decides a step."""
    kind: Literal["pointwise"] = "pointwise"
    form: Literal["separate", "joint", "difference", "power"]
    lowest: Literal[0, 1] = 1
    highest: Literal[10] = 10
    beta: float = Field(default=PAPER_BETA, gt=0, le=1000)

    @model_validator(mode="after")
    def _fits_its_form(self) -> PointwiseRecipe:
        if self.form == "power" and self.lowest < 1:
            raise ValueError("form 'power' divides by ratings; lowest must be 1")
        if self.form != "power" and self.beta != PAPER_BETA:
            raise ValueError("beta belongs to form 'power'; leave it out")
        return self

    @property
    def unit(self) -> int:
        """How much on the scale is 1 in the exponent, for forms separate and joint."""
        return self.highest

    @property
    def scale(self) -> RatingScale:
        """What a rating may be."""
        return RatingScale(self.lowest, self.highest)

    def acceptance(self, log_r0: float, current: Sequence[float], proposal: Sequence[float]) -> float:
        """Return the acceptance probability for the mean ratings of x and of x', one a judge.

        Raises:
            ValueError: a form of one judge gets the ratings of several, or a rating is off the scale.
        """
        if self.form == "separate":
            return float(PointwiseSeparate(self.lowest, self.highest).acceptance(log_r0, current, proposal))
        rule: PointwiseJoint | PointwiseDifference | PointwisePower = PointwiseDifference()
        if self.form == "joint":
            rule = PointwiseJoint(self.lowest, self.highest)
        elif self.form == "power":
            rule = PointwisePower(self.beta)
        (before,), (after,) = current, proposal
        return float(rule.acceptance(log_r0, before, after))


RuleRecipe = Annotated[NVoteRecipe | PointwiseRecipe, Field(discriminator="kind")]
