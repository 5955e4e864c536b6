"""Suffix moves over a local model whose texts can all be listed, against the model's own probabilities.

The oracle is one unpadded pass of the model over each text on the CPU, without a cache. The texts are those of 4 tokens
at most over two letters and an end: 31 under each of two prompts, a short one and a long one. Rows of one batch keep 0
to 3 tokens, so that most are padded.
"""

import math
from collections import Counter
from functools import cache

import numpy as np
import pytest
import torch
from scipy import stats

from prefmh_web.endpoints.local.texts import TransformersModel, Weights, check_padding
from sampler import Purpose, stream
from sampler.exact import log_base_ratio
from sampler.kernels.suffix import Suffix
from sampler.spaces.texts import Writing, WrittenTexts
from tests.gpu.small_models import END, TopP, WithoutMask, WithoutPositions, gpt2, llama, tokenizer_of
from tests.sampler.kernels.test_suffix import CUTS, FreeOfLength
from tests.support.sampling import MIN_P_VALUE, check_rows, matrix_of

LETTERS = ("a", "b")
VOCABULARY = 1 + len(LETTERS)
LIMIT = 4
TEMPERATURE = 1.3
PROMPTS = ("a", "b b a b a")
MAKES = {"gpt2": gpt2, "llama": llama}
# Of a probability, in float64, where the cache and the padding change no more than the order of sums.
TOLERANCE = 1e-9
# In float32 rounding is 6e-8 of a logit; sums over a few dozen weights and two layers stay well below this.
FLOAT32_TOLERANCE = 1e-5


class Scripted:
    """A generator whose numbers are given."""

    def __init__(self, *numbers):
        self._numbers = list(numbers)

    def random(self):
        # A wrong model may ask for more than the right one.
        return self._numbers.pop(0) if self._numbers else 0.5


def network(name, dtype=torch.float64):
    return MAKES[name](VOCABULARY).to(dtype)


def texts_of(module, device):
    weights = Weights(module.to(device), tokenizer_of(LETTERS))
    return WrittenTexts(TransformersModel(weights, limit=LIMIT, temperature=TEMPERATURE, prompts=PROMPTS))


@cache
def distribution(name, prompt):
    """Return p0 of each whole sequence."""
    model, p0, begun = network(name), {}, [()]
    asked = [1 + LETTERS.index(letter) for letter in prompt.split()]
    for beginning in begun:
        with torch.inference_mode():
            logits = model(torch.tensor([[*asked, *beginning]]), use_cache=False).logits[0, -1]
        for token, chance in enumerate(torch.softmax(logits / TEMPERATURE, dim=-1).tolist()):
            longer, total = (*beginning, token), p0.get(beginning, 1.0) * chance
            p0[longer] = total
            if token != END and len(longer) < LIMIT:
                begun.append(longer)
    return {tokens: p0[tokens] for tokens in p0 if tokens not in begun}


@cache
def indices(name, prompt):
    """Return, for each beginning of a text, which numbers from 0 to 1 draw its last token: (from, to)."""
    mass, found = Counter(), {}
    for tokens, chance in distribution(name, prompt).items():
        for length in range(len(tokens) + 1):
            mass[tokens[:length]] += chance
    for beginning in {tokens[:-1] for tokens in mass if tokens}:
        below = 0.0
        for token in range(VOCABULARY):
            chance = mass[(*beginning, token)] / mass[beginning]
            found[(*beginning, token)] = (below, below + chance)
            below += chance
    return found


def paths(name, prompt, tokens, cut):
    """Yield (chance, target, scripts) for each cut and each way on from a text.

    The scripts are the lowest, the middle and the highest numbers that lead there, to within the tolerance.
    """
    most = LIMIT if cut == "limit" else len(tokens)
    for kept in range(most):
        first = (kept + 0.5) / most
        if kept >= len(tokens):
            yield 1 / most, tokens, [(first,)]
            continue
        for target in distribution(name, prompt):
            if target[:kept] == tokens[:kept]:
                steps = [indices(name, prompt)[target[: t + 1]] for t in range(kept, len(target))]
                low, high = [below + TOLERANCE for below, _ in steps], [above - TOLERANCE for _, above in steps]
                scripts = [low, [(below + above) / 2 for below, above in steps], high]
                chance = math.prod(above - below for below, above in steps) / most
                yield chance, target, [(first, *numbers) for numbers in scripts]


def driven(name, kernel, cut, states):
    """Return q and the claimed log r0, both of shape (n, n), having driven the kernel along every path at once."""
    index = {(state.prompt, state.tokens): number for number, state in enumerate(states)}
    chances, rows = [Counter() for _ in states], []
    for state in states:
        for chance, target, scripts in paths(name, state.prompt, state.tokens, cut):
            chances[index[state.prompt, state.tokens]][states[index[state.prompt, target]]] += chance
            rows.extend((state, target, Scripted(*numbers)) for numbers in scripts)
    proposals = kernel.propose_batch([rng for _, _, rng in rows], [state for state, _, _ in rows])
    ratios = [{} for _ in states]
    for (state, target, _), proposal in zip(rows, proposals, strict=True):
        assert proposal.state.tokens == target, "a number led to another text than the model's probabilities say"
        ratios[index[state.prompt, state.tokens]][proposal.state] = proposal.log_r0
    return matrix_of(states, chances), matrix_of(states, ratios, empty=-np.inf)


