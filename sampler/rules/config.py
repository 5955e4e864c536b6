"""The part of a config that says how a step is decided: by votes, exactly, or by ratings, as the paper's baselines; by
scores, or not at all (`scored.py`, `unjudged.py`).

A rule's config says what depends on it, so that nobody asks which rule it is:

    evidence         what decides a step: "votes", "ratings", "scores" or "none"
    asks_judges      whether somebody answers questions
    scorers          whose numbers decide a step
    objects_shown    how many objects a judge sees at a time
    law              which law the chains sample
    misfits          which judges cannot answer under it
    unbalanced       which judges' orders leave no law in balance
    kernel_misfits   which kernels do not go with it
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Annotated, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from sampler.declared import Declared, ui
from sampler.judges.config import JudgeConfig, without_twins
from sampler.judges.panels import panel_misfits
from sampler.judges.replies import RatingScale
from sampler.judges.sources import ModelSource
from sampler.rules.pointwise import PointwiseDifference, PointwiseJoint, PointwisePower, PointwiseSeparate
from sampler.rules.scored import BaseConfig, QuestConfig, ScoreConfig

PAPER_BETA = 30.0
_FORMS = {
    "separate": "Separate: one rating for each question, divided by the highest and summed",
    "joint": "Joint: one question for everything, divided by the highest",
    "difference": "Difference: one question, the ratings as they are",
    "power": "Power: one question, the ratio of the ratings to the power β",
}


class _JudgedConfig(Declared):
    """What rules that ask judges have in common."""

    asks_judges: ClassVar[bool] = True
    """Whether somebody answers questions."""
    scorers: ClassVar[tuple[str, ...]] = ()
    """Whose numbers decide a step."""

    def kernel_misfits(self, kernel: BaseModel) -> Iterator[tuple[str, str]]:
        """Yield nothing: any kernel with its base ratio will do."""
        yield from ()


class NVoteConfig(_JudgedConfig):
    """Judges compare, and the N-vote rule decides: exact for p0 exp(sum_i s_i)."""

    model_config = ConfigDict(title="People or models vote: exact")

    evidence: ClassVar[str] = "votes"
    """What decides a step."""
    objects_shown: ClassVar[int] = 2
    """How many objects a judge sees at a time."""
    kind: Literal["n-vote"] = "n-vote"

    def law(self, judges: Sequence[JudgeConfig]) -> str:
        """Return the law up to a constant factor, with what its letters stand for."""
        times = Counter((judge.question, judge.voters) for judge in judges)
        terms = [f"s{i}(x)" if count == 1 else f"{count}*s{i}(x)" for i, count in enumerate(times.values(), start=1)]
        names = [f"s{i}: “{question}”, {voters}" for i, (question, voters) in enumerate(times, start=1)]
        return "; ".join([f"p0(x) * exp({' + '.join(terms)})", *names])

    def misfits(self, judges: Sequence[JudgeConfig]) -> Iterator[tuple[str, str]]:
        """Yield the field and the reason of what a panel cannot be. Crowds and models can vote, in any order."""
        yield from panel_misfits(judges)

    def unbalanced(self, judges: Sequence[JudgeConfig]) -> Iterator[tuple[str, str]]:
        """Yield the field and the reason of each judge of one order that has no twin to go with it."""
        for place, field, message in without_twins(judges):
            yield f"judges.{place}.{field}", message


class PointwiseConfig(_JudgedConfig):
    """Judges rate each object alone, by a whole number; the budget N_i is how many ratings of an object are averaged.

    A baseline: it samples another law than p0 exp(sum_i s_i) of the judges' own comparisons, which law depends on what
    the numbers are. `sampler.rules.pointwise` has the formulas and when they are exact for anything.

    Args:
        form: separate, one rating a judge, divided by the highest and summed; joint (divided so too), difference and
            power, of one judge.
        lowest, highest: the ends of the scale.
        beta: of form power.
    """

    model_config = ConfigDict(
        title="A model rates each object: a baseline, not exact",
        json_schema_extra=ui(
            help="This is the paper’s baseline, Pointwise-MH. It samples from another distribution than votes on the "
            "same questions would, and this distribution depends on how the model uses the scale. Use it for "
            "comparison only. Ask each question about one object (“How gothic is it?”) and choose a model to answer "
            "it. N is the number of ratings that are averaged for an object; an object keeps its ratings."
        ),
    )

    evidence: ClassVar[str] = "ratings"
    """What decides a step."""
    objects_shown: ClassVar[int] = 1
    """How many objects a judge sees at a time."""
    kind: Literal["pointwise"] = "pointwise"
    form: Literal["separate", "joint", "difference", "power"] = Field(
        title="Baseline", json_schema_extra=ui(labels=_FORMS)
    )
    lowest: Literal[0, 1] = Field(
        default=1, title="Rating scale", json_schema_extra=ui(labels={"1": "1 to 10", "0": "0 to 10"})
    )
    highest: Literal[10] = Field(default=10, json_schema_extra=ui(widget="none"))
    beta: float = Field(default=PAPER_BETA, gt=0, le=1000, title="β", description="Used by Power.")

    @model_validator(mode="after")
    def _fits_its_form(self) -> PointwiseConfig:
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

    def law(self, judges: Sequence[JudgeConfig]) -> str:
        """Return the law up to a constant factor, with what its letters stand for."""
        letters = [f"r{i}" for i, _ in enumerate(judges, start=1)]
        names = [
            f"{letter}: the mean of {judge.votes} ratings from {self.lowest} to {self.highest}, drawn once for an "
            f"object and kept, “{judge.question}”, {judge.voters}"
            for letter, judge in zip(letters, judges, strict=True)
        ]
        if self.form == "power":
            return "; ".join([f"p0(x) * r1(x)^{self.beta:g}", *names])
        unit = "" if self.form == "difference" else f"/{self.unit}"
        return "; ".join([f"p0(x) * exp({' + '.join(f'{letter}(x){unit}' for letter in letters)})", *names])

    def misfits(self, judges: Sequence[JudgeConfig]) -> Iterator[tuple[str, str]]:
        """Yield the field and the reason of what cannot rate, or not in this form."""
        if self.form != "separate" and len(judges) > 1:
            yield (
                "rule.form",
                f"'{self.form}' takes one rating for everything: ask all in one question, or use 'separate'",
            )
        for place, judge in enumerate(judges):
            path = f"judges.{place}"
            if not isinstance(judge.source, ModelSource):
                yield f"{path}.source", _CANNOT_RATE[judge.source.kind]
            elif judge.source.votes != "sampled":
                yield f"{path}.source.votes", "must be 'sampled': ratings are not drawn from probabilities"
            if judge.order != "random":
                yield f"{path}.order", "must be 'random', the default: an object that is rated stands alone"

    def unbalanced(self, judges: Sequence[JudgeConfig]) -> Iterator[tuple[str, str]]:
        """Yield nothing: an object that is rated stands alone."""
        yield from ()


_CANNOT_RATE = {
    "people": "must be a model: people compare, they do not rate",
    "panelist": "must be a model: people compare, they do not rate",
}

RuleConfig = Annotated[
    NVoteConfig | PointwiseConfig | BaseConfig | ScoreConfig | QuestConfig, Field(discriminator="kind")
]
