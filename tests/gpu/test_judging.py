"""Votes by a local model: p of the labels against a forward pass that is written out here, in any batch."""

import math

import numpy as np
import pytest
import torch

from prefmh_web.endpoints.errors import Unable
from prefmh_web.endpoints.local.judging import LocalJudge, label_tokens
from prefmh_web.endpoints.local.weights import Weights
from sampler import judges
from tests.gpu.small_models import TEMPLATE, WithoutMask, WithoutPositions, gpt2, llama, tokenizer_of

WORDS = ("A", "B", *(f"w{number}" for number in range(1, 38)))
NUMBER = {word: place for place, word in enumerate(WORDS, start=1)}
TEMPERATURE = 1.7
TOLERANCE = 1e-5


def messages(prompt, system="w1"):
    return [{"role": "system", "content": system}, {"role": "user", "content": prompt}]


def prompts(count=40):
    rng = np.random.default_rng(20261123)
    lengths = rng.integers(1, 24, count)
    return [" ".join(f"w{number}" for number in rng.integers(1, 37, length)) for length in lengths]


def judge_of(make=llama, template=None, wrap=lambda module: module, **options):
    return LocalJudge(Weights(wrap(make(1 + len(WORDS))), tokenizer_of(WORDS, template)), **options)


def by_hand(module, words, temperature=TEMPERATURE, a="A", b="B"):
    """Return p of A: the whole prompt alone through the model, the last column's logits, a softmax over two tokens."""
    ids = torch.tensor([[NUMBER[word] for word in words.split()]])
    with torch.no_grad():
        last = module(input_ids=ids).logits[0, -1].double()
    log_a, log_b = float(last[NUMBER[a]]), float(last[NUMBER[b]])
    return 1 / (1 + math.exp((log_b - log_a) / temperature))


def told(judge, shown=None, temperature=TEMPERATURE):
    read = [judge.read(messages(prompt)) for prompt in shown or prompts()]
    return [each.preference.first for each in judge.preferences(read, temperature)]


def furthest(judge, expected):
    return max(abs(p - q) for p, q in zip(told(judge), expected, strict=True))


@pytest.fixture(params=[gpt2, llama])
def make(request):
    return request.param


class TestLaw:
    """`WHOLE` is how a prompt without a template reads: the system message, then the question."""

    def test_p_is_that_of_a_forward_pass_written_by_hand(self, make):
        expected = [by_hand(make(1 + len(WORDS)), f"w1 {prompt}") for prompt in prompts()]
        assert furthest(judge_of(make), expected) < TOLERANCE
        # The prompts must tell wrong laws from the right one.
        assert max(expected) - min(expected) > 0.3

    @pytest.mark.parametrize(
        "wrong", [{"a": "B", "b": "A"}, {"temperature": 1.0}, {"a": "w1"}], ids=["swapped", "temperature", "label"]
    )
    def test_another_law_is_seen(self, make, wrong):
        expected = [by_hand(make(1 + len(WORDS)), f"w1 {prompt}", **wrong) for prompt in prompts()]
        assert furthest(judge_of(make), expected) > 100 * TOLERANCE

    def test_a_chat_goes_through_the_template_and_a_raw_prompt_does_not(self):
        words = ("[system]", "[user]", "[assistant]", *WORDS)
        weights = Weights(llama(1 + len(words)), tokenizer_of(words, TEMPLATE))
        plain = Weights(llama(1 + len(words)), tokenizer_of(words))
        chat, raw = LocalJudge(weights), LocalJudge(weights, raw=True)
        written_out = LocalJudge(plain)
        whole = [f"[system] w1 [user] {prompt} [assistant]" for prompt in prompts()]
        read = [written_out.read([{"role": "user", "content": each}]) for each in whole]
        expected = [each.preference.first for each in written_out.preferences(read, TEMPERATURE)]
        assert furthest(chat, expected) < TOLERANCE
        assert furthest(raw, told(written_out)) < TOLERANCE
        assert furthest(raw, expected) > 100 * TOLERANCE
        assert (chat.is_raw, raw.is_raw, written_out.is_raw) == (False, True, True)

    def test_shortfall_is_the_probability_of_every_other_token(self):
        judge = judge_of()
        prompt = judge.read(messages("w4 w5"))
        module = llama(1 + len(WORDS))
        with torch.no_grad():
            law = module(input_ids=torch.tensor([prompt])).logits[0, -1].double().softmax(-1)
        [found] = judge.preferences([prompt], TEMPERATURE)
        expected = 1 - float(law[NUMBER["A"]] + law[NUMBER["B"]])
        assert found.preference.shortfall == pytest.approx(expected, abs=TOLERANCE)
        assert found.tokens == 3


