"""Bad arguments of the acceptance functions are refused by name."""

import math

import pytest

from sampler import acceptance_probability, askable, marginal_acceptance, verdict

FUNCTIONS = {
    "acceptance_probability": (acceptance_probability, {"log_r0": 0.0, "votes_for": [1, 2], "budgets": [2, 3]}),
    "marginal_acceptance": (marginal_acceptance, {"log_r0": 0.0, "preference": [0.5, 0.2], "budgets": [2, 3]}),
    "verdict": (verdict, {"log_r0": 0.0, "uniform": 0.5, "votes_for": [1, 1], "votes_cast": [1, 2], "budgets": [2, 3]}),
    "askable": (
        askable,
        {
            "log_r0": 0.0,
            "uniform": 0.5,
            "votes_for": [1, 1],
            "votes_cast": [1, 2],
            "promised": [0, 1],
            "budgets": [2, 3],
        },
    ),
}

BAD = {
    "log_r0": [math.nan, math.inf],
    "uniform": [1.0, -1e-300, 1.5, math.nan],
    "preference": [[0.5], [0.5, 1.1], [-0.1, 0.5], [0.5, math.nan], [0.5, 0.5, 0.5]],
    "budgets": [[0, 3], [2.5, 3], [2], [2, 3, 1], [-1, 3], [math.nan, 3], [math.inf, 3], [True, True], []],
    "votes_for": [[3, 2], [-1, 2], [0.5, 2], [1], [1, 2, 0], [math.nan, 2], [True, False], ["1", "2"]],
    "votes_cast": [[3, 2], [1, 4], [1, -1], [0, 0], [1.5, 2], [1], [1, 2, 0], [math.nan, 2]],
    "promised": [[2, 0], [0, 2], [-1, 0], [0.5, 0], [0], [0, 0, 0], [math.nan, 0]],
}

# What a value spoils may be told from either side: too many votes for, or too few cast.
ALSO_NAMED = {"budgets": "votes_cast|votes_for|preference|promised|cast", "votes_cast": "votes_for|promised|cast"}


def written_as(container: type, arguments: dict) -> dict:
    """Return the arguments with lists or, as campaigns have them, tuples for counts."""
    return {name: container(each) if isinstance(each, list) else each for name, each in arguments.items()}


@pytest.mark.parametrize("container", [list, tuple])
@pytest.mark.parametrize(
    ("function", "argument", "value"),
    [(name, argument, value) for name, (_, good) in FUNCTIONS.items() for argument in good for value in BAD[argument]],
)
def test_a_bad_argument_is_refused_by_name(function, argument, value, container):
    call, good = FUNCTIONS[function]
    call(**written_as(container, good))
    with pytest.raises(ValueError, match=f"{argument}|{ALSO_NAMED.get(argument, argument)}"):
        call(**written_as(container, good | {argument: value}))


@pytest.mark.parametrize("function", ["verdict", "askable"])
@pytest.mark.parametrize("argument", ["log_r0", "votes_for", "votes_cast", "budgets"])
def test_one_comparison_at_a_time(function, argument):
    call, good = FUNCTIONS[function]
    with pytest.raises(ValueError, match=f"{argument} must be"):
        call(**good | {argument: [good[argument]]})


def test_a_budget_of_no_votes_is_refused_where_nobody_has_voted():
    for container in (list, tuple):
        with pytest.raises(ValueError, match="budgets must be at least 1"):
            verdict(0.0, 0.5, *(container(each) for each in ([0, 0], [0, 0], [0, 3])))
