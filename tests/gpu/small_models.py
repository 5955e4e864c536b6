"""Language models of a few thousand random weights, with tokenisers of their own; and wrong ones."""

import functools

import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

END = 0
# Threads that wait for one another make models as small as these slower, the more so beside other tests.
torch.set_num_threads(1)
TEMPLATE = (
    "{% for message in messages %}[{{ message['role'] }}] {{ message['content'] }} {% endfor %}"
    "{% if add_generation_prompt %}[assistant]{% endif %}"
)


def tokenizer_of(words, template=None):
    """Return a tokeniser that splits at spaces; word number k is token k + 1, and token 0 ends a text."""
    vocabulary = {"</s>": END} | {word: index for index, word in enumerate(words, start=1)}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token=words[-1]))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="</s>")
    fast.chat_template = template
    return fast


def gpt2(vocabulary, context=32, seed=5):
    """Return a GPT-2, whose positions are counted from the row's beginning and so mind padding."""
    torch.manual_seed(seed)
    config = GPT2Config(
        vocab_size=vocabulary,
        n_positions=context,
        n_embd=16,
        n_layer=2,
        n_head=2,
        bos_token_id=END,
        eos_token_id=END,
        initializer_range=0.4,
    )
    return GPT2LMHeadModel(config).eval()


def llama(vocabulary, context=64, seed=5, *, hidden=32, inner=48, spread=0.3):
    """Return a Llama, with fewer key-value heads than heads."""
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=vocabulary,
        hidden_size=hidden,
        intermediate_size=inner,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=context,
        bos_token_id=None,
        eos_token_id=END,
        initializer_range=spread,
    )
    return LlamaForCausalLM(config).eval()


def moved(model, device, dtype):
    """Return a model on a device, its weights in a precision. Positions stay in float32, as where it is loaded so."""
    for weights in model.parameters():
        weights.data = weights.data.to(dtype)
    return model.to(device)


class Wrapped(torch.nn.Module):
    """A model called through another one, with what that takes."""

    def __init__(self, inner):
        super().__init__()
        self.inner, self.config = inner, inner.config

        @functools.wraps(inner.forward)
        def forward(**given):
            return self.called(given)

        self.forward = forward

    def called(self, given):
        return self.inner(**given)


class WithoutPositions(Wrapped):
    """A deliberately wrong model: it counts padding in positions."""

    def called(self, given):
        return super().called(given | {"position_ids": None})


class SamePosition(Wrapped):
    """A deliberately wrong model: all its tokens are at the first position."""

    def called(self, given):
        return super().called(given | {"position_ids": torch.zeros_like(given["position_ids"])})


class WithoutMask(Wrapped):
    """A deliberately wrong model: it attends to padding."""

    def called(self, given):
        return super().called(given | {"attention_mask": None})


class TopP(Wrapped):
    """A deliberately wrong model: the least likely tokens, up to a tenth of the mass, are left out."""

    def called(self, given):
        found = super().called(given)
        ordered, indices = found.logits.sort(dim=-1)
        left_out = ordered.softmax(-1).cumsum(-1) <= 0.1
        found.logits = found.logits.masked_fill(left_out.gather(-1, indices.argsort(-1)), -torch.inf)
        return found