class TestBatches:
    def test_mixed_lengths_together_are_what_each_is_alone(self, make):
        judge = judge_of(make)
        alone = [told(judge, [prompt])[0] for prompt in prompts()]
        assert furthest(judge, alone) < TOLERANCE

    @pytest.mark.parametrize("bounds", [{"max_rows": 7}, {"max_tokens": 60}, {"max_rows": 1}])
    def test_passes_of_any_size_say_the_same_in_the_same_order(self, bounds):
        assert furthest(judge_of(**bounds), told(judge_of())) < TOLERANCE

    @pytest.mark.parametrize("wrong", [WithoutMask, WithoutPositions])
    def test_a_model_that_minds_padding_is_seen(self, wrong):
        judge = judge_of(gpt2, wrap=wrong)
        alone = [told(judge, [prompt])[0] for prompt in prompts()]
        assert furthest(judge, alone) > 100 * TOLERANCE

    def test_padding_on_the_other_side_is_seen(self):
        module = llama(1 + len(WORDS))
        read = [judge_of().read(messages(prompt)) for prompt in prompts()]
        widest = max(map(len, read))
        ids = torch.tensor([[*each, *[0] * (widest - len(each))] for each in read])
        mask = torch.tensor([[1] * len(each) + [0] * (widest - len(each)) for each in read])
        with torch.no_grad():
            last = module(input_ids=ids, attention_mask=mask).logits[:, -1].double() / TEMPERATURE
        wrong = torch.sigmoid(last[:, NUMBER["A"]] - last[:, NUMBER["B"]]).tolist()
        assert furthest(judge_of(), wrong) > 100 * TOLERANCE

    def test_no_prompts_give_nothing(self):
        assert judge_of().preferences([], 1.0) == []


class TestVotes:
    """Votes drawn from p are as often for A as p says: chi-square over many prompts, at the level of 1 in 1000."""

    DRAWS = 400

    def chi_square(self, drawn_from, expected):
        rng = np.random.default_rng(5)
        total = 0.0
        for p, q in zip(drawn_from, expected, strict=True):
            votes = sum(judges.drawn_vote(float(uniform), p) for uniform in rng.random(self.DRAWS))
            total += (votes - self.DRAWS * q) ** 2 / (self.DRAWS * q * (1 - q))
        return total

    def test_they_have_the_law_and_a_sharper_one_is_seen(self):
        module, shown = llama(1 + len(WORDS)), prompts()
        expected = [by_hand(module, f"w1 {prompt}") for prompt in shown]
        # The 99.9th percentile of chi-square with 40 degrees of freedom.
        assert self.chi_square(told(judge_of()), expected) < 73.4
        assert self.chi_square(told(judge_of(), temperature=1.0), expected) > 73.4


class TestLabels:
    def test_a_label_may_have_a_space_before_it_where_both_have(self):
        words = ("A", "B", "▁A", "▁B", "▁▁A", "w1", "AB")
        weights = Weights(llama(1 + len(words)), tokenizer_of(words))
        weights.tokenizer.decode = lambda ids, **_: weights.tokenizer.convert_ids_to_tokens(ids)[0].replace("▁", " ")
        # Of "▁▁A" there is no twin for B.
        assert label_tokens(weights) == {"A": (1, 3), "B": (2, 4)}

    def test_a_model_without_a_label_is_refused(self):
        with pytest.raises(ValueError, match="tokens for A and for B"):
            LocalJudge(Weights(llama(4), tokenizer_of(("A", "w1", "w2"))))

    def test_what_cannot_be_read_is_told_apart(self):
        judge = judge_of(template=TEMPLATE)
        with pytest.raises(Unable, match="do not see pictures"):
            judge.read([{"role": "user", "content": [{"type": "image_url"}]}])
        with pytest.raises(Unable, match="prompt must not hold '</s>'"):
            judge.read(messages("w1 </s> w2"))
        with pytest.raises(Unable, match="more than the 64 of the model's context"):
            judge.read(messages("w1 " * 80))
