"""Tokens per second of a local language model: many chains in one batch against one chain at a time, in one run.

    python -m tests.benchmarks.generation [--width 256 --layers 4] [--tokens 64]
    python -m tests.benchmarks.generation --billion --bandwidth 4800        on a GPU; the bandwidth in GB/s

Weights are random, in the shape of a Llama; `--billion` takes about 1.1 billion of them in bfloat16. Chains keep 0 to
a half of the tokens, as suffix moves do, and write the rest; only tokens drawn are counted. "one by one" is the same
chains, one call each, the first few of them; the best of two rounds counts. With `--bandwidth`, the floor is the time
in which the weights can be read once: no step of a batch can be quicker, whatever its size.
"""

from __future__ import annotations

import argparse
import time

from prefmh_web.endpoints.local.extra import needs
from prefmh_web.endpoints.local.transformers_model import TransformersModel
from prefmh_web.endpoints.local.weights import Weights, default_device
from sampler import Purpose, stream

torch, transformers, tokenizers = needs("torch"), needs("transformers"), needs("tokenizers")

ROUNDS = 2
ALONE = 4
PROMPT_TOKENS = 32
CHAINS = (1, 4, 16, 64, 256)
BILLION = {"width": 2048, "layers": 16, "vocabulary": 32_000, "heads": 32, "inner": 8192}


def weights_of(shape: dict[str, int], tokens: int, device: str) -> Weights:
    """Return random weights of a shape, in the precision that the device is used with."""
    config = transformers.LlamaConfig(
        vocab_size=shape["vocabulary"],
        hidden_size=shape["width"],
        intermediate_size=shape["inner"],
        num_hidden_layers=shape["layers"],
        num_attention_heads=shape["heads"],
        num_key_value_heads=max(1, shape["heads"] // 4),
        max_position_embeddings=PROMPT_TOKENS + tokens,
        bos_token_id=None,
        eos_token_id=0,
    )
    torch.manual_seed(1)
    with torch.device(device):
        model = transformers.AutoModelForCausalLM.from_config(
            config, dtype=torch.float32 if device == "cpu" else torch.bfloat16
        )
    words = tokenizers.models.WordLevel({"</s>": 0, "word": 1}, unk_token="word")
    tokenizer = tokenizers.Tokenizer(words)
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="</s>")
    return Weights(model.requires_grad_(False), fast)


def bytes_of_a_step(model: torch.nn.Module) -> int:
    """Return the bytes of the weights that a step reads: all but the table that token ids are looked up in."""
    table = model.get_input_embeddings().weight
    return sum(each.numel() * each.element_size() for each in model.parameters() if each is not table)


def drawn_per_second(model: TransformersModel, chains: int, batch: int) -> float:
    """Return tokens per second for chains that are drawn so many at a time; the best of the rounds."""
    prompt = " ".join(["word"] * PROMPT_TOKENS)
    prefixes = [(1,) * (chain * model.limit // 2 // max(chains, 2)) for chain in range(chains)]
    best = 0.0
    for _ in range(ROUNDS):
        rngs = [stream(1, chain, 0, Purpose.PROPOSAL) for chain in range(chains)]
        begun, drawn = time.perf_counter(), 0
        for first in range(0, chains, batch):
            rows = slice(first, first + batch)
            written = model.continue_batch(rngs[rows], [prompt] * len(prefixes[rows]), prefixes[rows])
            drawn += sum(len(tokens) for tokens in written) - sum(len(prefix) for prefix in prefixes[rows])
        best = max(best, drawn / (time.perf_counter() - begun))
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--billion", action="store_true", help="about 1.1 billion weights, for a GPU")
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--vocabulary", type=int, default=4096)
    parser.add_argument("--tokens", type=int, default=64, help="of one text at most")
    parser.add_argument("--chains", type=int, nargs="+", default=CHAINS)
    parser.add_argument("--bandwidth", type=float, help="of the device's memory in GB/s, for the floor")
    parser.add_argument("--device", default=default_device())
    parser.add_argument("--threads", type=int, help="of the CPU; where it is busy, 1 is quickest")
    options = parser.parse_args()
    if options.threads:
        torch.set_num_threads(options.threads)
    small = {
        "width": options.width,
        "layers": options.layers,
        "vocabulary": options.vocabulary,
        "heads": max(4, options.width // 64),
        "inner": 3 * options.width,
    }
    weights = weights_of(BILLION if options.billion else small, options.tokens, options.device)
    model = TransformersModel(weights, limit=options.tokens, max_rows=max(options.chains))
    network = weights.network
    count, read = sum(each.numel() for each in network.model.parameters()), bytes_of_a_step(network.model)
    named = torch.cuda.get_device_name() if options.device.startswith("cuda") else f"{torch.get_num_threads()} threads"
    print(f"{count:,} weights in {network.dtype}, {options.device} ({named}); {read / 1e9:.3f} GB read each step")
    read_s = read / (options.bandwidth * 1e9) if options.bandwidth else None
    if read_s:
        print(f"floor: {1e3 * read_s:.3f} ms a step, {1 / read_s:,.0f} tokens a second for each chain")
    drawn_per_second(model, 1, 1)
    print(
        f"{'chains':>8}{'batched/s':>12}{'one by one/s':>14}{'ratio':>8}" + f"{'of floor':>10}" * (read_s is not None)
    )
    for chains in options.chains:
        alone, batched = drawn_per_second(model, min(chains, ALONE), 1), drawn_per_second(model, chains, chains)
        floor = f"{batched * read_s / chains:>10.1%}" if read_s else ""
        print(f"{chains:>8}{batched:>12,.0f}{alone:>14,.0f}{batched / alone:>8.1f}{floor}", flush=True)


if __name__ == "__main__":
    main()
