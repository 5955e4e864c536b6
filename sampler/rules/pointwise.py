"""Pointwise-MH: each state is rated alone, and the rating is taken for a log density; the paper's four forms.

    text, image   min(1, r0 exp(sum_i (s_i(x') - s_i(x))))   s_i the rating / 10; separate (m of them)
    text          min(1, r0 exp(s(x') - s(x)))               s the rating / 10; joint (one for all properties)
    translation   min(1, r0 exp(s(x') - s(x)))               s the mean of N ratings from 1 to 10; difference
    molecules     min(1, r0 (s(x') / s(x))^30)               s the mean of N ratings from 1 to 10; power

Exact for p0 times exp(sum s), exp(s) or s^30 if x always gets the same score; a rating drawn anew at every visit has no
target that anyone wrote down. None targets p0 exp(sum_i s_i) of the judges' own comparisons. The paper takes r0 = 1 for
texts, images and molecules, and n/n' for translations (the suffix kernel's ratio). Its normalised ratings are the
ratings divided by the highest, on both scales: the spreads that it publishes fit no other reading.

Every object gets N_i ratings by judge i, once: whoever keeps the record keeps them with the object. There is no
stopping early.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import ClassVar, Literal

from pydantic import ConfigDict, Field, model_validator

from sampler.declared import ui
from sampler.judges.config import JudgeConfig, ModelSource
from sampler.judges.replies import RatingScale, mean_rating
from sampler.rules.base import RuleDeclared, accept_by_weight

Ratings = Sequence[Sequence[int]]
"""An object's ratings so far, one sequence a judge."""
PAPER_BETA = 30.0
_FORMS = {
    "separate": "Separate: one rating for each question, divided by the highest and summed",
    "joint": "Joint: one question for everything, divided by the highest",
    "difference": "Difference: one question, the ratings as they are",
    "power": "Power: one question, the ratio of the ratings to the power β",
}


class PointwiseConfig(RuleDeclared):
    """Judges rate each object alone, by a whole number; N_i is how many ratings of an object are averaged.

    A baseline: it samples another distribution than p0 exp(sum_i s_i) of the judges' own comparisons, which
    distribution depends on what the numbers are; see the module.

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
            "it. The ratings of an object are averaged, and it keeps them."
        ),
    )

    evidence: ClassVar[str] = "ratings"
    """What decides a step."""
    objects_shown: ClassVar[int] = 1
    scorers: ClassVar[tuple[str, ...]] = ()
    """Whose numbers decide a step."""
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
        before, after = map(self._log_weight, (current, proposal))
        return float(accept_by_weight(log_r0, before, after))

    def _log_weight(self, ratings: Sequence[float]) -> float:
        """Return the log of what p0(x) is multiplied by, for an object's mean ratings, one a judge."""
        if self.form != "separate" and len(ratings) != 1:
            raise ValueError(f"form '{self.form}' takes one rating, not {len(ratings)}")
        if not all(self.lowest <= rating <= self.highest for rating in ratings):
            raise ValueError(f"ratings must lie in [{self.lowest}, {self.highest}]")
        if self.form == "power":
            return self.beta * math.log(ratings[0])
        return ratings[0] if self.form == "difference" else sum(rating / self.unit for rating in ratings)

    def distribution(self, judges: Sequence[JudgeConfig]) -> str:
        """Return the distribution up to a constant factor, with what its letters stand for."""
        letters = [f"r{i}" for i, _ in enumerate(judges, start=1)]
        names = [
            f"{letter}: the mean of {judge.votes} rating{'s' * (judge.votes > 1)} from {self.lowest} to {self.highest}"
            f", drawn once for an object and kept, “{judge.question}”, {judge.voters}"
            for letter, judge in zip(letters, judges, strict=True)
        ]
        if self.form == "power":
            return "; ".join([f"p0(x) * r1(x)^{self.beta:g}", *names])
        unit = "" if self.form == "difference" else f"/{self.unit}"
        return "; ".join([f"p0(x) * exp({' + '.join(f'{letter}(x){unit}' for letter in letters)})", *names])

    def validation_errors(self, judges: Sequence[JudgeConfig]) -> Iterator[tuple[str, str]]:
        """Yield the field and the reason of what cannot rate, or not in this form."""
        if self.form != "separate" and len(judges) > 1:
            yield (
                "rule.form",
                f"'{self.form}' takes one rating for everything: ask all in one question, or use 'separate'",
            )
        for index, judge in enumerate(judges):
            path = f"judges.{index}"
            if not isinstance(judge.source, ModelSource):
                yield f"{path}.source", "must be a model: people compare, they do not rate"
            elif judge.source.votes != "sampled":
                yield f"{path}.source.votes", "must be 'sampled': ratings are not drawn from probabilities"
            if judge.order != "random":
                yield f"{path}.order", "must be 'random', the default: an object that is rated stands alone"


def mean_ratings(rule: PointwiseConfig, max_votes: Sequence[int], given: Ratings) -> tuple[float, ...] | None:
    """Return an object's mean rating by each judge; None while one of its N_i ratings is missing.

    Raises:
        ValueError: there are ratings of another number of judges, or a judge has given more than it may, or one
            off the scale.
    """
    if len(given) != len(max_votes):
        raise ValueError(f"ratings must be of {len(max_votes)} judges, not {len(given)}")
    if any(len(ratings) > limit for ratings, limit in zip(given, max_votes, strict=True)):
        raise ValueError(f"ratings must be {' '.join(map(str, max_votes))} by judge at most")
    if any(len(ratings) < limit for ratings, limit in zip(given, max_votes, strict=True)):
        return None
    return tuple(mean_rating(ratings, rule.scale) for ratings in given)
