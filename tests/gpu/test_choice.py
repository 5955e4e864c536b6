"""The token that a uniform number stands for."""

import math

import pytest
import torch

from prefmh_web.endpoints.local.texts import choose

NEARLY_ONE = 1 - 2**-53


@pytest.fixture
def chosen(device):
    def chosen(logits, *uniforms, temperature=1.0):
        numbers = torch.tensor(uniforms, dtype=torch.float64)
        return choose(torch.tensor([logits] * len(uniforms), device=device), temperature, numbers).tolist()

    return chosen


def test_tokens_lie_side_by_side_in_proportion_to_their_probability(chosen):
    logits = [math.log(each) for each in (1, 2, 1)]
    assert chosen(logits, 0.0, 0.2499, 0.2501, 0.7499, 0.7501, NEARLY_ONE) == [0, 0, 1, 1, 2, 2]
    # Halving the temperature squares the weights: 1, 4, 1.
    assert chosen(logits, 0.166, 0.167, 0.833, 0.834, temperature=0.5) == [0, 1, 1, 2]


@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16])
def test_a_token_of_no_probability_is_never_drawn(kind, device):
    logits = torch.tensor([[-torch.inf, 0.3, -torch.inf, 0.1, -torch.inf]] * 2, dtype=kind, device=device)
    assert choose(logits, 1.0, torch.tensor([0.0, NEARLY_ONE], dtype=torch.float64)).tolist() == [1, 3]


def test_logits_that_are_no_distribution_give_no_token(chosen):
    assert chosen([0.0, torch.nan], 0.5) == [-1]
    assert chosen([-torch.inf, -torch.inf], 0.5) == [-1]
    assert chosen([0.0, torch.inf], 0.5) == [-1]
