"""Judges that are programs: what a recipe may say of them, and why N votes need independent draws."""

import numpy as np
import pytest

from sampler import RecipeError, acceptance_probability, marginal_acceptance, parse_recipe
from tests.support.records import RECIPE

OWN = {"kind": "program", "name": "mine"}
# Sums of products of doubles.
EXACT = 1e-12


def judges(*changes: dict) -> dict:
    return RECIPE | {"judges": [{"question": "Which?", "budget": 1, "source": OWN} | each for each in changes]}


@pytest.mark.parametrize(
    "changes",
    [
        ({},),
        ({"budget": 4, "order": "balanced", "source": OWN | {"independent": True}},),
        ({}, {"question": "And which is older?"}),
        ({}, {"source": OWN | {"name": "another"}}),
    ],
)
def test_a_program_may_judge(changes):
    recipe = parse_recipe(judges(*changes))
    assert recipe.has_programs
    assert recipe.votes_a_step == 0
    assert parse_recipe(recipe.model_dump(mode="json")) == recipe


@pytest.mark.parametrize(
    ("changes", "field", "told"),
    [
        (({"budget": 2},), "judges.0.source.independent", "2 times on a pair"),
        (({}, {}), "judges.0.source.independent", "2 times on a pair"),
        (({"budget": 3, "order": "balanced", "source": OWN | {"independent": True}},), "judges.0", "even budget"),
        (({"source": {"kind": "program"}},), "judges.0.source", "name"),
        (({"source": OWN | {"name": " "}},), "judges.0.source", "name"),
        (({"source": OWN | {"temperature": 1}},), "judges.0.source", "temperature"),
    ],
)
def test_what_a_program_may_not(changes, field, told):
    with pytest.raises(RecipeError) as refused:
        parse_recipe(judges(*changes))
    problems = [f"{problem.path} {problem.message}" for problem in refused.value.problems]
    assert any(problem.startswith(field) and told in problem for problem in problems), problems


def test_a_program_rates_nothing():
    rule = {"kind": "pointwise", "form": "power", "lowest": 1, "beta": 2.0}
    with pytest.raises(RecipeError, match="a program compares, it does not rate"):
        parse_recipe(judges({}) | {"rule": rule})


def imbalance(accepted: float, back: float, log_r0: float, log_odds: float) -> float:
    """Return by how much detailed balance with p0 exp(s) fails, as a difference of logarithms."""
    return float(abs(np.log(accepted / back) - log_r0 - log_odds))


def copied(log_r0: float, p: float, n: int) -> float:
    """Return the acceptance probability where one answer is counted n times."""
    return float(p * acceptance_probability(log_r0, [n], [n]))


@pytest.mark.parametrize("log_r0", [0.0, -1.1, 2.3])
@pytest.mark.parametrize("n", [1, 2, 5])
def test_draws_balance_and_copies_of_one_answer_do_not(log_r0, n):
    """Exact sums over all tallies. The negative control: copies fail wherever N > 1 and the base ratio is not 1."""
    log_odds = 0.8
    p = 1 / (1 + np.exp(-log_odds))
    drawn = float(marginal_acceptance(log_r0, [p], [n])), float(marginal_acceptance(-log_r0, [1 - p], [n]))
    assert imbalance(*drawn, log_r0, log_odds) < EXACT
    copies = copied(log_r0, p, n), copied(-log_r0, 1 - p, n)
    breaks = n > 1 and log_r0 != 0
    assert (imbalance(*copies, log_r0, log_odds) > 0.1) == breaks
