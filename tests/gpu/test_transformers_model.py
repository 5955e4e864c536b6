"""Texts by a local model: what a caller gets, whatever the batch, and what is refused."""

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from prefmh_web.endpoints.local import texts
from prefmh_web.endpoints.local.texts import TransformersModel, Weights
from tests.gpu.repeated_steps import RepeatedSteps, repeated_steps
from tests.gpu.small_models import END, TEMPLATE, Wrapped, gpt2, llama, tokenizer_of

WORDS = tuple(f"w{number}" for number in range(1, 40))
LIMIT = 12
PROMPTS = ("w1", "w5 w2 w9 w9 w30 w7 w8", "w3 w3 w4")
PREFIXES = ((), (4, 5), (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11), (7,))
ROWS = 36


def rngs(count=ROWS):
    return [np.random.default_rng([20261121, row]) for row in range(count)]


def rows(count=ROWS):
    return [PROMPTS[row % 3] for row in range(count)], [PREFIXES[row % 4] for row in range(count)]


def weights_of(make=llama, template=None, device="cpu", dtype=torch.float32, **options):
    return Weights(make(1 + len(WORDS), **options).to(device, dtype), tokenizer_of(WORDS, template))


def model_of(make=llama, weights=None, limit=LIMIT, **options):
    return TransformersModel(weights or weights_of(make), limit=limit, **options)


# Between the distributions of a row alone and beside others, the largest total variation over 40 tokens. In bfloat16 a
# logit of about 1 has two or three digits. On a GPU sums are split by the shape, so that float32 may move a token.
DISTRIBUTIONS_DIFFER = {torch.float64: 1e-13, torch.float32: 1e-5, torch.bfloat16: 0.05}


class TestRows:
    @pytest.mark.parametrize("make", [gpt2, llama])
    def test_a_row_comes_out_the_same_in_any_batch(self, make, device, monkeypatch):
        prompts, prefixes = rows()
        # Bit by bit on the CPU. On a GPU in double precision, where rounding moves one token in 1e12.
        dtype = torch.float32 if device == "cpu" else torch.float64
        model = model_of(weights=weights_of(make, device=device, dtype=dtype))
        together = model.continue_batch(rngs(), prompts, prefixes)
        alone = [
            model.continue_batch([rng], [prompt], [prefix])[0]
            for rng, prompt, prefix in zip(rngs(), prompts, prefixes, strict=True)
        ]
        assert together == alone
        for bound, most in (("MAX_ROWS", 7), ("MAX_TOKENS", 50)):
            with monkeypatch.context() as bounded:
                bounded.setattr(texts, bound, most)
                assert model.continue_batch(rngs(), prompts, prefixes) == together
        assert len(set(together)) > ROWS / 2

    @pytest.mark.parametrize("make", [gpt2, llama])
    @pytest.mark.parametrize(("dtype", "most"), DISTRIBUTIONS_DIFFER.items())
    def test_a_rows_distribution_beside_longer_rows_is_its_own_but_for_rounding(self, make, dtype, most, device):
        weights = weights_of(make, device=device, dtype=dtype)
        ids = torch.arange(ROWS * LIMIT, device=device).reshape(ROWS, LIMIT) % weights.vocabulary
        lengths = 1 + torch.arange(ROWS, device=device) % LIMIT
        mask = (torch.arange(LIMIT, device=device) >= LIMIT - lengths[:, None]).long()
        with torch.inference_mode():
            together, _ = weights.forward(ids, mask, None, last=1)
            for row, length in enumerate(lengths.tolist()):
                alone, _ = weights.forward(ids[row : row + 1, -length:], mask[row : row + 1, -length:], None, last=1)
                distributions = (logits.double().softmax(-1) for logits in (alone[0, 0], together[row, 0]))
                assert 0.5 * torch.sub(*distributions).abs().sum() < most

    def test_a_row_draws_one_number_for_each_token_it_writes(self, device):
        # Rows end at different times, so that some wait, and are dropped, while others go on.
        prompts, prefixes = rows()
        given, fresh = rngs(), rngs()
        written = model_of(weights=weights_of(device=device)).continue_batch(given, prompts, prefixes)
        assert len({len(tokens) for tokens in written}) > 3
        for rng, untouched, tokens, prefix in zip(given, fresh, written, prefixes, strict=True):
            untouched.random(len(tokens) - len(prefix))
            assert rng.random() == untouched.random()

    def test_sequences_are_whole_and_keep_their_prefix(self, device):
        prompts, prefixes = rows()
        model = model_of(weights=weights_of(device=device))
        for tokens, prompt, prefix in zip(
            model.continue_batch(rngs(), prompts, prefixes), prompts, prefixes, strict=True
        ):
            assert tokens[: len(prefix)] == prefix
            assert END not in tokens[:-1]
            assert tokens[-1] == END or len(tokens) == LIMIT
            assert model.score(prompt, tokens) < 0

    def test_no_rows_give_none(self):
        assert model_of().continue_batch([], [], []) == []

    def test_the_models_own_sampling_settings_have_no_say(self):
        prompts, prefixes = rows()
        module = llama(1 + len(WORDS))
        plain = model_of().continue_batch(rngs(), prompts, prefixes)
        settings = module.generation_config
        settings.top_p, settings.top_k, settings.temperature, settings.repetition_penalty = 0.1, 1, 0.2, 5.0
        loaded = model_of(weights=Weights(module, tokenizer_of(WORDS)))
        assert loaded.continue_batch(rngs(), prompts, prefixes) == plain

    def test_every_end_token_ends_a_text(self):
        module = llama(1 + len(WORDS))
        module.generation_config.eos_token_id = [END, 7, 8, 9, 10]
        model = model_of(weights=Weights(module, tokenizer_of(WORDS)))
        written = model.continue_batch(rngs(), [PROMPTS[0]] * ROWS, [()] * ROWS)
        assert model.ends == {END, 7, 8, 9, 10}
        assert {tokens[-1] for tokens in written if len(tokens) < LIMIT} == model.ends
        assert not any(model.ends & set(tokens[:-1]) for tokens in written)


