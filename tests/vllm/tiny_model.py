"""Writes the folder of a small llama for vLLM: python -m tests.vllm.tiny_model FOLDER, where PyTorch is.

Its weights are random, but for one thing: the first coordinate is the same for every token, so that the first column
of the output lifts some tokens everywhere: the two labels, and a little the end of a text.
"""

import sys

import torch
from tokenizers import decoders
from transformers import LlamaConfig, LlamaForCausalLM

from tests.gpu.small_models import END, TEMPLATE, tokenizer_of

# The labels, the two words that `probe` confines a reply to, and some for texts.
WORDS = ("A", "B", "QX7", "ZJ3", *(f"w{number}" for number in range(58)))
_LIFTED = {END: 1.2, 1: 2.6, 2: 2.5}


def main(folder: str) -> None:
    torch.manual_seed(20261121)
    config = LlamaConfig(
        vocab_size=1 + len(WORDS),
        hidden_size=128,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=1024,
        bos_token_id=None,
        eos_token_id=END,
        initializer_range=0.1,
    )
    model = LlamaForCausalLM(config)
    with torch.no_grad():
        model.model.embed_tokens.weight[:, 0] = 4.0
        model.lm_head.weight[:, 0] = 0.0
        for token, lift in _LIFTED.items():
            model.lm_head.weight[token] *= 0.5
            model.lm_head.weight[token, 0] = lift
    model.save_pretrained(folder)
    tokenizer = tokenizer_of(WORDS, TEMPLATE)
    # Words as they are: with a space before each, no reply would be exactly what it was confined to.
    tokenizer.backend_tokenizer.decoder = decoders.Fuse()
    tokenizer.save_pretrained(folder)


if __name__ == "__main__":
    main(sys.argv[1])