def listed(name, texts):
    return [
        Writing(prompt, tokens, texts.model.text(prompt, tokens))
        for prompt in PROMPTS
        for tokens in distribution(name, prompt)
    ]


def imbalance(log_p0, q, log_r0):
    """Return by how much a claimed log r0 is off, at most; of moves within one prompt, for no others are possible."""
    moves = q > 0
    return np.abs(log_r0[moves] - log_base_ratio(log_p0, q)[moves]).max()


@pytest.mark.parametrize("name", MAKES)
@pytest.mark.parametrize("cut", CUTS)
def test_every_proposal_has_its_probability_and_the_claimed_ratio_balances_it(name, cut, device):
    texts = texts_of(network(name), device)
    states = listed(name, texts)
    q, log_r0 = driven(name, Suffix(texts, cut), cut, states)
    check_rows(q)
    log_p0 = np.array([texts.model.score(state.prompt, state.tokens) for state in states])
    assert imbalance(log_p0, q, log_r0) < TOLERANCE


def test_without_the_ratio_of_lengths_there_is_no_balance(device):
    texts = texts_of(network("gpt2"), device)
    states = listed("gpt2", texts)
    q, log_r0 = driven("gpt2", FreeOfLength(texts, "length"), "length", states)
    log_p0 = np.array([texts.model.score(state.prompt, state.tokens) for state in states])
    assert imbalance(log_p0, q, log_r0) > 0.1


@pytest.mark.parametrize("wrong", [WithoutPositions, WithoutMask, TopP])
def test_wrong_models_give_proposals_another_probability(wrong, device):
    texts = texts_of(wrong(network("gpt2")), device)
    with pytest.raises(AssertionError, match="another text"):
        driven("gpt2", Suffix(texts), "limit", listed("gpt2", texts))


@pytest.mark.parametrize("name", MAKES)
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, TOLERANCE), (torch.float32, FLOAT32_TOLERANCE)])
def test_scores_are_the_models_own(name, dtype, tolerance, device):
    model = texts_of(network(name, dtype), device).model
    for prompt in PROMPTS:
        p0 = distribution(name, prompt)
        assert math.fsum(p0.values()) == pytest.approx(1, abs=TOLERANCE)
        assert [model.score(prompt, tokens) for tokens in p0] == pytest.approx(np.log(list(p0.values())), abs=tolerance)


def frequencies_p_value(name, module, device, count=5000):
    """Return the p-value of the texts that proposals lead to, both prompts in one batch, by chi-square.

    Each text under each prompt is expected `count` q times; those expected less than 10 times are counted together.
    """
    texts = texts_of(module, device)
    seen, expected = [], []
    states = [Writing(prompt, (1, 2, 1, END), "") for prompt in PROMPTS]
    rngs = [stream(20261121, row, 1, Purpose.PROPOSAL) for row in range(count * len(states))]
    proposals = Suffix(texts).propose_batch(rngs, states * count)
    found = Counter((proposal.state.prompt, proposal.state.tokens) for proposal in proposals)
    for state in states:
        q = Counter()
        for chance, target, _ in paths(name, state.prompt, state.tokens, "limit"):
            q[target] += count * chance
        rare = [target for target in q if q[target] < 10]
        groups = [[target] for target in q if q[target] >= 10] + ([rare] if rare else [])
        seen += [sum(found[state.prompt, target] for target in group) for group in groups]
        expected += [sum(q[target] for target in group) for group in groups]
    # Each prompt's counts sum to `count`: one degree of freedom less for each.
    return stats.chisquare(seen, expected, ddof=len(states) - 1).pvalue


@pytest.mark.parametrize("name", MAKES)
def test_proposals_come_as_often_as_the_model_says(name, device):
    assert frequencies_p_value(name, network(name, torch.float32), device) > MIN_P_VALUE


@pytest.mark.parametrize("wrong", [WithoutPositions, WithoutMask, TopP])
def test_proposals_of_wrong_models_do_not(wrong, device):
    assert frequencies_p_value("gpt2", wrong(network("gpt2", torch.float32)), device) < MIN_P_VALUE


@pytest.mark.parametrize("wrong", [WithoutPositions, WithoutMask])
def test_models_that_mind_padding_are_refused(wrong, device):
    for name in MAKES:
        check_padding(Weights(network(name, torch.float32).to(device), tokenizer_of(LETTERS)))
    with pytest.raises(ValueError, match="minds padding"):
        check_padding(Weights(wrong(network("gpt2", torch.float32)).to(device), tokenizer_of(LETTERS)))