class HostReads(TorchDispatchMode):
    """Counts how often the host asks what an array holds, but for whole ones that it copies."""

    count = 0

    def __torch_dispatch__(self, operation, types, given=(), more=None):
        self.count += operation.name() in ("aten::_local_scalar_dense", "aten::is_nonzero", "aten::equal")
        return operation(*given, **(more or {}))


class TestSteps:
    """Tokens may be read each time, or once for many steps, as on a GPU."""

    @pytest.mark.parametrize("make", [gpt2, llama])
    @pytest.mark.parametrize("steps", [1, 5, 100])
    def test_tokens_and_generators_are_the_same_however_often_tokens_are_read(self, make, steps, monkeypatch):
        prompts, prefixes = rows()
        given, fresh = rngs(), rngs()
        monkeypatch.setattr(texts, "STEPS_A_READ", {})
        written = model_of(make).continue_batch(fresh, prompts, prefixes)
        monkeypatch.setattr(texts, "STEPS_A_READ", {"cpu": steps})
        assert model_of(make).continue_batch(given, prompts, prefixes) == written
        assert [rng.random() for rng in given] == [rng.random() for rng in fresh]

    @pytest.mark.parametrize("make", [gpt2, llama])
    def test_the_host_asks_for_nothing_between_two_looks(self, make, monkeypatch):
        counts = []
        for limit in (2, LIMIT):
            model = model_of(make, limit=limit)
            monkeypatch.setattr(texts, "STEPS_A_READ", {"cpu": limit})
            with HostReads() as reads:
                model.continue_batch(rngs(), [PROMPTS[0]] * ROWS, [()] * ROWS)
            counts.append(reads.count)
        assert counts[0] == counts[1], "more steps ask for more"

    @pytest.mark.parametrize("make", [gpt2, llama])
    def test_a_step_is_the_same_operations_on_the_same_arrays_each_time(self, make, device, monkeypatch):
        prompts, prefixes = rows()
        monkeypatch.setattr(texts, "STEPS_A_READ", {"cpu": 4, "cuda": 4})
        model = model_of(weights=weights_of(make, device=device, dtype=torch.float64))
        usual, before = model.continue_batch(rngs(), prompts, prefixes), RepeatedSteps.repeated
        with repeated_steps():
            assert model.continue_batch(rngs(), prompts, prefixes) == usual
        assert RepeatedSteps.repeated > before

    def test_a_row_that_has_ended_at_the_end_of_the_context_lets_others_go_on(self, device):
        # The first writes the last token that fits; the others go on for 19 more, and it beside them.
        prompts, prefixes = [PROMPTS[1], *["w1"] * 9], [(1,) * 19, *[()] * 9]
        module = gpt2(1 + len(WORDS), context=27).to(device)
        end = torch.tensor([END], device=device)
        module.lm_head.register_forward_hook(lambda _module, _given, logits: logits.index_fill(-1, end, -torch.inf))
        # With a cache of ours, and one of the model's own.
        for each in (module, Wrapped(module)):
            weights = Weights(each, tokenizer_of(WORDS))
            written = model_of(weights=weights, limit=20).continue_batch(rngs(10), prompts, prefixes)
            assert [len(tokens) for tokens in written] == [20] * 10

    def test_rows_must_not_share_a_generator(self):
        with pytest.raises(ValueError, match="a generator for each row"):
            model_of().continue_batch(rngs(1) * 2, [PROMPTS[0]] * 2, [(), ()])


