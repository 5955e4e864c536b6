"""Which law a recipe's chains sample, in plain text.

    p0(x) * exp(2*s1(x) + s2(x)); s1: “Which is darker?”, people; s2: “Which is better?”, people

s_i is the hidden score of a question: its voters prefer y to x with log-odds s_i(y) - s_i(x). Each judge multiplies
the law by exp(s_i) once, so that a question asked in both orders by two judges, one for each, counts twice. Ratings are
part of the law as they were drawn: an object keeps those it got.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from pydantic import BaseModel

from sampler.judges.recipe import JudgeRecipe
from sampler.rules.recipe import PointwiseRecipe, RuleRecipe

UNKNOWN = "not known: the kernel takes the base ratio for 1 (convention 'paper')"


def target_law(judges: Sequence[JudgeRecipe], rule: RuleRecipe, kernels: Iterable[BaseModel]) -> str:
    """Return the law up to a constant factor, with what its letters stand for; or that and why it is not known.

    Args:
        kernels: of a mixture, its parts.
    """
    if any(getattr(kernel, "convention", "exact") != "exact" for kernel in kernels):
        return UNKNOWN
    return _of_ratings(judges, rule) if isinstance(rule, PointwiseRecipe) else _of_votes(judges)


def _of_votes(judges: Sequence[JudgeRecipe]) -> str:
    times = Counter((judge.question, judge.voters) for judge in judges)
    terms = [f"s{i}(x)" if count == 1 else f"{count}*s{i}(x)" for i, count in enumerate(times.values(), start=1)]
    names = [f"s{i}: “{question}”, {voters}" for i, (question, voters) in enumerate(times, start=1)]
    return "; ".join([f"p0(x) * exp({' + '.join(terms)})", *names])


def _of_ratings(judges: Sequence[JudgeRecipe], rule: PointwiseRecipe) -> str:
    letters = [f"r{i}" for i, _ in enumerate(judges, start=1)]
    names = [
        f"{letter}: the mean of {judge.budget} ratings from {rule.lowest} to {rule.highest}, drawn once for an object "
        f"and kept, “{judge.question}”, {judge.voters}"
        for letter, judge in zip(letters, judges, strict=True)
    ]
    if rule.form == "power":
        return "; ".join([f"p0(x) * r1(x)^{rule.beta:g}", *names])
    unit = "" if rule.form == "difference" else f"/{rule.unit}"
    return "; ".join([f"p0(x) * exp({' + '.join(f'{letter}(x){unit}' for letter in letters)})", *names])
