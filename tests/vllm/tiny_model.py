"""Writes the folder of a small llama for vLLM: python -m tests.vllm.tiny_model FOLDER, where PyTorch is.

Its weights are random, but for one thing: the first coordinate is the same for every token, so that the first column
of the output lifts some tokens everywhere: the two labels, and a little the end of a text.
"""

import sys

import torch
from tokenizers import decoders

from tests.gpu.small_models import END, TEMPLATE, llama, tokenizer_of

# The labels, the two words that `probe` constrains a reply to, and some for texts.
WORDS = ("A", "B", "QX7", "ZJ3", *(f"w{number}" for number in range(58)))
_LIFTED = {END: 1.2, 1: 2.6, 2: 2.5}


def main(folder: str) -> None:
    model = llama(1 + len(WORDS), 1024, 20261121, hidden=128, inner=128, spread=0.1)
    with torch.no_grad():
        model.model.embed_tokens.weight[:, 0] = 4.0
        model.lm_head.weight[:, 0] = 0.0
        for token, lift in _LIFTED.items():
            model.lm_head.weight[token] *= 0.5
            model.lm_head.weight[token, 0] = lift
    model.save_pretrained(folder)
    tokenizer = tokenizer_of(WORDS, TEMPLATE)
    # Words as they are: with a space before each, no reply would be exactly what it was constrained to.
    tokenizer.backend_tokenizer.decoder = decoders.Fuse()
    tokenizer.save_pretrained(folder)


if __name__ == "__main__":
    main(sys.argv[1])