class TestWords:
    def test_a_text_is_said_without_its_end(self):
        model = model_of(limit=3)
        assert model.text(PROMPTS[0], (1, 2, END)) == "w1 w2"
        assert model.text(PROMPTS[0], (1, 2, 3)) == "w1 w2 w3"
        assert model.text(PROMPTS[0], (END,)) == ""

    def test_a_prompt_goes_through_the_chat_template(self):
        words = ("[system]", "[user]", "[assistant]", *WORDS)
        weights = Weights(llama(1 + len(words)), tokenizer_of(words, TEMPLATE))
        plain = Weights(llama(1 + len(words)), tokenizer_of(words))
        chat = model_of(weights=weights, system="w2")
        written_out = model_of(weights=plain)
        whole = "[system] w2 [user] w5 [assistant]"
        assert chat.score("w5", (4, END)) == written_out.score(whole, (4, END))
        assert chat.score("w5", (4, END)) != written_out.score("w5", (4, END))

    def test_todays_date_does_not_get_into_a_prompt(self):
        words = ("01", "Jan", "2025", *WORDS)
        template = "{{ strftime_now('%d %b %Y') }} {{ messages[0]['content'] }}"
        weights = Weights(llama(1 + len(words)), tokenizer_of(words, template))
        plain = Weights(llama(1 + len(words)), tokenizer_of(words))
        assert model_of(weights=weights).score("w5", (END,)) == model_of(weights=plain).score("01 Jan 2025 w5", (END,))

    def test_without_a_template_the_system_message_stands_before_the_prompt(self):
        assert model_of(system="w2").score("w5", (END,)) == model_of().score("w2 w5", (END,))


class NotANumber(Wrapped):
    """A model whose weights overflowed."""

    def called(self, given):
        found = super().called(given)
        found.logits = found.logits * torch.nan
        return found


class TestRefusals:
    def test_a_prompt_and_a_text_must_fit_into_the_context(self):
        weights = weights_of(context=16)
        model_of(weights=weights, limit=9, prompts=PROMPTS)
        with pytest.raises(ValueError, match="context of 16 tokens; the prompt has 7 and limit is 10"):
            model_of(weights=weights, limit=10, prompts=PROMPTS)
        with pytest.raises(ValueError, match="context of 16 tokens"):
            model_of(weights=weights, limit=10).continue_batch(rngs(1), [PROMPTS[1]], [()])

    def test_a_model_needs_an_end_of_sequence(self):
        module, tokenizer = llama(1 + len(WORDS)), tokenizer_of(WORDS)
        tokenizer.eos_token = None
        module.config.eos_token_id = module.generation_config.eos_token_id = None
        with pytest.raises(ValueError, match="end-of-sequence"):
            Weights(module, tokenizer)
        module.config.eos_token_id = 40
        with pytest.raises(ValueError, match="40 is not among the model's 40"):
            Weights(module, tokenizer)

    def test_logits_that_are_no_distribution_are_not_drawn_from(self, device):
        model = model_of(weights=Weights(NotANumber(llama(1 + len(WORDS))).to(device), tokenizer_of(WORDS)))
        with pytest.raises(ArithmeticError, match="not finite"):
            model.continue_batch(rngs(2), [PROMPTS[0]] * 2, [(), ()])

    @pytest.mark.parametrize("prefix", [(1,) * LIMIT, (1, END), (40,), (-1,)])
    def test_a_prefix_must_be_the_beginning_of_a_text(self, prefix):
        with pytest.raises(ValueError, match=r"prefix|tokens"):
            model_of().continue_batch(rngs(1), [PROMPTS[0]], [prefix])

    @pytest.mark.parametrize("tokens", [(), (1, 2), (END, 1), (1,) * (LIMIT + 1), (40, END)])
    def test_a_text_must_be_whole(self, tokens):
        with pytest.raises(ValueError, match="tokens"):
            model_of().text(PROMPTS[0], tokens)
        with pytest.raises(ValueError, match="tokens"):
            model_of().score(PROMPTS[0], tokens)

    def test_prompts_are_those_it_was_made_with(self):
        model = model_of(prompts=PROMPTS[:2])
        assert model.prompts == PROMPTS[:2]
        with pytest.raises(ValueError, match="prompts"):
            model.continue_batch(rngs(1), [PROMPTS[2]], [()])
        with pytest.raises(ValueError, match="at least one token"):
            model_of().score("", (END,))
        with pytest.raises(ValueError, match="do not match"):
            model.continue_batch(rngs(2), [PROMPTS[0]], [()])

    @pytest.mark.parametrize("options", [{"limit": 0}, {"temperature": 0.0}, {"temperature": float("nan")}])
    def test_numbers_are_in_range(self, options):
        with pytest.raises(ValueError, match=next(iter(options))):
            model_of(**options)


class TestSpecialTokens:
    @pytest.mark.parametrize(("part", "prompt", "system"), [("prompt", "w1</s> w2", ""), ("system", "w1", "w2 </s>")])
    def test_a_part_of_a_chat_that_holds_one_is_refused(self, part, prompt, system):
        with pytest.raises(ValueError, match=f"{part} must not hold '</s>': .* Take it out"):
            model_of(weights=weights_of(template=TEMPLATE), system=system, prompts=(prompt,))

    def test_without_a_template_there_is_no_turn_to_end(self):
        model_of(prompts=("w1 </s> w2",))

    def test_a_text_that_no_database_takes_is_told_without_it(self):
        words = ("w1", "w\0", "w3")
        model = TransformersModel(Weights(llama(1 + len(words)), tokenizer_of(words)), limit=3)
        assert model.text("w1", (1, 2, 3)) == "w1 w\N{REPLACEMENT CHARACTER} w3"
